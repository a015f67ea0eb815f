"""Drivers: ``lower``, ``build`` and ``compile``."""

from .build_module import build, build_lowered, get_binds, lower, schedule_to_module
from .compile import compile

__all__ = ["build", "build_lowered", "compile", "get_binds", "lower", "schedule_to_module"]
