"""What cuBLAS takes: products with their ends. This release generates no code for it."""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix, register_patterns
from tvm.relax.backend.patterns import (
    make_matmul_dequantize_pattern,
    make_matmul_multiply_pattern,
    make_matmul_pattern,
)
from tvm.relax.backend.utils import dtype_of, has_leaking_intermediate_variables, shape_of
from tvm.relax.struct_info_relations import prove_equal
from tvm.relax.transform import FuseOpsByPattern, PatternCheckContext

_KINDS = {("float16", "float16"), ("float32", "float32"), ("int8", "int8")}
_FLOAT8 = {("e4m3_float8", "e4m3_float8"), ("e4m3_float8", "e5m2_float8"), ("e5m2_float8", "e4m3_float8")}  # fmt: skip


def is_blas_matmul(context: PatternCheckContext, kinds: set[tuple[str, str]]) -> bool:
    """Whether one call of a BLAS computes a product: whole matrices, of one batch."""
    if has_leaking_intermediate_variables(context):
        return False
    parts = context.annotated_expr
    lhs, rhs = parts["lhs"], parts["rhs"]
    a, b = shape_of(lhs), shape_of(rhs)
    if (dtype_of(lhs), dtype_of(rhs)) not in kinds or a is None or b is None:
        return False
    if len(a) < 2 or len(b) < 2 or not _is_static(a[-2:]) or not isinstance(b[-2], int):
        return False
    if "int8" in dtype_of(lhs) and not _is_aligned(a, b):
        return False
    if "bias" in parts and not _is_row(shape_of(parts["bias"])):
        return False
    return _is_one_batch(a[:-2], b[:-2])


def _is_static(dims: tuple[object, ...]) -> bool:
    return isinstance(dims[-1], int)


def _is_aligned(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    """Rows and columns of bytes come in fours."""
    return all([isinstance(d, int) and d % 4 == 0 for d in (a[-1], b[-1])])


def _is_row(bias: tuple[object, ...] | None) -> bool:
    return bias is not None and all([d == 1 for d in bias[:-1]])


def _is_one_batch(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    """The same batch, or one matrix for all."""
    if not a or not b:
        return not b or all([d == 1 for d in a]) or not a
    if len(a) != len(b):
        return all([d == 1 for d in a]) or all([d == 1 for d in b])
    if all([d == 1 for d in a]) or all([d == 1 for d in b]):
        return True
    return all([x == y if isinstance(x, int) and isinstance(y, int) else _same(x, y) for x, y in zip(a, b, strict=True)])  # fmt: skip


def _same(a: object, b: object) -> bool:
    return not isinstance(a, int) and not isinstance(b, int) and prove_equal(a, b)  # type: ignore[arg-type]


def matmul_patterns(prefix: str) -> list[tuple[object, ...]]:
    """The products that a BLAS of NVIDIA or AMD takes, under names that begin with `prefix`."""
    ends = {
        "": (False, None),
        "_bias": (True, None),
        "_bias_relu": (True, "relax.nn.relu"),
        "_bias_gelu": (True, "relax.nn.gelu"),
    }
    return [
        (
            f"{prefix}.matmul{'_transposed' if transposed else ''}{name}",
            *make_matmul_pattern(with_bias, activation, transposed),
            lambda context: is_blas_matmul(context, _KINDS),
        )
        for transposed in (False, True)
        for name, (with_bias, activation) in ends.items()
    ]


register_patterns(
    [
        *matmul_patterns("cublas"),
        (
            "cublas.matmul_transposed_dequantize",
            *make_matmul_dequantize_pattern(transposed_rhs=True),
            lambda context: is_blas_matmul(context, _FLOAT8),
        ),
        (
            "cublas.matmul_transposed_multiply",
            *make_matmul_multiply_pattern(transposed_rhs=True),
            lambda context: is_blas_matmul(context, _FLOAT8),
        ),
    ]
)


def partition_for_cublas(mod: IRModule, bind_constants: bool = False) -> IRModule:
    """The module with what cuBLAS takes in functions for it.

    Parameters
    ----------
    mod : IRModule
    bind_constants : bool
        Whether constants become part of the functions.
    """
    patterns = get_patterns_with_prefix("cublas")
    return FuseOpsByPattern(patterns, bind_constants=bind_constants, annotate_codegen=True)(mod)
