"""Schedules of matrix products under the classic module name."""

from __future__ import annotations

from ..nn.dense.cpu import (
    FEW_ROWS,
    MatmulConfig,
    choose_matmul,
    packed_columns,
    schedule_dense_nopack,
    schedule_dense_pack,
)
from ..nn.dense.dot_x86 import dense_dot_block, schedule_dense_dot
from ..nn.dense.library import (
    dense_cblas,
    dense_dnnl,
    dense_mkl,
    matmul_blas_common,
    matmul_cblas,
    matmul_dnnl,
    matmul_mkl,
    schedule_product,
)
from ..nn.dense.open_product import matmul_pack, schedule_matmul_pack
from ..nn.dense.pack_cpu import PackedMatmulConfig, choose_matmul_pack
from .templates import (
    dense_dynamic,
    dense_int8,
    dense_nopack,
    dense_pack,
    schedule_dense_dynamic,
    schedule_dense_int8,
)

schedule_dense_cblas = schedule_dense_mkl = schedule_dense_dnnl = schedule_product
schedule_matmul_cblas = schedule_matmul_mkl = schedule_matmul_dnnl = schedule_product

__all__ = [
    "FEW_ROWS",
    "dense_dynamic",
    "dense_int8",
    "dense_nopack",
    "dense_pack",
    "schedule_dense_dynamic",
    "schedule_dense_int8",
    "MatmulConfig",
    "PackedMatmulConfig",
    "choose_matmul",
    "choose_matmul_pack",
    "dense_cblas",
    "dense_dnnl",
    "dense_dot_block",
    "dense_mkl",
    "matmul_blas_common",
    "matmul_cblas",
    "matmul_dnnl",
    "matmul_mkl",
    "matmul_pack",
    "packed_columns",
    "schedule_dense_cblas",
    "schedule_dense_dnnl",
    "schedule_dense_dot",
    "schedule_dense_mkl",
    "schedule_dense_nopack",
    "schedule_dense_pack",
    "schedule_matmul_cblas",
    "schedule_matmul_dnnl",
    "schedule_matmul_mkl",
    "schedule_matmul_pack",
]
