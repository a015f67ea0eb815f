"""Padding."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.relax.expr import Call
from tvm.relax.op.infer import dims_of, fail, made, simplified, tensors
from tvm.relax.op.operator import Attr, Expr, Ints, operator
from tvm.tir import FloatImm, IntImm


def _infer(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `data`; each extent is longer by what is put before and behind."""
    info = tensors(call, 1)[0]
    widths = call.attrs.pad_width
    if 0 <= info.ndim != len(widths) // 2:
        raise fail(call, f"requires {2 * info.ndim} numbers of padding, got {len(widths)}")
    dims = dims_of(info)
    if dims is None:
        return made(None, info.dtype, info.vdevice, info.ndim)
    new = [simplified(d + widths[2 * i] + widths[2 * i + 1]) for i, d in enumerate(dims)]
    return made(new, info.dtype, info.vdevice)


def _legalize(bb: Any, call: Call) -> Any:
    attrs = call.attrs
    before, after = list(attrs.pad_width[::2]), list(attrs.pad_width[1::2])
    kind = call.args[0].struct_info.dtype
    if attrs.pad_mode == "reflect":
        return bb.call_te(
            topi.nn.mirror_pad,
            call.args[0],
            before,
            after,
            "REFLECT",
            primfunc_name_hint="mirror_pad",
        )
    value = float(attrs.pad_value) if kind.is_float else int(attrs.pad_value)
    return bb.call_te(topi.nn.pad, call.args[0], before, after, value, primfunc_name_hint="pad")


def _flat(widths: Any) -> Any:
    found: list[Any] = []
    for item in widths:
        found.extend(item if isinstance(item, (list, tuple)) else [item])
    return found


@operator("relax.nn.pad", "PadAttrs", infer=_infer, FLegalize=_legalize)
def pad(data: Expr, pad_width: Ints, pad_value: Attr = 0, pad_mode: str = "constant") -> Expr:
    """Elements added before and after along axes.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    pad_width : list of int
        Before and after, an axis after the other.
    pad_value : number
        The added elements.
    pad_mode : str
        ``"constant"`` or ``"reflect"``.
    """
    value = pad_value.value if isinstance(pad_value, (IntImm, FloatImm)) else pad_value
    return {"pad_width": _flat(pad_width), "pad_value": float(value)}
