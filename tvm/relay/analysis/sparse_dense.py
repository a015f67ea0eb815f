"""Sparse weights of dense layers (classic name)."""

from .sparse import SparseAnalysisResult
from .sparse import dense_weights as _search_dense_op_weight
from .sparse import process_dense as process_params

__all__ = ["SparseAnalysisResult", "_search_dense_op_weight", "process_params"]
