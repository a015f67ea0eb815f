"""Bring quotients and remainders of one value back to a common form after loops were split and fused.

    (i * 4 + j) // 8 * 2 + ...   ->    i // 2 * 2 + ...

The simplifier's canonical form of linear expressions is that form, so this pass only asks for it.
"""

from __future__ import annotations

from tvm.tir.function import PrimFunc
from tvm.tir.transform.common import prim_func_pass
from tvm.tir.transform.simplify import StmtSimplifier


@prim_func_pass("tir.RenormalizeSplitPattern")
def renormalize_split_pattern(func: PrimFunc) -> PrimFunc:
    """Simplify indices."""
    return func.with_body(StmtSimplifier().visit(func.body))


RenormalizeSplitPattern = renormalize_split_pattern.factory
