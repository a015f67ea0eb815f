"""Analyses of stages as global functions, which classic programs call by name."""

from __future__ import annotations

from typing import Any

from tvm._ffi.registry import register_func

from .loop_state import as_object
from .sketch import stage_analysis as analysis


@register_func("auto_scheduler.SearchPolicyUtilsIsTiled")
def _is_tiled(stage: Any) -> bool:
    return analysis.is_tiled(stage)


@register_func("auto_scheduler.SearchPolicyUtilsHasCacheReadStage")
def _has_cache_read(state: Any, stage_id: int) -> bool:
    return analysis.has_cache_read(as_object(state), stage_id)


@register_func("auto_scheduler.SearchPolicyUtilsHasCacheWriteStage")
def _has_cache_write(state: Any, stage_id: int) -> bool:
    return analysis.has_cache_write(as_object(state), stage_id)


@register_func("auto_scheduler.SearchPolicyUtilsHasRfactorStage")
def _has_rfactor(state: Any, stage_id: int) -> bool:
    return analysis.has_rfactor(as_object(state), stage_id)


@register_func("auto_scheduler.SearchPolicyUtilsHasCrossThreadReduction")
def _has_cross_thread_reduction(state: Any, stage_id: int) -> bool:
    return analysis.has_cross_thread_reduction(as_object(state), stage_id)


@register_func("auto_scheduler.SearchPolicyUtilsGetConsumers")
def _consumers(task: Any, state: Any, stage_id: int) -> list[int]:
    return analysis.consumers(as_object(state), stage_id)


@register_func("auto_scheduler.SearchPolicyUtilsIsElementwiseMatch")
def _is_elementwise_match(task: Any, state: Any, stage_id: int, target_stage_id: int) -> bool:
    return analysis.is_elementwise_match(as_object(state), stage_id, target_stage_id)
