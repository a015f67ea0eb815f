"""The strategies of operators by their classic names, and schedules that many of them share.

@dense_strategy.register("my_target")
def dense_strategy_mine(attrs, inputs, out_type, target):
    found = relay.op.OpStrategy()
    found.add_implementation(wrap_compute_dense(my_dense), wrap_topi_schedule(schedule_my_dense))
    return found

Called, a strategy tells how an operator is computed on a target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.op import Op
from tvm.target import GenericFunc, Target

from .base import TargetStrategies, target_strategies
from .wrap import *  # noqa: F403
from .wrap import naive_schedule

Schedule = Callable[..., te.Schedule]


def _strategies(op_name: str) -> TargetStrategies:
    return target_strategies(Op.get(op_name))


class SharedSchedule(GenericFunc[Schedule]):
    """`schedule(attrs, outs, target)` for operators of one kind, by target key."""

    def __call__(
        self, attrs: Attrs | None, outs: Sequence[te.Tensor], target: Target | None
    ) -> te.Schedule:
        chosen = target or Target.current() or Target("llvm")
        with chosen:
            return self.choose(chosen)(attrs, outs, chosen)


def _shared(name: str, generic: Callable[[Any], te.Schedule]) -> SharedSchedule:
    return SharedSchedule(name, lambda attrs, outs, target: generic(outs))


softmax_strategy = _strategies("nn.softmax")
fast_softmax_strategy = _strategies("nn.fast_softmax")
log_softmax_strategy = _strategies("nn.log_softmax")
conv2d_strategy = _strategies("nn.conv2d")
conv2d_NCHWc_strategy = _strategies("nn.contrib_conv2d_NCHWc")
depthwise_conv2d_NCHWc_strategy = _strategies("nn.contrib_depthwise_conv2d_NCHWc")
conv2d_winograd_without_weight_transform_strategy = _strategies(
    "nn.contrib_conv2d_winograd_without_weight_transform"
)
conv2d_gemm_without_weight_transform_strategy = _strategies(
    "nn.contrib_conv2d_gemm_without_weight_transform"
)
conv3d_winograd_without_weight_transform_strategy = _strategies(
    "nn.contrib_conv3d_winograd_without_weight_transform"
)
deformable_conv2d_strategy = _strategies("nn.deformable_conv2d")
conv2d_transpose_strategy = _strategies("nn.conv2d_transpose")
conv3d_transpose_strategy = _strategies("nn.conv3d_transpose")
conv3d_strategy = _strategies("nn.conv3d")
conv1d_strategy = _strategies("nn.conv1d")
group_conv1d_strategy = _strategies("nn.conv1d")
conv1d_transpose_strategy = _strategies("nn.conv1d_transpose")
dilation2d_strategy = _strategies("image.dilation2d")
matmul_strategy = _strategies("nn.matmul")
dense_strategy = _strategies("nn.dense")
dense_pack_strategy = _strategies("nn.contrib_dense_pack")
batch_matmul_strategy = _strategies("nn.batch_matmul")
batch_norm_strategy = _strategies("nn.batch_norm")
sparse_dense_strategy = _strategies("nn.sparse_dense")
sparse_add_strategy = _strategies("nn.sparse_add")
sparse_conv2d_strategy = _strategies("nn.sparse_conv2d")
sort_strategy = _strategies("sort")
argsort_strategy = _strategies("argsort")
topk_strategy = _strategies("topk")
searchsorted_strategy = _strategies("searchsorted")
multibox_prior_strategy = _strategies("vision.multibox_prior")
multibox_transform_loc_strategy = _strategies("vision.multibox_transform_loc")
get_valid_counts_strategy = _strategies("vision.get_valid_counts")
nms_strategy = _strategies("vision.non_max_suppression")
all_class_nms_strategy = _strategies("vision.all_class_non_max_suppression")
regular_nms_strategy = _strategies("vision.regular_non_max_suppression")
roi_align_strategy = _strategies("vision.roi_align")
sparse_fill_empty_rows_strategy = _strategies("sparse_fill_empty_rows")
sparse_reshape_strategy = _strategies("sparse_reshape")
stft_strategy = _strategies("stft")
dft_strategy = _strategies("dft")
trilu_strategy = _strategies("trilu")
proposal_strategy = _strategies("vision.proposal")
scatter_elements_strategy = _strategies("scatter_elements")
scatter_nd_strategy = _strategies("scatter_nd")
bitserial_conv2d_strategy = _strategies("nn.bitserial_conv2d")
bitserial_dense_strategy = _strategies("nn.bitserial_dense")
correlation_strategy = _strategies("nn.correlation")
argwhere_strategy = _strategies("argwhere")
threefry_generate_strategy = _strategies("random.threefry_generate")
threefry_split_strategy = _strategies("random.threefry_split")
uniform_strategy = _strategies("random.uniform")
normal_strategy = _strategies("random.normal")
multinomial_strategy = _strategies("random.multinomial")
sliding_window_strategy = _strategies("sliding_window")
cumsum_strategy = _strategies("cumsum")
concatenate_strategy = _strategies("concatenate")
cumprod_strategy = _strategies("cumprod")
unique_strategy = _strategies("unique")
invert_permutation_strategy = _strategies("invert_permutation")
einsum_strategy = _strategies("einsum")
conv2d_backward_weight_strategy = _strategies("nn.conv2d_backward_weight")
layout_transform_strategy = _strategies("layout_transform")

schedule_injective = _shared("schedule_injective", topi.generic.schedule_injective)
schedule_concatenate = _shared("schedule_concatenate", topi.generic.schedule_injective)
schedule_pad = _shared("schedule_pad", topi.generic.schedule_injective)
schedule_transpose = _shared("schedule_transpose", topi.generic.schedule_injective)
schedule_reduce = _shared("schedule_reduce", topi.generic.schedule_reduce)
schedule_pool = SharedSchedule(
    "schedule_pool", lambda attrs, outs, target: topi.generic.schedule_pool(outs, attrs.layout)
)
schedule_pool_grad = _shared("schedule_pool_grad", topi.generic.schedule_pool_grad)
schedule_adaptive_pool = _shared("schedule_adaptive_pool", topi.generic.schedule_adaptive_pool)
schedule_lrn = _shared("schedule_lrn", topi.generic.schedule_lrn)
schedule_bitpack = _shared("schedule_bitpack", topi.generic.schedule_bitpack)
schedule_roi_pool = _shared("schedule_roi_pool", topi.generic.schedule_roi_pool)
schedule_sparse_transpose = _shared(
    "schedule_sparse_transpose", topi.generic.schedule_sparse_transpose
)
schedule_conv2d_winograd_weight_transform = SharedSchedule(
    "schedule_conv2d_winograd_weight_transform", naive_schedule
)
schedule_conv3d_winograd_weight_transform = SharedSchedule(
    "schedule_conv3d_winograd_weight_transform", naive_schedule
)
schedule_conv2d_gemm_weight_transform = SharedSchedule(
    "schedule_conv2d_gemm_weight_transform", naive_schedule
)
