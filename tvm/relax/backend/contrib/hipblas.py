"""What hipBLAS takes: products with their ends. This release generates no code for it."""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix, register_patterns
from tvm.relax.transform import FuseOpsByPattern

from .cublas import matmul_patterns

register_patterns(matmul_patterns("hipblas"))


def partition_for_hipblas(mod: IRModule) -> IRModule:
    """The module with what hipBLAS takes in functions for it."""
    patterns = get_patterns_with_prefix("hipblas")
    return FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=True)(mod)
