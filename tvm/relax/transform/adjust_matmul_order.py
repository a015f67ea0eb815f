"""Products of three matrices in the order that needs fewer multiplications.

matmul(matmul(x, a), b)    ->    matmul(x, matmul(a, b))    where that costs less

Two factors that are known at compile time are multiplied with each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.arith import Analyzer, ConstIntBound, Extension
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.analysis import computable_at_compile_time
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call, Constant, Function, Var
from tvm.relax.op.linear_algebra import matmul
from tvm.relax.op.manipulate import permute_dims
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.struct_info_relations import tir_vars_in

from .reorder_permute_dims_after_concat import permutation
from .rewrite_calls import Rule, definition, rewriting_pass

_MATMUL, _PERMUTE = Op.get("relax.matmul"), Op.get("relax.permute_dims")


def _rule_of(func: Function, mod: IRModule) -> Rule:
    known = {var.vid for var in computable_at_compile_time(func)}
    analyzer = _analyzer(func)

    def is_known(expr: RelayExpr) -> bool:
        inner = expr.args[0] if isinstance(expr, Call) else expr
        return isinstance(inner, Constant) or (isinstance(inner, Var) and inner.vid in known)

    def rule(call: Call, builder: BlockBuilder) -> RelayExpr | None:
        found = _three_factors(call, builder)
        if found is None:
            return None
        a, b, c, is_left = found
        wants_left = _wants_left(a, b, c, is_left, is_known, analyzer)
        if wants_left is is_left:
            return None
        new: RelayExpr = matmul(matmul(a, b), c) if wants_left else matmul(a, matmul(b, c))
        return new

    return rule


def _wants_left(
    a: RelayExpr,
    b: RelayExpr,
    c: RelayExpr,
    is_left: bool,
    is_known: Callable[[RelayExpr], bool],
    analyzer: Analyzer,
) -> bool:
    """Whether the first two factors are to be multiplied first."""
    known = [is_known(factor) for factor in (a, b, c)]
    if all(known):
        return is_left
    if known[0] and known[1]:
        return True
    if known[1] and known[2]:
        return False
    (n, r), (_, s), (_, m) = [_matrix(factor) for factor in (a, b, c)]
    left, right = n * s * (r + m), r * m * (s + n)
    if analyzer.can_prove(left < right):
        return True
    if analyzer.can_prove(right < left):
        return False
    return is_left


def _analyzer(func: Function) -> Analyzer:
    """What is known of the function's symbolic variables: they are positive, and below given bounds."""
    analyzer = Analyzer()
    analyzer.enabled_extensions = Extension.ComparisonOfProductAndSum
    bounds: Any = func.attrs.get("tir_var_upper_bound") or {}
    for param in func.params:
        for var in tir_vars_in(param.struct_info):
            most = int(bounds.get(var.name, ConstIntBound.POS_INF))
            analyzer.update(var, ConstIntBound(1, most), override=True)
    return analyzer


def _dims(expr: RelayExpr) -> list[PrimExpr] | None:
    """The dimensions of a factor, which may be a permutation that is not normalised yet."""
    if isinstance(expr, Call):
        dims = _dims(expr.args[0])
        return None if dims is None else [*dims[:-2], dims[-1], dims[-2]]
    info = expr.struct_info_
    found = info.dimensions if isinstance(info, TensorStructInfo) else None
    return None if found is None else list(found)


def _matrix(expr: RelayExpr) -> tuple[PrimExpr, PrimExpr]:
    dims = _dims(expr) or []
    return dims[-2], dims[-1]


def _three_factors(
    call: Call, builder: BlockBuilder
) -> tuple[RelayExpr, RelayExpr, RelayExpr, bool] | None:
    """The factors of nested products, and whether the first two are multiplied first."""
    if call.op is not _MATMUL or not call.attrs.out_dtype.is_void:
        return None
    for position in (0, 1):
        factors = _factors(definition(call.args[position], builder), builder)
        if factors is None:
            continue
        found = (*factors, call.args[1]) if position == 0 else (call.args[0], *factors)
        ranks = [_dims(factor) for factor in found]
        if all([dims is not None and len(dims) >= 2 for dims in ranks]) and _is_plain(ranks):
            return found[0], found[1], found[2], position == 0
    return None


def _is_plain(ranks: list[Any]) -> bool:
    """Whether at most one factor has batch axes, so that neither order broadcasts more."""
    return sum([len(dims) > 2 for dims in ranks]) <= 1


def _factors(product: RelayExpr, builder: BlockBuilder) -> tuple[RelayExpr, RelayExpr] | None:
    """The factors of a product; of a transposed one both are exchanged and transposed."""
    if not isinstance(product, Call):
        return None
    if product.op is _MATMUL and product.attrs.out_dtype.is_void:
        return product.args[0], product.args[1]
    if product.op is _PERMUTE and product.struct_info.ndim == 2 and permutation(product) == (1, 0):
        inner = definition(product.args[0], builder)
        if isinstance(inner, Call) and inner.op is _MATMUL and inner.attrs.out_dtype.is_void:
            a, b = inner.args
            if a.struct_info.ndim == b.struct_info.ndim == 2:
                return permute_dims(b), permute_dims(a)
    return None


def AdjustMatmulOrder() -> Pass:
    """Multiply three matrices in the cheaper order."""
    return rewriting_pass("AdjustMatmulOrder", _rule_of)
