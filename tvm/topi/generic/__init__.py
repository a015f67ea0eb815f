"""Schedules that suit any target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tvm import te

from ..argument_checks import guarded
from ..modules import module_attribute
from ..nn.workload import fallback_schedule_cpu_1x1_int8, fallback_schedule_cpu_common_int8
from .schedules import (
    default_schedule,
    schedule_extern,
    schedule_injective,
    schedule_injective_from_existing,
)

_Schedule: TypeAlias = Callable[["te.Tensor | Sequence[te.Tensor]"], te.Schedule]


def schedule_pool(outs: te.Tensor | Sequence[te.Tensor], layout: str = "NCHW") -> te.Schedule:
    """Pooling: loops in order."""
    return default_schedule(outs, True)


_CONVOLUTIONS = (
    "schedule_conv1d_ncw", "schedule_conv1d_nwc", "schedule_group_conv1d_ncw",
    "schedule_group_conv1d_nwc", "schedule_conv2d_hwcn", "schedule_conv2d_nchw",
    "schedule_conv2d_nhwc_pack", "schedule_conv2d_nhwc", "schedule_conv2d_NCHWc",
    "schedule_conv2d_NCHWc_int8", "schedule_conv2d_winograd_weight_transform",
    "schedule_conv2d_gemm_weight_transform", "schedule_conv3d_winograd_weight_transform",
    "schedule_conv2d_winograd_without_weight_transform",
    "schedule_conv2d_winograd_nnpack_weight_transform", "schedule_conv3d_ncdhw",
    "schedule_conv3d_ndhwc", "schedule_conv3d_transpose_ncdhw", "schedule_conv2d_transpose_nchw",
    "schedule_conv1d_transpose_ncw", "schedule_group_conv1d_transpose_ncw",
    "schedule_depthwise_conv2d_nchw", "schedule_depthwise_conv2d_nhwc",
    "schedule_depthwise_conv2d_NCHWc", "schedule_group_conv2d_nchw",
    "schedule_group_conv2d_transpose_nchw", "schedule_group_conv3d_transpose_ncdhw",
    "schedule_group_conv2d_nhwc", "schedule_deformable_conv2d_nchw",
    "schedule_deformable_conv2d_nhwc", "schedule_bitserial_conv2d_nchw",
    "schedule_bitserial_conv2d_nhwc", "schedule_dilation2d_nchw", "schedule_dilation2d_nhwc",
    "schedule_correlation_nchw", "schedule_sparse_conv2d",
)  # fmt: skip
_OTHERS = (
    "schedule_reduce", "schedule_softmax", "schedule_fast_softmax", "schedule_matmul",
    "schedule_dense", "schedule_bitserial_dense", "schedule_pool_grad", "schedule_adaptive_pool",
    "schedule_binarize_pack", "schedule_bitpack", "schedule_binary_dense", "schedule_lrn",
    "schedule_sparse_dense", "schedule_sparse_transpose", "schedule_batch_matmul",
    "schedule_batch_norm", "schedule_lstm", "schedule_einsum", "schedule_argwhere",
    "schedule_sparse_fill_empty_rows", "schedule_unique", "schedule_sort", "schedule_argsort",
    "schedule_topk", "schedule_reorg", "schedule_get_valid_counts", "schedule_nms",
    "schedule_multibox_prior", "schedule_multibox_transform_loc", "schedule_multibox_detection",
    "schedule_roi_align", "schedule_roi_pool", "schedule_proposal",
)  # fmt: skip


def _named(name: str) -> _Schedule:
    """The schedule of that name: loops in order, what is injective inlined."""

    def schedule(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
        return default_schedule(outs, True)

    schedule.__name__ = schedule.__qualname__ = name
    schedule.__doc__ = "Loops in order; what is injective is inlined."
    return schedule


# classic programs name one of these for each operator; off the targets with schedules of their own
# all are the same
globals().update({name: _named(name) for name in (*_CONVOLUTIONS, *_OTHERS)})

__all__ = [
    "default_schedule", "fallback_schedule_cpu_1x1_int8", "fallback_schedule_cpu_common_int8",
    "schedule_extern", "schedule_injective",
    "schedule_injective_from_existing", "schedule_pool", *_CONVOLUTIONS, *_OTHERS,
]  # fmt: skip

globals().update(guarded(__name__, globals()))
if TYPE_CHECKING:

    def __getattr__(name: str) -> _Schedule: ...
else:
    __getattr__ = module_attribute(__name__)
