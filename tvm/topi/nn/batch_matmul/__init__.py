"""Batches of matrix products."""

from ...rewrites import batch_matmul_legalize
from .compute import batch_matmul

__all__ = [
    "batch_matmul",
    "batch_matmul_legalize",
]
