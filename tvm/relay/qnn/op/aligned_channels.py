"""Pad the channels of quantised products to full vectors, as Hexagon's instructions take them.

    qnn.conv2d(%x, %w, channels=60)    ->    strided_slice(qnn.conv2d(pad(%x), pad(%w), channels=64))

Channels that are added to the data hold its zero point, so that they add nothing whatever that of
the weights is; outputs that are added have 0 for a zero point and 1 for a scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, const
from tvm.relay.op.nn.activation import pad
from tvm.relay.op.registry import ops
from tvm.relay.op.types import Dim, is_known, shape_of_type

from .common import constant_array, scalar_value

_IN_CHANNELS = 4  # neighbours that one instruction sums
_OUT_CHANNELS = 32  # sums of 32 bits in a vector


def missing(count: Dim, multiple: int) -> int:
    """How many more make `count` a multiple; 0 where only the run knows it."""
    return -count % multiple if isinstance(count, int) else 0


def aligned_conv2d(
    attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr | None:
    """The convolution with full vectors of channels; None if it has them."""
    data, weight = tensor_type_of(inputs[0]), tensor_type_of(inputs[1])
    if (attrs.data_layout, attrs.kernel_layout, attrs.groups) != ("NCHW", "OIHW", 1):
        return None
    if data.dtype not in ("uint8", "int8") or weight.dtype != "int8":
        return None
    out_channels, in_channels, *_ = shape_of_type(weight)
    more_in, more_out = missing(in_channels, _IN_CHANNELS), missing(out_channels, _OUT_CHANNELS)
    if not (more_in or more_out) or not is_known(*shape_of_type(types[-1])):
        return None
    zero = scalar_value(inputs[2])
    if zero is None:
        return None
    weights = _padded(_padded(inputs[1], 1, more_in, 4), 0, more_out, 4)
    values = [_padded(inputs[0], 1, more_in, 4, const(int(zero), data.dtype)), weights]
    changed = attrs.replace(channels=out_channels + more_out)
    return _shortened(values, inputs, changed, more_out, types)


def aligned_dense(
    attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr | None:
    """The matrix product with full vectors of units; None if it has them."""
    data, weight = tensor_type_of(inputs[0]), tensor_type_of(inputs[1])
    if data.dtype not in ("uint8", "int8") or weight.dtype != "int8":
        return None
    units = shape_of_type(weight)[0]
    more = missing(units, _OUT_CHANNELS)
    if not more or not is_known(*shape_of_type(types[-1])):
        return None
    values = [inputs[0], _padded(inputs[1], 0, more, 2)]
    return _shortened(values, inputs, attrs.replace(units=units + more), more, types)


def _shortened(
    values: Sequence[RelayExpr],
    inputs: Sequence[RelayExpr],
    attrs: Attrs,
    more_out: int,
    types: Sequence[Type],
) -> RelayExpr | None:
    """The product of padded factors without the channels that were added."""
    zero, scale = _longer(inputs[3], more_out, 0), _longer(inputs[5], more_out, 1)
    if zero is None or scale is None:
        return None
    op = ops.qnn.conv2d if hasattr(attrs, "kernel_layout") else ops.qnn.dense
    found: RelayExpr = Call(op, (*values, inputs[2], zero, inputs[4], scale), attrs)
    if not more_out:
        return found
    end = shape_of_type(types[-1])
    sliced: RelayExpr = ops.strided_slice(found, begin=[0] * len(end), end=end, strides=[1])
    return sliced


def _padded(
    value: RelayExpr, axis: int, count: int, rank: int, filler: float | RelayExpr = 0
) -> RelayExpr:
    """With more elements behind those of an axis."""
    if not count:
        return value
    widths = [(0, count if i == axis else 0) for i in range(rank)]
    return pad(value, widths, filler)


def _longer(parameter: RelayExpr, count: int, filler: int) -> RelayExpr | None:
    """A parameter by channel with fillers behind it; None if its values are not known."""
    if not count or len(tensor_type_of(parameter).shape) == 0:
        return parameter
    array = constant_array(parameter)
    if array is None:
        return None
    return const(np.concatenate([array, np.full(count, filler, array.dtype)]))
