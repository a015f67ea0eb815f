"""Sums of terms with constant factors: their differences, such as of the ends of a slice, and their flat form."""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter

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


class SumExpander(Rewriter):
    """Multiplies sums out: ``(a * 4 + (b + c)) * 2`` becomes ``a * 8 + b * 2 + c * 2``."""

    def visit_add(self, e: Add) -> PrimExpr:
        return self._expanded(e)

    def visit_sub(self, e: Sub) -> PrimExpr:
        return self._expanded(e)

    def visit_mul(self, e: Mul) -> PrimExpr:
        return self._expanded(e)

    def _expanded(self, e: Add | Sub | Mul) -> PrimExpr:
        e = self.rewrite_children(e)
        if is_flat_sum(e) or not e.dtype.is_int or e.dtype.lanes != 1:
            return e
        terms: list[tuple[PrimExpr, int]] = []
        _list_terms(e, 1, terms)
        added = [position for position, (_, factor) in enumerate(terms) if factor > 0]
        if added:  # a sum begins with what is added
            terms.insert(0, terms.pop(added[0]))
        result, factor = terms[0]
        result = op.multiply(result, factor)
        for term, factor in terms[1:]:
            product = op.multiply(term, abs(factor))
            result = op.add(result, product) if factor > 0 else op.subtract(result, product)
        return result


def is_flat_sum(e: PrimExpr) -> bool:
    """Whether an expression is a chain of terms, each at most with a constant factor."""
    while isinstance(e, (Add, Sub)):
        if not _is_term(e.b):
            return False
        e = e.a
    return _is_term(e)


def _is_term(e: PrimExpr) -> bool:
    if isinstance(e, Mul) and isinstance(e.b, IntImm):
        e = e.a
        return not isinstance(e, (Add, Sub)) and not (isinstance(e, Mul) and type(e.b) is IntImm)
    return not isinstance(e, (Add, Sub))


def _list_terms(e: PrimExpr, factor: int, terms: list[tuple[PrimExpr, int]]) -> None:
    """Append the terms of ``factor * e`` in order."""
    if type(e) is Add or type(e) is Sub:
        _list_terms(e.a, factor, terms)
        _list_terms(e.b, factor if type(e) is Add else -factor, terms)
    elif type(e) is Mul and type(e.b) is IntImm:
        _list_terms(e.a, factor * e.b.value, terms)
    else:
        terms.append((e, factor))
