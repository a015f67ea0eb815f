"""Drivers: ``lower`` and ``build``."""

from .build_module import (
    OperatorModule,
    build,
    build_lowered,
    get_binds,
    lower,
    schedule_to_module,
)

__all__ = ["OperatorModule", "build", "build_lowered", "get_binds", "lower", "schedule_to_module"]
