"""Batches of matrix products."""

from .compute import batch_matmul

__all__ = [
    "batch_matmul",
]
