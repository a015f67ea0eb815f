"""Drivers: ``lower`` and ``build``."""

from .build_module import build, build_lowered, get_binds, lower, schedule_to_module

__all__ = ["build", "build_lowered", "get_binds", "lower", "schedule_to_module"]
