"""Differences of expressions that share terms, such as the ends of a slice."""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal

from . import op
from .expr import Add, IntImm, Mul, Sub, int_imm


def difference(high: PrimExpr, low: PrimExpr) -> PrimExpr:
    """``high - low``, with equal terms left out; ``low + x`` less ``low`` is ``x`` itself."""
    if type(high) is Add:
        if structural_equal(high.a, low):
            return high.b
        if structural_equal(high.b, low):
            return high.a
    if type(low) is IntImm:
        return op.subtract(high, low)
    terms: dict[int, tuple[PrimExpr, int]] = {}
    constant = _collect(high, 1, terms) + _collect(low, -1, terms)
    result: PrimExpr = int_imm(high.dtype, 0)
    for term, count in terms.values():
        if count > 0:
            result = op.add(result, op.multiply(term, count))
        elif count < 0:
            result = op.subtract(result, op.multiply(term, -count))
    return op.add(result, constant)


def _collect(expr: PrimExpr, factor: int, terms: dict[int, tuple[PrimExpr, int]]) -> int:
    """Add ``factor * expr`` to the terms; the result is its constant part."""
    if type(expr) is IntImm:
        return factor * expr.value
    if type(expr) is Add:
        return _collect(expr.a, factor, terms) + _collect(expr.b, factor, terms)
    if type(expr) is Sub:
        return _collect(expr.a, factor, terms) + _collect(expr.b, -factor, terms)
    if type(expr) is Mul and type(expr.b) is IntImm:
        return _collect(expr.a, factor * expr.b.value, terms)
    for key, (term, count) in terms.items():
        if structural_equal(term, expr):
            terms[key] = term, count + factor
            return 0
    terms[len(terms)] = expr, factor
    return 0
