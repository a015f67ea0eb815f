"""Executors of compiled models."""

from .aot_executor import AotModule

__all__ = ["AotModule"]
