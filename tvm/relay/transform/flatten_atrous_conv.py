"""Write a convolution between rearrangements of its pixels as one with holes in its window.

batch_to_space_nd(conv2d(space_to_batch_nd(%x, block_shape=[2, 2]), %w))
->
conv2d(%x, %w, dilation=[2, 2])
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import rewrite_calls


@relay_pass("FlattenAtrousConv", opt_level=0)
def flatten_atrous_conv(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Dilate windows instead of moving pixels."""
    return rewrite_calls(func, _flatten)


def _flatten(old: Call, new: Call) -> RelayExpr:
    if not calls(new, ops.nn.batch_to_space_nd):
        return new
    conv = new.args[0]
    if not calls(conv, ops.nn.conv2d, ops.qnn.conv2d):
        return new
    spread = conv.args[0]
    if not calls(spread, ops.nn.space_to_batch_nd):
        return new
    data = spread.args[0]
    padding = _padding(new, conv, spread)
    if padding is None:
        return new
    block = tuple([int(b) for b in spread.attrs.block_shape])
    attrs = conv.attrs.replace(dilation=block, padding=padding)
    flat = conv.replace(args=(data, *conv.args[1:]), attrs=attrs)
    # cropping or uneven blocks may leave another shape, which no dilated convolution has
    return flat if infer_type_of(flat) == infer_type_of(old) else new


def _padding(gather: Call, conv: Call, spread: Call) -> tuple[int, ...] | None:
    """How the convolution has to pad; None if it is no dilated convolution."""
    ty = infer_type_of(spread.args[0])
    attrs = conv.attrs
    plain = (
        isinstance(ty, TensorType)
        and len(ty.shape) == 4
        and attrs.data_layout == "NHWC"
        and all([s == 1 for s in (*attrs.strides, *attrs.dilation)])
        and not any(attrs.padding)
        and tuple(gather.attrs.block_shape) == tuple(spread.attrs.block_shape)
        and len(spread.attrs.block_shape) == 2
        and float(spread.attrs.pad_value) == 0
    )
    if not plain:
        return None
    (top, bottom), (left, right) = spread.attrs.paddings
    (crop_top, crop_bottom), (crop_left, crop_right) = gather.attrs.crops
    if crop_top or crop_left:
        return None
    # what is padded to fill the last block and cropped again is no part of the convolution
    return (top, left, bottom - crop_bottom, right - crop_right)


FlattenAtrousConv = flatten_atrous_conv.factory
