"""Convolutions to few channels: blocks of them would fill vectors badly, so rows of the image do.

nn.conv2d to (1, 3, 97, 131)    ->    strided_slice(nn.conv2d to (1, 3, 97, 144))
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call
from tvm.target import Target

from ..attributes import padding_pairs
from ..registry import ops
from ..types import are_known, is_known, shape_of_type


def wants_plain_rows(
    call: Call, arg_types: Sequence[TensorType], out_type: TensorType, target: Target
) -> bool:
    """Whether the convolution is faster in vectors along the rows of plain data."""
    attrs, shape = call.attrs, shape_of_type(out_type)
    if target.kind.name != "llvm" or attrs.groups != 1 or attrs.strides[1] != 1:
        return False
    if not are_known(shape) or shape[3] < 8:
        return False
    if any([ty.dtype != "float32" for ty in (*arg_types, out_type)]):
        return False
    lanes = topi.x86.conv2d.full_block("float32", target)
    data = call.args[0]
    is_blocked = isinstance(data, Call) and data.op is ops.layout_transform
    window = shape_of_type(arg_types[1])[2:]
    assert are_known(window)
    return topi.x86.conv2d.is_faster_in_rows(shape[1], window, lanes, is_blocked)


def keeps_channels_apart(call: Call, arg_types: Sequence[TensorType], out_type: TensorType) -> bool:
    """Whether each channel by itself is faster in rows of plain data than in blocks of channels.

    Data that is brought into this layout alone had better be brought into blocks; and records of
    tuning are of blocks.
    """
    if topi.configuration.is_active():
        return False
    shape = shape_of_type(out_type)
    is_single = all([ty.dtype == "float32" for ty in (*arg_types, out_type)])
    if not is_single or not are_known(shape) or tuple(call.attrs.strides) != (1, 1):
        return False
    data = call.args[0]
    while isinstance(data, Call) and data.op is ops.reshape:
        data = data.args[0]
    if isinstance(data, Call) and data.op in (ops.layout_transform, ops.transpose):
        return False
    return topi.x86.conv2d.fills_vectors(shape[3], "float32")


def in_plain_rows(call: Call, out_type: Type, target: Target) -> RelayExpr | None:
    """The convolution with rows that vectors divide; None if they do as they are."""
    shape = shape_of_type(out_type)
    lanes = topi.x86.conv2d.full_block("float32", target)
    columns = shape[3]
    assert is_known(columns)
    wide = topi.x86.conv2d.row_columns(columns, lanes)
    if wide == columns:
        return None
    top, left, bottom, right = padding_pairs(call.attrs.padding, 2)
    attrs = call.attrs.replace(padding=(top, left, bottom, right + wide - columns))
    return ops.strided_slice(call.replace(attrs=attrs), begin=(0,) * 4, end=shape)
