"""Let convolutions and pooling pad for themselves.

    nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), %w)
    ->
    nn.conv2d(%x, %w, padding=[1, 1, 1, 1])

The border must be what the operator fills in itself: zeros, for `max_pool` the least value. A mean
that leaves the border out takes no part of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Constant
from tvm.relay.function import Function
from tvm.relay.op.attributes import padding_pairs
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import AVG_POOLS, CONVOLUTIONS, MAX_POOLS, calls
from tvm.relay.traverse import rewrite_calls


@relay_pass("FoldExplicitPadding", opt_level=0)
def fold_explicit_padding(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Merge pads into the operators after them."""
    return rewrite_calls(func, _fold)


def _fold(old: Call, new: Call) -> RelayExpr:
    foldable = (*CONVOLUTIONS, *AVG_POOLS, *MAX_POOLS, ops.qnn.conv2d)
    if not calls(new, *foldable) or not calls(pad := new.args[0], ops.nn.pad):
        return new
    layout = str(new.attrs["data_layout"] if "data_layout" in new.attrs else new.attrs["layout"])
    if pad.attrs.pad_mode != "constant" or not layout.isupper():
        return new
    widths = _spatial_widths(pad.attrs.pad_width, layout)
    value = pad.args[1]
    if widths is None or not isinstance(value, Constant) or not _is_own_border(new, value):
        return new
    attrs = {"padding": _added(tuple(new.attrs.padding), widths)}
    if calls(new, *AVG_POOLS):
        if any([p != 0 for p in new.attrs.padding]) and not new.attrs.count_include_pad:
            return new  # one border counts, the other does not
        attrs["count_include_pad"] = True  # type: ignore[assignment]
    data = pad.args[0]
    return new.replace(args=(data, *new.args[1:]), attrs=new.attrs.replace(**attrs))


def _spatial_widths(
    pad_width: Sequence[tuple[int, int]], layout: str
) -> list[tuple[int, int]] | None:
    """The widths of the spatial axes; None if another axis is padded as well."""
    spatial = []
    for axis, (before, after) in zip(layout, pad_width, strict=True):
        if axis not in "NC":
            spatial.append((int(before), int(after)))
        elif before or after:
            return None
    if any([width < 0 for pair in spatial for width in pair]):
        return None
    return spatial


def _added(padding: tuple[int, ...], widths: list[tuple[int, int]]) -> tuple[int, ...]:
    rank = len(widths)
    padding = padding_pairs(padding, rank)
    begins = [padding[i] + widths[i][0] for i in range(rank)]
    ends = [padding[rank + i] + widths[i][1] for i in range(rank)]
    return (*begins, *ends)


def _is_own_border(call: Call, value: Constant) -> bool:
    """Whether the operator fills its border with that value."""
    border = float(value.data.numpy())
    if calls(call, ops.qnn.conv2d):
        zero_point = call.args[2]
        return isinstance(zero_point, Constant) and float(zero_point.data.numpy()) == border
    if not calls(call, *MAX_POOLS):
        return border == 0
    ty = infer_type_of(value)
    assert isinstance(ty, TensorType)
    if not str(ty.dtype).startswith("float"):
        return "int" in ty.dtype and border == np.iinfo(str(ty.dtype)).min
    return border in (float("-inf"), float(np.finfo(str(ty.dtype)).min))


FoldExplicitPadding = fold_explicit_padding.factory
