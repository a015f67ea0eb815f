"""Sparse weights of dense layers (classic name)."""

from .sparse import SparseAnalysisResult
from .sparse import process_dense as process_params

__all__ = ["SparseAnalysisResult", "process_params"]
