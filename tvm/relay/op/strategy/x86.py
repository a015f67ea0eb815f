"""Strategies and shared schedules for x86 processors, under their classic names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, topi
from tvm.target import Target

from . import generic


def _on_cpu(
    schedule: Callable[..., te.Schedule], *shared: generic.SharedSchedule, attributes: str = ""
) -> generic.Schedule:
    """The schedule of outputs (and of attributes) for processors, in the place of shared ones."""

    def of_call(attrs: Any, outs: Sequence[te.Tensor], target: Target) -> te.Schedule:
        with target:
            return schedule(outs, *[attrs[name] for name in attributes.split()])

    for each in shared:
        each.register(of_call, "cpu")
    return of_call


schedule_injective_cpu = _on_cpu(
    topi.x86.schedule_injective,
    generic.schedule_injective,
    generic.schedule_pad,
    generic.schedule_transpose,
)
schedule_concatenate_cpu = _on_cpu(topi.x86.schedule_concatenate, generic.schedule_concatenate)
schedule_reduce_cpu = _on_cpu(topi.x86.schedule_reduce, generic.schedule_reduce)
schedule_pool_cpu = _on_cpu(topi.x86.schedule_pool, generic.schedule_pool, attributes="layout")
schedule_adaptive_pool_cpu = _on_cpu(
    topi.x86.schedule_adaptive_pool, generic.schedule_adaptive_pool
)


def __getattr__(name: str) -> Any:
    """Operators choose their own way to run on a processor: their strategies are for all targets."""
    if not name.endswith("_strategy_cpu"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(generic, name.removesuffix("_cpu"))
