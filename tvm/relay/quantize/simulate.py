"""Quantisation simulated in real numbers, with ranges that calibration fills in.

simulated_quantize(%x, scale, low, high)  =  clip(round(%x / scale), low, high) * scale
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call, Var
from tvm.relay.op.layout import layout_data
from tvm.relay.op.operator import Expr, operator
from tvm.relay.op.registry import OpPattern
from tvm.relay.op.types import expect, expect_tensor
from tvm.relay.quantize.config import QAnnotateKind, current_qconfig
from tvm.relay.quantize.context import quantize_context
from tvm.te.declare import compute
from tvm.te.tensor import Tensor
from tvm.tir import math_op, reduction

_ROUNDINGS = ("round", "passthrough")


def _simulated_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    who = "simulated_quantize"
    data = expect_tensor(arg_types[0], who)
    for ty in arg_types[1:]:
        expect(len(expect_tensor(ty, who, "range").shape) == 0, f"{who} requires scalar ranges")
    expect(attrs.rounding in _ROUNDINGS, f"{who} requires a rounding of {', '.join(_ROUNDINGS)}")
    return data


def simulated_quantize_compute(
    attrs: Any, inputs: Sequence[Tensor], out_type: Type
) -> list[Tensor]:
    """The values on the steps of the scale.

    Parameters
    ----------
    attrs : Attrs
        Of the kind "identity" the data is passed on; "passthrough" leaves out the rounding.
    inputs : sequence of Tensor
        The data, the scale and the least and greatest integer.
    out_type : Type
        The data's type.
    """
    data, scale, low, high = inputs
    if attrs.kind == QAnnotateKind.IDENTITY:
        return [topi.identity(data)]

    def element(*i: Any) -> Any:
        within = reduction.max(reduction.min(data(*i) / scale(), high()), low())
        whole = math_op.round(within) if attrs.rounding == "round" else within
        return whole * scale()

    return [compute(data.shape, element, name="simulated_quantize", tag=topi.tag.ELEMWISE)]


@operator(
    "relay.op.annotation.simulated_quantize",
    infer_type=_simulated_type,
    infer_layout=layout_data,
    fuse=OpPattern.ELEMWISE,
    compute=simulated_quantize_compute,
)
def simulated_quantize(
    data: Expr,
    dom_scale: Expr,
    clip_min: Expr,
    clip_max: Expr,
    kind: int,
    sign: bool = True,
    rounding: str = "round",
) -> RelayExpr:
    """Quantisation in real numbers: `kind` is the value's part in its layer, `rounding` of `_ROUNDINGS`."""


def attach_simulated_quantize(
    data: RelayExpr, kind: QAnnotateKind, sign: bool = True, rounding: str = "round"
) -> RelayExpr:
    """The data through a simulated quantisation, whose range calibration sets; one for each value.

    Parameters
    ----------
    data : relay.Expr
        What is to be quantised.
    kind : QAnnotateKind
        What it is in its layer.
    sign : bool
        Whether the integers have a sign; inputs have none if `qconfig` says so.
    rounding : str
        "round", or "passthrough" for none.
    """
    if isinstance(data, Call) and data.op is simulated_quantize.op:
        have = data.attrs
        if (have.kind, have.sign, have.rounding) == (kind, sign, rounding):
            return data
    made = quantize_context().made
    key = (id(data), int(kind), sign, rounding)
    if key not in made:
        scalar = TensorType((), "float32")
        scale, low, high = [Var(name, scalar) for name in ("dom_scale", "clip_min", "clip_max")]
        call = simulated_quantize(data, scale, low, high, int(kind), sign, rounding)
        made[key] = (data, call)
    found: RelayExpr = made[key][1]
    return found


def attach_input(data: RelayExpr) -> RelayExpr:
    """The input of a layer through a simulated quantisation."""
    is_signed = current_qconfig().dtype_input == "int8"
    return attach_simulated_quantize(data, QAnnotateKind.INPUT, is_signed)
