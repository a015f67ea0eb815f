"""Simplification through linear forms: equal sums get equal forms, and the cheaper writing wins.

(x//4)*4 + x%4      ->    x
(i*16 + j)//16      ->    i               for 0 <= j < 16
i*4 + j - i*4       ->    j
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tvm.ir.node import Node
from tvm.support.dtype import DType
from tvm.tir import expr as tir

from .linear import Linear
from .reduction import simplify_reduction

if TYPE_CHECKING:
    from .analyzer import Analyzer

_ARITHMETIC = frozenset(
    {tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod, tir.Div, tir.Mod, tir.Cast}
)
_COMPARISONS = frozenset({tir.LT, tir.LE, tir.EQ, tir.NE})
_COST: dict[type, int] = {
    tir.IntImm: 0, tir.Var: 1, tir.SizeVar: 1, tir.Mul: 2,
    tir.FloorDiv: 4, tir.FloorMod: 4, tir.Div: 4, tir.Mod: 4,
}  # fmt: skip


class CanonicalSimplifier:
    """Rewrites sums through their linear forms."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.memo: dict[int, Any] = {}
        self._costs: dict[int, int] = {}
        self._in_progress: set[int] = set()

    def visit(self, expr: Any) -> Any:
        """The canonical form of an interned expression."""
        found = self.memo.get(id(expr))
        if found is None:
            found = self._visit(expr)
            self.memo[id(expr)] = found
        return found

    def visit_atom(self, expr: Any) -> Any:
        """The canonical form of what is not a sum: its operands are."""
        found = self.memo.get(id(expr))
        if found is None:
            if id(expr) in self._in_progress:
                return expr
            self._in_progress.add(id(expr))
            try:
                found = self.analyzer.rewriter.rebuild(expr, self.visit)
            finally:
                self._in_progress.discard(id(expr))
            self.memo[id(expr)] = found
        return found

    def _visit(self, expr: Any) -> Any:
        cls = expr.__class__
        if cls is tir.Reduce:
            return simplify_reduction(self.analyzer, expr, self.visit)
        if cls in _ARITHMETIC and expr.dtype in ("int32", "int64"):
            form = self.analyzer.linear.visit(expr)
            return self._cheaper(self.emit(form, expr.dtype), expr)
        if cls in _COMPARISONS and expr.a.dtype in ("int32", "int64"):
            form = self.analyzer.linear.difference(expr.b, expr.a)
            decided = self.analyzer.prover.decide(cls, form)
            if decided is not None:
                return self.analyzer.rewriter.truth(decided, expr.a.dtype)
            rebuilt = self.visit_atom(expr)
            return self._cheaper(self._emit_comparison(cls, form, expr.a.dtype), rebuilt)
        return self.visit_atom(expr)

    def _cheaper(self, candidate: Any, expr: Any) -> Any:
        return candidate if self.cost(candidate) < self.cost(expr) else expr

    def cost(self, expr: Any) -> int:
        """A measure of an expression's size, divisions counting more."""
        found = self._costs.get(id(expr))
        if found is None:
            found = _COST.get(expr.__class__, 1)
            if expr.__class__ is not tir.IntImm:
                for child in expr.children():
                    found += self.cost(child)
            self._costs[id(expr)] = found
        return found

    # ---- from linear forms to expressions

    def emit(self, form: Linear, dtype: DType) -> Any:
        """An expression with the form's value: positive terms, negative ones, the constant."""
        form = self.analyzer.linear.recompose(form)
        return self._emit_sum(form, dtype)

    def _emit_sum(self, form: Linear, dtype: DType) -> Any:
        rewriter = self.analyzer.rewriter
        positive = [(key, factor) for key, factor in form.terms.items() if factor > 0]
        negative = [(key, factor) for key, factor in form.terms.items() if factor < 0]
        total: Any = None
        for key, factor in positive:
            term = self._emit_term(key, factor, dtype)
            total = term if total is None else rewriter.add(total, term)
        constant = form.constant
        if total is None and (constant or not negative):
            total, constant = rewriter.constant(constant, dtype), 0
        for key, factor in negative:
            if total is None:
                total = self._emit_term(key, factor, dtype)
            else:
                total = rewriter.sub(total, self._emit_term(key, -factor, dtype))
        if constant:
            total = rewriter.add(total, rewriter.constant(constant, dtype))
        return total

    def _emit_term(self, key: int, factor: int, dtype: DType) -> Any:
        rewriter = self.analyzer.rewriter
        atom = self.analyzer.linear.atoms[key]
        cls = atom.__class__
        if cls is tir.FloorDiv or cls is tir.FloorMod:
            atom = rewriter.binary(cls, atom.a, atom.b)
        if atom.dtype is not dtype:
            atom = rewriter.cast(dtype, atom)
        return atom if factor == 1 else rewriter.mul(atom, rewriter.constant(factor, dtype))

    def _emit_comparison(self, cls: Any, form: Linear, dtype: DType) -> Any:
        """`a < b` for a form of b - a: what is negative in it stands on the left."""
        rewriter = self.analyzer.rewriter
        form = self.analyzer.linear.recompose(form)
        factor = form.common_factor() if form.terms else 1
        if factor > 1:
            scaled = self._divided(cls, form, factor)
            if scaled is None:
                return rewriter.truth(cls is tir.NE, dtype)
            form = scaled
        left = Linear({key: -f for key, f in form.terms.items() if f < 0}, 0)
        right = Linear({key: f for key, f in form.terms.items() if f > 0}, 0)
        if form.constant < 0 and right.terms:
            left = left.shifted(-form.constant)
        else:
            right = right.shifted(form.constant)
        return rewriter.binary(cls, self._emit_sum(left, dtype), self._emit_sum(right, dtype))

    def _divided(self, cls: Any, form: Linear, factor: int) -> Linear | None:
        """The form of an equivalent comparison without the common factor; None if no integer is equal."""
        terms = {key: f // factor for key, f in form.terms.items()}
        if cls is tir.LE:  # factor*x + c >= 0
            return Linear(terms, form.constant // factor)
        if cls is tir.LT:  # factor*x + c - 1 >= 0
            return Linear(terms, (form.constant - 1) // factor + 1)
        if form.constant % factor:
            return None
        return Linear(terms, form.constant // factor)


class Presenter:
    """How results are shown: a negative constant is subtracted rather than added."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.interner = analyzer.interner
        self._memo: dict[int, Any] = {}

    def visit(self, expr: Any) -> Any:
        found = self._memo.get(id(expr))
        if found is None:
            found = self._memo[id(expr)] = self._visit(expr)
        return found

    def _visit(self, expr: Node) -> Any:
        result: Any = expr.map_children(self.visit)
        if result is not expr:
            result = self.interner.node(result)
        return self.shown(result)

    def shown(self, result: Any) -> Any:
        """An expression whose operands are shown already."""
        if type(result) is tir.Add and type(result.b) is tir.IntImm and result.b.value < 0:
            negated = self.interner.constant(-result.b.value, result.dtype)
            if negated.value > 0:
                return self.interner.binary(tir.Sub, result.a, negated)
        return result


class SignPresenter(Presenter):
    """How results of the rules alone are shown: an opposite is a difference from zero."""

    def shown(self, result: Any) -> Any:
        if type(result) is tir.Mul and type(result.b) is tir.IntImm and result.b.value == -1:
            return self.interner.binary(tir.Sub, self.interner.constant(0, result.dtype), result.a)
        return result
