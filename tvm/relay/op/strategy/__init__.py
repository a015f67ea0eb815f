"""How operators become kernels on a target, and by which of several ways."""

import importlib as _importlib
from typing import Any as _Any

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


def __getattr__(name: str) -> _Any:
    """The strategies by their classic names, which need the operators."""
    if not name.startswith("_"):
        found = getattr(_importlib.import_module(f"{__name__}.generic"), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
