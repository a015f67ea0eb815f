"""Operators that passes introduce."""

from .builtin import alloc_tensor, stop_lift_params

__all__ = ["alloc_tensor", "stop_lift_params"]
