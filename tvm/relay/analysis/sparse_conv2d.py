"""Sparse weights of convolutions (classic name)."""

from .sparse import SparseAnalysisResult
from .sparse import process_conv2d as process_params

__all__ = ["SparseAnalysisResult", "process_params"]
