"""Matrix products."""

from .compute import dense, dense_pack, matmul
from .dot import dense_dot

__all__ = [
    "dense",
    "dense_dot",
    "dense_pack",
    "matmul",
]
