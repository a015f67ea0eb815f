"""Computes and schedules under the names of the classic x86 templates.

C = topi.x86.dense_pack(A, B, None, "float32")
s = topi.x86.schedule_dense_pack([C])

The computes are those of `topi.nn`; what is special to the processor is in the schedules.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tvm import te
from tvm.error import RuntimeValueError

from .. import generic, nn
from ..cpu.injective import schedule_concatenate_cpu, schedule_injective
from ..joining import concatenate
from ..nn.batch_matmul.cpu import batch_matmul as compute_batch_matmul
from ..nn.conv2d.cpu import schedule_conv2d
from ..nn.dense.cpu import packed_columns, schedule_dense_nopack
from ..nn.dense.dot_x86 import dense_dot_block, schedule_dense_dot
from ..utils import dims, prod
from ..vision.rcnn.roi_align import roi_align_nchw
from .dot_product import find_dot_product


def _renamed(function: Callable[..., Any], **names: str) -> Callable[..., Any]:
    """The function with other names for its parameters: `old="new"`."""
    signature = inspect.signature(function)
    parameters = [p.replace(name=names.get(p.name, p.name)) for p in signature.parameters.values()]
    back = {new: old for old, new in names.items()}

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **{back.get(name, name): value for name, value in kwargs.items()})

    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = function.__doc__
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


_CONV = {"Input": "data", "Filter": "kernel", "stride": "strides"}
conv2d_nchw = _renamed(nn.conv2d_nchw, **_CONV)
conv2d_NCHWc = _renamed(nn.conv2d_NCHWc, stride="strides")
conv2d_nchw_int8 = conv2d_nchw
conv2d_NCHWc_int8 = _renamed(nn.conv2d_NCHWc_int8, stride="strides")
depthwise_conv2d_nchw = _renamed(nn.depthwise_conv2d_nchw, **_CONV)
depthwise_conv2d_NCHWc = _renamed(nn.depthwise_conv2d_NCHWc, **_CONV)
group_conv2d_nchw = _renamed(nn.group_conv2d_nchw, **_CONV)
group_conv2d_nchw_spatial_pack = group_conv2d_nchw
conv3d_ncdhw = _renamed(nn.conv3d_ncdhw, **_CONV)
conv3d_ndhwc = _renamed(nn.conv3d_ndhwc, **_CONV)
conv2d_transpose_nchw = _renamed(nn.conv2d_transpose_nchw, Input="data", Filter="kernel")
conv3d_transpose_ncdhw = _renamed(nn.conv3d_transpose_ncdhw, Input="data", Filter="kernel")
batch_matmul = _renamed(compute_batch_matmul, oshape="out_shape")
bitserial_conv2d_nchw = _renamed(nn.bitserial_conv2d_nchw, activation_bits="in_bits")
bitserial_conv2d_nhwc = _renamed(nn.bitserial_conv2d_nhwc, activation_bits="in_bits")
bitserial_dense = nn.bitserial_dense
dense_nopack = nn.dense

schedule_conv1d_ncw = schedule_conv1d_nwc = schedule_conv2d
schedule_group_conv1d_ncw = schedule_group_conv1d_nwc = schedule_conv2d
schedule_conv2d_nchw_int8 = schedule_depthwise_conv2d_nchw = schedule_conv2d
schedule_group_conv2d_nchw = schedule_group_conv2d_nchwc = schedule_conv2d
schedule_conv2d_transpose_nchw = schedule_conv3d_transpose_ncdhw = schedule_conv2d
schedule_conv3d_ncdhw = schedule_conv3d_ndhwc = schedule_conv2d
schedule_batch_norm = schedule_injective
schedule_binarize_pack = generic.schedule_binarize_pack
schedule_binary_dense = generic.schedule_binary_dense
schedule_bitserial_conv2d_nchw = generic.schedule_bitserial_conv2d_nchw
schedule_bitserial_conv2d_nhwc = generic.schedule_bitserial_conv2d_nhwc
schedule_bitserial_dense = generic.schedule_bitserial_dense
schedule_sparse_dense = generic.schedule_sparse_dense
schedule_spconv2d_3x3_nhwc = schedule_spconv2d_3x3_nchw = generic.schedule_sparse_conv2d
schedule_conv2d_nhwc_pack_int8 = schedule_conv2d


def is_int8_hw_support(data_dtype: str, kernel_dtype: str) -> bool:
    """Whether the current target has an instruction for sums of products of these dtypes."""
    return find_dot_product(data_dtype, kernel_dtype, 16) is not None


def dense_pack(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: str | None = None
) -> te.Tensor:
    """A dense layer with the weight in panels of columns; a plain one is packed first.

    Parameters
    ----------
    data : te.Tensor
        (rows, inner)
    weight : te.Tensor
        (units, inner), or (units / block, inner, block).
    bias : te.Tensor, optional
        Added to every row.
    out_dtype : str, optional
        The dtype of the sums, the data's by default.
    """
    if len(weight.shape) == 3:
        return nn.dense_pack(data, weight, bias, out_dtype)
    units, inner = dims(weight.shape)
    rows = prod(dims(data.shape)[:-1])
    block = None
    if isinstance(rows, int):
        block = packed_columns(rows, units, inner, data.dtype)
    if block is None:
        block = next(size for size in (16, 8, 4, 2, 1) if units % size == 0)
    panels = te.compute(
        (units // block, inner, block),
        lambda panel, k, x: weight(panel * block + x, k),
        name="packed_weight",
    )
    return nn.dense_pack(data, panels, bias, out_dtype)


def dense_int8(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: str | None = None
) -> te.Tensor:
    """A dense layer of narrow numbers, the weight in groups for a dot-product instruction.

    Parameters
    ----------
    data, weight : te.Tensor
        (rows, inner) and (units, inner); or the weight as `topi.nn.dense_dot` reads it.
    bias : te.Tensor, optional
        Added to every row.
    out_dtype : str, optional
        The dtype of the sums, int32 by default.
    """
    sums = out_dtype or "int32"
    if len(weight.shape) == 4:
        return nn.dense_dot(data, weight, bias, sums)
    rows, inner = dims(data.shape)
    units = dims(weight.shape)[0]
    chosen = dense_dot_block(rows, units, inner, data.dtype, weight.dtype)
    if chosen is None:
        return nn.dense(data, weight, bias, sums)
    block, group = chosen
    groups = te.compute(
        (units // block, inner // group, block, group),
        lambda panel, g, x, k: weight(panel * block + x, g * group + k),
        name="packed_weight",
    )
    return nn.dense_dot(data, groups, bias, sums)


def schedule_dense_int8(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule what `dense_int8` gave, and what is fused behind it."""
    last = outs if isinstance(outs, te.Tensor) else outs[0]
    tags = [op.tag for op in generic.schedules.operations_above(last.op)]
    return schedule_dense_dot(outs) if "dense_dot" in tags else schedule_dense_nopack(outs)


def _sparse_conv2d_3x3(name: str, own_layout: str) -> Callable[..., te.Tensor]:
    def spconv2d(
        data: te.Tensor, wdat: te.Tensor, wind: te.Tensor, wptr: te.Tensor, layout: str = own_layout
    ) -> te.Tensor:
        if layout != own_layout:
            raise RuntimeValueError(f"{name} requires the layout {own_layout}, got {layout!r}")
        return nn.sparse_conv2d(data, wdat, wind, wptr, layout, 3)

    spconv2d.__name__ = spconv2d.__qualname__ = name
    spconv2d.__doc__ = "A convolution by windows of 3 x 3 with a sparse weight."
    return spconv2d


spconv2d_3x3_nhwc = _sparse_conv2d_3x3("spconv2d_3x3_nhwc", "NHWC")
spconv2d_3x3_nchw = _sparse_conv2d_3x3("spconv2d_3x3_nchw", "NCHW")


def check_int8_applicable(x: Any, y: Any, allow_padding: bool = False) -> bool:
    """Whether the product of types `x` and `y` (units by inner) has an instruction of its own.

    Parameters
    ----------
    x, y : TensorType
        The types of the data and the weight.
    allow_padding : bool
        Whether the extents may be filled up to those that the instruction needs.
    """
    if not is_int8_hw_support(x.dtype, y.dtype):
        return False
    units, inner = [int(extent) for extent in y.shape[-2:]]
    return allow_padding or (units % 16 == 0 and inner % 4 == 0)


def dense_dynamic(A: te.Tensor, B: te.Tensor, bias: te.Tensor | None, dtype: str) -> te.Tensor:
    """A dense layer of a number of rows that only the run knows."""
    return nn.dense(A, B, bias, dtype)


def schedule_dense_dynamic(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule a dense layer of an open number of rows."""
    return schedule_dense_nopack(outs)


__all__ = [
    "batch_matmul",
    "bitserial_conv2d_nchw",
    "bitserial_conv2d_nhwc",
    "bitserial_dense",
    "check_int8_applicable",
    "conv2d_NCHWc",
    "conv2d_NCHWc_int8",
    "conv2d_nchw",
    "conv2d_nchw_int8",
    "conv2d_transpose_nchw",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "dense_dynamic",
    "dense_int8",
    "dense_nopack",
    "dense_pack",
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_nchw",
    "group_conv2d_nchw",
    "group_conv2d_nchw_spatial_pack",
    "is_int8_hw_support",
    "roi_align_nchw",
    "schedule_batch_norm",
    "schedule_binarize_pack",
    "schedule_binary_dense",
    "schedule_bitserial_conv2d_nchw",
    "schedule_bitserial_conv2d_nhwc",
    "schedule_bitserial_dense",
    "schedule_concatenate_cpu",
    "schedule_conv1d_ncw",
    "schedule_conv1d_nwc",
    "schedule_conv2d_nchw_int8",
    "schedule_conv2d_transpose_nchw",
    "schedule_conv3d_ncdhw",
    "schedule_conv3d_ndhwc",
    "schedule_conv3d_transpose_ncdhw",
    "schedule_dense_dynamic",
    "schedule_dense_int8",
    "schedule_depthwise_conv2d_nchw",
    "schedule_group_conv1d_ncw",
    "schedule_group_conv1d_nwc",
    "schedule_group_conv2d_nchw",
    "schedule_group_conv2d_nchwc",
    "schedule_sparse_dense",
    "schedule_conv2d_nhwc_pack_int8",
    "schedule_spconv2d_3x3_nchw",
    "schedule_spconv2d_3x3_nhwc",
    "spconv2d_3x3_nchw",
    "spconv2d_3x3_nhwc",
    "concatenate",
]
