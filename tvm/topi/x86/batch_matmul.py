"""Batches of matrix products under the classic module name."""

from __future__ import annotations

from ..nn.batch_matmul.cpu import schedule_batch_matmul
from ..nn.batch_matmul.dot import batch_matmul_dot, find_batch_dot
from ..nn.dense.library import (
    batch_matmul_blas_common,
    batch_matmul_cblas,
    batch_matmul_mkl,
    schedule_product,
)
from .templates import batch_matmul

schedule_batch_matmul_int8 = schedule_batch_matmul
schedule_batch_matmul_cblas = schedule_batch_matmul_mkl = schedule_product

__all__ = [
    "batch_matmul",
    "batch_matmul_blas_common",
    "schedule_batch_matmul_int8",
    "batch_matmul_cblas",
    "batch_matmul_dot",
    "batch_matmul_mkl",
    "find_batch_dot",
    "schedule_batch_matmul",
    "schedule_batch_matmul_cblas",
    "schedule_batch_matmul_mkl",
]
