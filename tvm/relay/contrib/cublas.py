"""What cuBLAS takes: dense layers and products of matrices."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule

from .offload import Params, dtype_of, nearest_call, op_pattern, partition_for
from .register import register_pattern_table

PRODUCTS = ("nn.matmul", "nn.batch_matmul", "nn.dense")
# of the operands, and of the result
DTYPES = {
    ("float16", "float16"),
    ("float32", "float32"),
    ("float64", "float64"),
    ("float16", "float32"),
    ("int8", "int32"),
}


def partition_for_cublas(mod: IRModule, params: Params | None = None) -> IRModule:
    """The module with products in functions for cuBLAS; `params` are values of parameters of `main`."""
    return partition_for("cublas", pattern_table(), mod, params, is_merged=False)


@register_pattern_table("cublas")
def pattern_table() -> list[Any]:
    """The composite functions."""
    return [
        (f"cublas.{name.removeprefix('nn.')}", op_pattern(name, arity=2), _check(name))
        for name in PRODUCTS
    ]


def _check(name: str) -> Any:
    def check(found: RelayExpr) -> bool:
        call = nearest_call(found, name)
        left, right = (dtype_of(arg) for arg in call.args)
        return left == right and (left, dtype_of(call)) in DTYPES

    return check
