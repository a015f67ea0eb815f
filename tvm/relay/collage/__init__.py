"""Choosing among compilers by what parts of a program cost."""

from tvm.relay.transform.collage_costs import CostEstimator, CustomCostEstimator, MockCostEstimator

from .collage import (
    MEASURE_NUMBER,
    MEASURE_REPEAT,
    WARMUP_MIN_REPEAT_MS,
    arg_for,
    estimate_seconds,
    vm_estimate_seconds,
)

__all__ = [
    "MEASURE_NUMBER",
    "MEASURE_REPEAT",
    "WARMUP_MIN_REPEAT_MS",
    "CostEstimator",
    "CustomCostEstimator",
    "MockCostEstimator",
    "arg_for",
    "estimate_seconds",
    "vm_estimate_seconds",
]
