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
from tvm.target import GenericFunc, Target

from ..named import operator_named
from .base import TargetStrategies, target_strategies
from .wrap import *  # noqa: F403
from .wrap import naive_schedule

Schedule = Callable[..., te.Schedule]
_PREFIXES = ("nn.", "nn.contrib_", "vision.", "image.", "random.")


def __getattr__(name: str) -> TargetStrategies:
    """The strategies of an operator, `dense_strategy` those of `nn.dense`."""
    short = name.removesuffix("_strategy")
    found = None if short == name else operator_named(short, _PREFIXES)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return target_strategies(found)


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
schedule_conv2d_winograd_weight_transform = SharedSchedule("winograd", naive_schedule)
schedule_conv3d_winograd_weight_transform = SharedSchedule("winograd", naive_schedule)
schedule_conv2d_gemm_weight_transform = SharedSchedule("gemm", naive_schedule)
