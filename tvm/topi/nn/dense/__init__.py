"""Matrix products."""

from ...rewrites import batch_matmul_legalize, dense_alter_layout, dense_legalize, matmul_legalize
from .compute import dense, dense_pack, matmul
from .dot import dense_dot

__all__ = [
    "batch_matmul_legalize",
    "dense_alter_layout",
    "dense_legalize",
    "matmul_legalize",
    "dense",
    "dense_dot",
    "dense_pack",
    "matmul",
]
