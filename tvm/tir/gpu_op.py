"""Calls of the intrinsics of graphics processors: matrix units, PTX, Metal's simdgroups.

Each is one row: the parameters of its function, and the data type of the call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype

from .builtin import VOID, intrinsic_call
from .expr import HANDLE

# name: (parameters, dtype of the call; None: the first parameter is it)
ROWS: dict[str, tuple[str, DType | None]] = {
    # matrix units
    "tvm_load_matrix_sync": ("fragment m n k index buffer_ptr stride layout", HANDLE),
    "tvm_mma_sync": (
        "fragment_d index_d fragment_a index_a fragment_b index_b fragment_c index_c", HANDLE,
    ),
    "tvm_bmma_sync": (
        "fragment_d index_d fragment_a index_a fragment_b index_b fragment_c index_c", HANDLE,
    ),
    "tvm_fill_fragment": ("fragment m n k index value", HANDLE),
    "tvm_store_matrix_sync": ("fragment m n k index buffer_ptr stride layout", HANDLE),
    "mma_store": ("dtype m n dst_ptr src_ptr src_offset dst_stride", None),
    "mma_fill": ("dtype local_size local_ptr offset", None),
    # PTX
    "ptx_mma": (
        "dtype shape A_layout B_layout A_dtype B_dtype C_dtype multiplicand_a a_index "
        "multiplicand_b b_index accumulator c_index saturate operator=None", None,
    ),
    "ptx_mma_sp": (
        "dtype shape A_layout B_layout A_dtype B_dtype C_dtype multiplicand_a a_index "
        "multiplicand_b b_index accumulator c_index metadata meta_index sparse_selector saturate",
        None,
    ),
    "ptx_ldmatrix": ("dtype trans num type local_ptr local_offset smem_ptr smem_offset", None),
    "ptx_cp_async": ("dtype shared_ptr shared_offset global_ptr global_offset bytes", None),
    "ptx_cp_async_bulk": (
        "dtype shared_ptr shared_offset global_ptr global_offset bytes barrier_id", None,
    ),
    "ptx_commit_group": ("", VOID),
    "ptx_wait_group": ("num", VOID),
    "ptx_cp_async_barrier": ("barrier_id", VOID),
    "ptx_init_barrier_thread_count": ("barrier_id thread_count", VOID),
    "ptx_arrive_barrier": ("barrier_id", VOID),
    "ptx_arrive_barrier_expect_tx": ("barrier_id byte_count", VOID),
    "ptx_wait_barrier": ("barrier_id", VOID),
    "create_barriers": ("barrier_count", VOID),
    # simdgroups
    "make_filled_simdgroup_matrix": ("d index value col=8 row=8", HANDLE),
    "simdgroup_load": ("d index ptr stride col=8 row=8 transpose_matrix=False", HANDLE),
    "simdgroup_store": ("d index ptr stride col=8 row=8 transpose_matrix=False", HANDLE),
    "simdgroup_multiply_accumulate": ("d index_d a index_a b index_b c index_c", HANDLE),
}  # fmt: skip
_DEFAULTS = {"None": None, "8": 8, "False": False}


def _function(name: str, parameters: str, dtype: DType | None) -> Callable[..., PrimExpr]:
    signature = inspect.Signature([_parameter(text) for text in parameters.split()])

    def build(*args: Any, **keywords: Any) -> PrimExpr:
        bound = signature.bind(*args, **keywords)
        bound.apply_defaults()
        values = [value for value in bound.arguments.values() if value is not None]
        if dtype is not None:
            return intrinsic_call(dtype, name, values)
        return intrinsic_call(as_dtype(values[0]), name, values[1:])

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"Call the intrinsic ``tir.{name}``."
    build.__signature__ = signature  # type: ignore[attr-defined]
    return build


def _parameter(text: str) -> inspect.Parameter:
    name, _, default = text.partition("=")
    value = _DEFAULTS[default] if default else inspect.Parameter.empty
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value)


FUNCTIONS = {name: _function(name, *row) for name, row in ROWS.items()}
globals().update(FUNCTIONS)

__all__ = list(ROWS)
