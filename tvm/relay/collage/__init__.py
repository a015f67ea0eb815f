"""Choosing among compilers by what parts of a program cost."""

from tvm.relay.transform.collage_costs import CostEstimator, CustomCostEstimator, MockCostEstimator

from .collage import arg_for, estimate_seconds, vm_estimate_seconds

__all__ = [
    "CostEstimator",
    "CustomCostEstimator",
    "MockCostEstimator",
    "arg_for",
    "estimate_seconds",
    "vm_estimate_seconds",
]
