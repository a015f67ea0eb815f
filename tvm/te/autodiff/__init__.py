"""Reverse-mode differentiation of tensor expressions."""

from .gradient import gradient

__all__ = ["gradient"]
