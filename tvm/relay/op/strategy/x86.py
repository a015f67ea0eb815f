"""Strategies and shared schedules for x86 processors, under their classic names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.target import Target

from . import generic


@generic.schedule_injective.register("cpu")
def schedule_injective_cpu(attrs: Attrs, outs: Sequence[te.Tensor], target: Target) -> te.Schedule:
    """Elements in vectors, on all threads."""
    with target:
        return topi.x86.schedule_injective(outs)


generic.schedule_pad.register(schedule_injective_cpu, "cpu")
generic.schedule_transpose.register(schedule_injective_cpu, "cpu")


@generic.schedule_concatenate.register("cpu")
def schedule_concatenate_cpu(
    attrs: Attrs, outs: Sequence[te.Tensor], target: Target
) -> te.Schedule:
    """Parts in vectors, on all threads."""
    with target:
        return topi.x86.schedule_concatenate(outs)


@generic.schedule_reduce.register("cpu")
def schedule_reduce_cpu(attrs: Attrs, outs: Sequence[te.Tensor], target: Target) -> te.Schedule:
    """Sums in vectors, on all threads."""
    with target:
        return topi.x86.schedule_reduce(outs)


@generic.schedule_pool.register("cpu")
def schedule_pool_cpu(attrs: Any, outs: Sequence[te.Tensor], target: Target) -> te.Schedule:
    """Windows in vectors, on all threads."""
    with target:
        return topi.x86.schedule_pool(outs, attrs.layout)


@generic.schedule_adaptive_pool.register("cpu")
def schedule_adaptive_pool_cpu(
    attrs: Attrs, outs: Sequence[te.Tensor], target: Target
) -> te.Schedule:
    """The same, with windows of many sizes."""
    with target:
        return topi.x86.schedule_adaptive_pool(outs)


# operators choose their own way to run on a processor
softmax_strategy_cpu = generic.softmax_strategy
fast_softmax_strategy_cpu = generic.fast_softmax_strategy
log_softmax_strategy_cpu = generic.log_softmax_strategy
conv2d_strategy_cpu = generic.conv2d_strategy
conv2d_NCHWc_strategy_cpu = generic.conv2d_NCHWc_strategy
depthwise_conv2d_NCHWc_strategy_cpu = generic.depthwise_conv2d_NCHWc_strategy
conv2d_transpose_strategy_cpu = generic.conv2d_transpose_strategy
conv3d_transpose_strategy_cpu = generic.conv3d_transpose_strategy
conv3d_strategy_cpu = generic.conv3d_strategy
conv1d_strategy_cpu = generic.conv1d_strategy
matmul_strategy_cpu = generic.matmul_strategy
dense_strategy_cpu = generic.dense_strategy
dense_pack_strategy_cpu = generic.dense_pack_strategy
batch_matmul_strategy_cpu = generic.batch_matmul_strategy
sparse_dense_strategy_cpu = generic.sparse_dense_strategy
sparse_conv2d_strategy_cpu = generic.sparse_conv2d_strategy
roi_align_strategy_cpu = generic.roi_align_strategy
bitserial_conv2d_strategy_cpu = generic.bitserial_conv2d_strategy
bitserial_dense_strategy_cpu = generic.bitserial_dense_strategy
scatter_nd_strategy_cpu = generic.scatter_nd_strategy
conv2d_winograd_without_weight_transform_strategy_cpu = (
    generic.conv2d_winograd_without_weight_transform_strategy
)
concatenate_strategy_cpu = generic.concatenate_strategy
batch_norm_strategy_cpu = generic.batch_norm_strategy
