"""Instruments of passes."""

from . import instrument

__all__ = ["instrument"]
