"""How operators become kernels on a target, and by which of several ways."""

from .base import (
    FCompute,
    FSchedule,
    OpImplementation,
    OpSpecialization,
    OpStrategy,
    TargetStrategies,
    get_valid_implementations,
    is_computable,
    own_strategy,
    select_implementation,
    strategy_of,
    target_strategies,
)

__all__ = [
    "FCompute",
    "FSchedule",
    "OpImplementation",
    "OpSpecialization",
    "OpStrategy",
    "TargetStrategies",
    "get_valid_implementations",
    "is_computable",
    "own_strategy",
    "select_implementation",
    "strategy_of",
    "target_strategies",
]
