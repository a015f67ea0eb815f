"""The analyzer: what is known about integer expressions, and their simple forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Flag, IntEnum
from typing import Any, cast

from tvm.ir import extension
from tvm.ir.expr import PrimExpr
from tvm.ir.rule_compiler import report
from tvm.support.scope import deep
from tvm.tir import expr as tir
from tvm.tir.stmt_functor import substitute as substitute_vars

from .and_of_ors import and_of_ors
from .canonical_simplify import CanonicalSimplifier, Presenter, SignPresenter
from .const_int_bound import (
    NEG_INF,
    POS_INF,
    ConstIntBound,
    ConstIntBoundAnalyzer,
    intersect_bounds,
)
from .extensions import (
    BranchSimplifier,
    ProductComparer,
    holds_by_symbolic_bounds,
    holds_for_each_vscale,
)
from .facts import Facts, reads_memory
from .interning import Interner
from .interval import IntervalSet, evaluate_set
from .linear import Linear, LinearForms
from .modular_set import ModularSet, ModularSetAnalyzer
from .prover import Prover
from .rewrite_simplify import RewriteSimplifier
from .rules import STATISTICS


class ProofStrength(IntEnum):
    """How hard to try: the rules alone, or also interval arithmetic on symbolic ends of ranges."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


class Extension(Flag):
    """What ``simplify`` and ``can_prove`` do beyond their rules.

    Inequalities are always followed from one to the next, so ``TransitivelyProveInequalities`` changes nothing.
    """

    NoExtensions = 0
    TransitivelyProveInequalities = 1
    ConvertBooleanToAndOfOrs = 2
    ApplyConstraintsToBooleanBranches = 4
    ComparisonOfProductAndSum = 8


class ConstraintScope:
    """The extent of a condition: entered, it holds; left, it is forgotten.

    Parameters
    ----------
    fenter : callable
        Makes the condition hold and returns what ends that, or None.
    """

    def __init__(self, fenter: Callable[[], Callable[[], Any] | None]) -> None:
        self._fenter = fenter
        self._fexit: Callable[[], Any] | None = None

    def __enter__(self) -> None:
        self._fexit = self._fenter()

    def __exit__(self, *error: object) -> None:
        if self._fexit is not None:
            self._fexit()


class Analyzer:
    """Simplifies and proves, remembering what it is told about variables.

    Results are kept, so one analyzer serves a whole pass.
    """

    def __init__(self) -> None:
        self._extensions = Extension.NoExtensions
        self._ranges: dict[tir.Var, tir.Range] = {}  # that variables were bound to
        self.interner = Interner()
        self.facts = Facts(self)
        self.bounds = ConstIntBoundAnalyzer(self)
        self.modular = ModularSetAnalyzer(self)
        self.rewriter = RewriteSimplifier(self)
        self.linear = LinearForms(self)
        self.canonical = CanonicalSimplifier(self)
        self.prover = Prover(self)
        self._presenter = Presenter(self)
        self._signs = SignPresenter(self)

    # ---- questions

    @deep
    def const_int_bound(self, expr: Any) -> ConstIntBound:
        """The least and greatest value that the expression can have."""
        low, high = self.bounds.visit(self.interner.intern(tir.as_expr(expr)))
        return ConstIntBound(low, high)

    @deep
    def modular_set(self, expr: Any) -> ModularSet:
        """The coefficient and base of the values that the expression can have."""
        return ModularSet(*self.modular.visit(self.interner.intern(tir.as_expr(expr))))

    @deep
    def simplify(self, expr: Any, steps: int = 2) -> PrimExpr:
        """A simple expression of equal value; the same object if it is simple already.

        Parameters
        ----------
        expr : PrimExpr
            The expression.
        steps : int
            How many of the rewriting and canonical simplifiers run, in turn.
        """
        node = self.interner.intern(tir.as_expr(expr))
        result = node
        for step in range(steps):
            if isinstance(result, tir.ConstExpr):
                break
            simplifier = self.canonical if step % 2 else self.rewriter
            result = simplifier.visit(result)
        shown = self._present(expr, node, result)
        return self._extended(shown) if self._extensions else shown

    def plainly_simplified(self, expr: Any) -> PrimExpr:
        """What ``simplify`` gives without extensions."""
        extensions, self._extensions = self._extensions, Extension.NoExtensions
        try:
            return self.simplify(expr)
        finally:
            self._extensions = extensions

    def _extended(self, expr: PrimExpr) -> PrimExpr:
        if Extension.ComparisonOfProductAndSum in self._extensions:
            expr = ProductComparer(self).visit(expr)
        if Extension.ApplyConstraintsToBooleanBranches in self._extensions:
            expr = BranchSimplifier(self).visit(expr)
        if Extension.ConvertBooleanToAndOfOrs in self._extensions:
            expr = and_of_ors(self, expr)
        return expr

    @property
    def enabled_extensions(self) -> Extension:
        """The extensions that are on."""
        return self._extensions

    @enabled_extensions.setter
    def enabled_extensions(self, flags: Extension | int) -> None:
        self._extensions = Extension(flags)

    @deep
    def rewrite_simplify(self, expr: Any) -> PrimExpr:
        """The expression simplified by the rule tables; negative constants stay addends, as the rules leave them."""
        node = self.interner.intern(tir.as_expr(expr))
        result = self.rewriter.visit(node)
        shown = expr if result is node and isinstance(expr, PrimExpr) else self._signs.visit(result)
        return self._extended(shown) if self._extensions else cast(PrimExpr, shown)

    @deep
    def canonical_simplify(self, expr: Any) -> PrimExpr:
        """The expression simplified through linear forms."""
        node = self.interner.intern(tir.as_expr(expr))
        return self._present(expr, node, self.canonical.visit(self.rewriter.visit(node)))

    def _present(self, expr: Any, node: Any, result: Any) -> PrimExpr:
        shown = self._presenter.visit(result)
        unchanged = shown is node and isinstance(expr, PrimExpr)
        return cast(PrimExpr, expr if unchanged else shown)

    @deep
    def can_prove(self, expr: Any, strength: ProofStrength = ProofStrength.DEFAULT) -> bool:
        """Whether the condition is known to hold always.

        Parameters
        ----------
        expr : PrimExpr
            The condition.
        strength : ProofStrength
            Whether to look at symbolic ends of ranges too, where the rules find no proof.
        """
        node = self.interner.intern(tir.as_expr(expr))
        result = self.rewriter.visit(node)
        if type(result) is tir.IntImm:
            return bool(result.value)
        if self._holds(self.canonical.visit(result)):
            return True
        if self._extensions and self._holds(self._extended(result)):
            return True
        if self.rewriter.has_vscale and holds_for_each_vscale(self, result):
            return True
        tries_harder = ProofStrength(strength) is ProofStrength.SYMBOLIC_BOUND
        return tries_harder and holds_by_symbolic_bounds(self, result, self._ranges)

    def _holds(self, condition: Any) -> bool:
        cls = condition.__class__
        if cls is tir.IntImm:
            return bool(condition.value)
        if cls is tir.And:
            return self._holds(condition.a) and self._holds(condition.b)
        return False

    def can_prove_equal(self, lhs: Any, rhs: Any) -> bool:
        """Whether both are known to be equal."""
        lhs, rhs = tir.as_expr(lhs), tir.as_expr(rhs)
        if lhs is rhs:
            return True
        if type(lhs) is tir.IntImm and type(rhs) is tir.IntImm:
            return bool(lhs.value == rhs.value)
        return self.can_prove(lhs.equal(rhs))

    def int_set(self, expr: Any, dom_map: Mapping[Any, Any]) -> IntervalSet:
        """The set of values that the expression has while variables run over their sets."""
        return evaluate_set(self, tir.as_expr(expr), dom_map)

    @property
    def rewrite_simplify_stats(self) -> str:
        """Tries, hits and time of each rule in this process, if the knob TVM_RULE_STATS is on."""
        return report(STATISTICS)

    def reset_rewrite_simplify_stats(self) -> None:
        """Start counting anew."""
        for counted in STATISTICS.values():
            counted.tries = counted.hits = 0
            counted.seconds = 0.0

    # ---- news

    @deep
    def bind(self, var: tir.Var, expr: Any, allow_override: bool = False) -> None:
        """Note that a variable has a value, or runs over a `Range`."""
        if self.interner.has_seen(var):
            self.facts.forget(var)
            self.forget_results()
        self.interner.intern(var)
        self._ranges.pop(var, None)
        if isinstance(expr, tir.Range):
            self._ranges[var] = expr
            self._bind_range(var, expr)
            return
        value = self.rewriter.visit(self.interner.intern(tir.as_expr(expr)))
        if value is not var and not reads_memory(value):
            self.facts.set_value(var, self.rewriter.cast(var.dtype, value))
        if var.dtype.is_int or var.dtype.is_uint:
            self.facts.set_bound(var, self.bounds.visit(value))
            self.facts.set_residue(var, self.modular.visit(value))
        self.forget_results()

    def _bind_range(self, var: tir.Var, domain: tir.Range) -> None:
        first = self.rewriter.visit(self.interner.intern(domain.min))
        extent = self.rewriter.visit(self.interner.intern(domain.extent))
        if type(extent) is tir.IntImm and extent.value == 1:
            self.facts.set_value(var, self.rewriter.cast(var.dtype, first))
        start = self.linear.visit(first)
        stop = start.plus(self.linear.visit(extent))
        itself = Linear({id(var): 1}, 0)
        self.linear.atoms[id(var)] = var
        low = self.linear.bound(start)[0]
        high = self.linear.bound(stop.shifted(-1))[1]
        known = self.bounds.visit(var)
        if low <= high:
            self.facts.set_bound(var, intersect_bounds(known, (low, high)))
        if start.terms:
            self.facts.add_range_end(itself.plus(start, -1), var)
        if stop.terms:
            self.facts.add_range_end(stop.plus(itself, -1).shifted(-1), var)
        self.bounds.memo.pop(id(var), None)
        self.rewriter.memo.pop(id(var), None)
        self.linear.memo.pop(id(var), None)

    def update(self, var: tir.Var, info: Any, override: bool = False) -> None:
        """Note bounds or a modular set of a variable."""
        self.interner.intern(var)
        if isinstance(info, ConstIntBound):
            known = self.facts.bound_of(var)
            fresh = (info.min_value, info.max_value)
            both = fresh if override or known is None else intersect_bounds(known, fresh)
            self.facts.declare_bound(var, both)
        elif isinstance(info, ModularSet):
            self.facts.set_residue(var, (info.coeff, info.base))
        else:
            self.facts.set_value(var, self.rewriter.visit(self.interner.intern(tir.as_expr(info))))
        self.forget_results()

    def constraint_scope(self, constraint: Any) -> ConstraintScope:
        """Inside the `with` block, the condition holds.

        What a condition says about memory is not used: a store inside the block may change it.
        """

        def enter() -> Callable[[], Any]:
            scope = self.assuming(self._condition(constraint), stable_only=True)
            scope.__enter__()
            return lambda: scope.__exit__(None, None, None)

        return ConstraintScope(enter)

    @deep
    def _condition(self, constraint: Any) -> Any:
        return self.rewriter.visit(self.interner.intern(tir.as_expr(constraint)))

    @contextmanager
    def assuming(self, condition: Any, stable_only: bool = False) -> Iterator[None]:
        """The scope of a condition that is simplified and interned already."""
        owners: list[Any] = [
            self.bounds, self.modular, self.rewriter, self.linear, self.canonical, self.prover,
        ]  # fmt: skip
        memos = [owner.memo for owner in owners]
        divisions, recomposed = self.linear.divisions, self.linear.recomposed
        self.linear.divisions = dict(divisions)
        self.facts.push()
        self.forget_results()
        self.facts.assume(condition, stable_only)
        self.forget_results()
        try:
            yield
        finally:
            self.facts.pop()
            self.linear.divisions, self.linear.recomposed = divisions, recomposed
            for owner, memo in zip(owners, memos, strict=True):
                owner.memo = memo

    def forget_results(self) -> None:
        """Drop what was concluded from facts that have changed."""
        self.bounds.memo = {}
        self.modular.memo = {}
        self.rewriter.memo = {}
        self.linear.memo = {}
        self.linear.recomposed = {}
        self.canonical.memo = {}
        self.prover.memo = {}

    # ---- for the parts

    def decide(self, comparison: Any) -> bool | None:
        """Whether a comparison of index expressions is known to hold or to fail."""
        fact = self.facts.truth_of(comparison)
        if fact is not None:
            return fact
        form = self.linear.difference(comparison.b, comparison.a)
        return self.prover.decide(comparison.__class__, form)

    def substitute(self, expr: PrimExpr, values: Mapping[tir.Var, Any]) -> Any:
        return self.interner.intern(substitute_vars(expr, values))


__all__ = ["NEG_INF", "POS_INF", "Analyzer", "ConstraintScope", "Extension", "ProofStrength"]


extension.simplified.provide(lambda expr: Analyzer().simplify(expr))
extension.are_equal_dimensions.provide(lambda a, b: Analyzer().can_prove_equal(a, b))
