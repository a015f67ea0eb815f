"""The tasks of the x86 kernels: what tuners build and measure, under the classic names.

    args = (data, weight, None, "float32")
    task = autotvm.task.create("dense_pack.x86", args=args, target="llvm")

Operands that a program packs when it is built come packed, so that tuners measure the kernel alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import te
from tvm.autotvm.task.task import get_config, template
from tvm.error import RuntimeValueError

from .. import nn
from ..configuration import workload
from ..cpu.common import processor
from ..nn.batch_matmul.cpu import schedule_batch_matmul
from ..nn.conv2d.compute import GROUP_TASK
from ..nn.conv2d.cpu import schedule_conv2d, schedule_conv2d_NCHWc
from ..nn.conv2d.dot_x86 import schedule_conv2d_NCHWc_int8
from ..nn.conv2d.plan_cpu import Conv2dShape, plan_choices, planned_workload
from ..nn.conv2d.winograd_cpu import conv2d_NCHWc_winograd, schedule_conv2d_NCHWc_winograd
from ..nn.dense.compute import PACK_TASK, padded_rows
from ..nn.dense.cpu import matmul_choices, schedule_dense_pack
from ..nn.dense.dot_x86 import dense_dot_block, schedule_dense_dot
from ..nn.dense.pack_cpu import matmul_pack, schedule_matmul_pack
from ..nn.depthwise_conv2d.cpu import schedule_depthwise_conv2d_NCHWc
from ..nn.utils import dilated_window, get_pad_tuple_generic
from ..utils import dims

Built = tuple[te.Schedule, list[te.Tensor]]


def _of_two_operands(
    name: str,
    compute: Callable[..., te.Tensor],
    schedule: Callable[[list[te.Tensor]], te.Schedule],
) -> Callable[..., Built]:
    """The task of a kernel that takes two tensors, then attributes."""

    @template(name)
    def build(data: te.Tensor, kernel: te.Tensor, *attributes: Any) -> Built:
        out = compute(data, kernel, *attributes)
        return schedule([out]), [data, kernel, out]

    return build


_winograd = _of_two_operands(
    "conv2d_NCHWc_winograd.x86", conv2d_NCHWc_winograd, schedule_conv2d_NCHWc_winograd
)


def _int8_convolution(data: te.Tensor, kernel: te.Tensor, *attributes: Any) -> te.Tensor:
    rest = (*attributes, dims(kernel.shape)[-1])
    return nn.conv2d_NCHWc_int8(data, kernel, *rest)


@template("conv2d_NCHWc.x86")
def _conv2d_NCHWc(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    layout: str,
    out_layout: str,
    out_dtype: str | None,
) -> Built:
    """Data and weight in plain layouts, which the plan brings into blocks, or in blocks."""
    if len(data.shape) == 4:
        shape = _shape_of(data, kernel, strides, padding, dilation, out_dtype)
        plan = plan_choices(shape).choose(shape.task())
        get_config().add_flop(shape.operations)
        planned = planned_workload(shape, plan)
        assert planned is not None  # of extents that are all known
        data, kernel = [te.placeholder(*arg[1:]) for arg in planned[1:3]]
        layout, out_layout = plan.layouts
        if plan.winograd:
            args = (shape.padding, plan.winograd, layout, out_layout, out_dtype)
            return _winograd(data, kernel, *args)
    steps = (strides, padding, dilation)
    out = nn.conv2d_NCHWc(data, kernel, *steps, layout, out_layout, out_dtype or data.dtype)
    return schedule_conv2d_NCHWc([out]), [data, kernel, out]


def _shape_of(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None,
) -> Conv2dShape:
    strides, dilation = [(n, n) if isinstance(n, int) else tuple(n) for n in (strides, dilation)]
    weight = dims(kernel.shape)
    pads = get_pad_tuple_generic(padding, dilated_window(weight[2:], dilation))
    out_dtype = out_dtype or data.dtype
    return Conv2dShape(dims(data.shape), weight, strides, pads, dilation, data.dtype, out_dtype)


@template(PACK_TASK)
def _dense_pack(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None, out_dtype: str | None
) -> Built:
    """The weight in panels, whose width is a knob, or already in panels."""
    if len(weight.shape) == 2:
        (rows, inner), units = dims(data.shape), dims(weight.shape)[0]
        choices = matmul_choices(padded_rows(rows), units, data.dtype, processor(), inner)
        if choices is None:
            raise RuntimeValueError(f"{PACK_TASK} needs units that fill vectors, got {units}")
        block = choices.choose(workload(PACK_TASK, data, weight, bias, out_dtype)).columns
        weight = te.placeholder((units // block, inner, block), weight.dtype, "weight")
    out = nn.dense_pack(data, weight, bias, out_dtype)
    return schedule_dense_pack([out]), _given(data, weight, bias, out)


@template("dense_int8.x86")
def _dense_int8(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None, out_dtype: str | None
) -> Built:
    if len(weight.shape) == 2:
        (rows, inner), units = dims(data.shape), dims(weight.shape)[0]
        found = dense_dot_block(rows, units, inner, data.dtype, weight.dtype)
        if found is None:
            raise RuntimeValueError(
                "the target has no dot products for dense_int8.x86 of these operands"
            )
        block, group = found
        shape = (units // block, inner // group, block, group)
        weight = te.placeholder(shape, weight.dtype, "weight")
    out = nn.dense_dot(data, weight, bias, out_dtype or "int32")
    return schedule_dense_dot([out]), _given(data, weight, bias, out)


@template("dense_nopack.x86")
def _dense_nopack(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None, out_dtype: str | None
) -> Built:
    return _matmul_nopack(data, weight, bias, out_dtype, False, True)


@template("matmul_nopack.x86")
def _matmul_nopack(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    bias: te.Tensor | None,
    out_dtype: str | None,
    transpose_a: bool,
    transpose_b: bool,
) -> Built:
    out = matmul_pack(tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b)
    return schedule_matmul_pack([out]), _given(tensor_a, tensor_b, bias, out)


def _register_plain(name: str, data_layout: str, has_groups: bool = False) -> None:
    """The task of a convolution in plain layouts."""

    @template(f"{name}.x86")
    def build(data: te.Tensor, kernel: te.Tensor, *rest: Any) -> Built:
        *steps, out_dtype = rest
        groups = steps.pop() if has_groups else 1
        attributes = (*steps, groups, data_layout, "", out_dtype)
        out = nn.conv(data, kernel, *attributes)
        return schedule_conv2d([out]), [data, kernel, out]


for _name, _layout in (
    ("conv1d", "NCW"),
    ("conv1d", "NWC"),
    ("conv2d", "NCHW"),
    ("conv2d", "NHWC"),
):
    _register_plain(f"{_name}_{_layout.lower()}", _layout)
    _register_plain(f"group_{_name}_{_layout.lower()}", _layout, has_groups=True)
for _layout in ("NCDHW", "NDHWC"):
    _register_plain(f"conv3d_{_layout.lower()}", _layout, has_groups=True)
    _register_plain(f"group_conv3d_{_layout.lower()}", _layout, has_groups=True)
for _task, _compute, _schedule in (
    (GROUP_TASK, nn.conv2d_NCHWc, schedule_conv2d_NCHWc),
    ("conv2d_NCHWc_int8.x86", _int8_convolution, schedule_conv2d_NCHWc_int8),
    ("depthwise_conv2d_NCHWc.x86", nn.depthwise_conv2d_NCHWc, schedule_depthwise_conv2d_NCHWc),
    ("conv1d_transpose_ncw.x86", nn.conv1d_transpose_ncw, schedule_conv2d),
    ("conv2d_transpose_nchw.x86", nn.conv2d_transpose_nchw, schedule_conv2d),
    ("conv3d_transpose_ncdhw.x86", nn.conv3d_transpose_ncdhw, schedule_conv2d),
    ("batch_matmul.x86", nn.batch_matmul, schedule_batch_matmul),
):
    _of_two_operands(_task, _compute, _schedule)


def _given(*tensors: te.Tensor | None) -> list[te.Tensor]:
    return [tensor for tensor in tensors if tensor is not None]
