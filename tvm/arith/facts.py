"""What an analyzer has been told: values, bounds and remainders of variables, conditions that hold.

Facts are kept in layers: leaving a constraint scope drops what the constraint said, while bindings stay.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir import expr as tir
from tvm.tir.intrinsics import effect_of

from .const_int_bound import NEG_INF, POS_INF, Bound, intersect_bounds
from .linear import Linear
from .modular_set import Residue

if TYPE_CHECKING:
    from .analyzer import Analyzer


@dataclass(frozen=True, slots=True)
class Inequality:
    """A linear form that is not negative.

    What the range of a variable says holds only where the variable has a value: a loop may run not
    at all. Such a fact has the variable as ``owner`` and serves proofs about it alone.
    """

    form: Linear
    owner: int | None = None

    def applies_to(self, goal: Linear) -> bool:
        """Whether a proof of ``goal`` may use the fact."""
        return self.owner is None or self.owner in goal.terms


@dataclass
class Layer:
    """The facts of one scope, those of the enclosing ones included. Keys are ids of interned expressions."""

    values: dict[int, Any] = field(default_factory=dict)
    bounds: dict[int, Bound] = field(default_factory=dict)
    residues: dict[int, Residue] = field(default_factory=dict)
    truths: dict[int, bool] = field(default_factory=dict)
    inequalities: list[Inequality] = field(default_factory=list)

    def copy(self) -> Layer:
        return Layer(
            dict(self.values), dict(self.bounds), dict(self.residues), dict(self.truths),
            list(self.inequalities),
        )  # fmt: skip


class Facts:
    """The stack of layers; the last one is in force."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.layers = [Layer()]
        self._top = self.layers[-1]
        self._kept: list[PrimExpr] = []  # expressions whose ids are keys
        self._declared: set[int] = set()  # ids of variables of which a user said all bounds

    # ---- answers

    def value_of(self, var: PrimExpr) -> Any:
        """The expression a variable stands for, or None."""
        return self._top.values.get(id(var))

    def bound_of(self, expr: PrimExpr) -> Bound | None:
        return self._top.bounds.get(id(expr))

    def residue_of(self, expr: PrimExpr) -> Residue | None:
        return self._top.residues.get(id(expr))

    def truth_of(self, condition: PrimExpr) -> bool | None:
        """Whether a condition is known to hold, or to fail."""
        return self._top.truths.get(id(condition))

    @property
    def inequalities(self) -> list[Inequality]:
        return self._top.inequalities

    # ---- news

    def push(self) -> None:
        self._top = self._top.copy()
        self.layers.append(self._top)

    def pop(self) -> None:
        self.layers.pop()
        self._top = self.layers[-1]

    def forget(self, var: PrimExpr) -> None:
        """Drop what is known of a variable that is about to be bound anew."""
        self._declared.discard(id(var))
        for layer in self.layers:
            for table in (layer.values, layer.bounds, layer.residues):
                table.pop(id(var), None)
            layer.inequalities = [
                fact for fact in layer.inequalities if id(var) not in fact.form.terms
            ]

    def set_value(self, var: PrimExpr, value: PrimExpr) -> None:
        self._kept.append(var)
        for layer in self.layers:
            layer.values[id(var)] = value

    def set_bound(self, var: PrimExpr, bound: Bound) -> None:
        self._kept.append(var)
        for layer in self.layers:
            layer.bounds[id(var)] = bound

    def declare_bound(self, var: PrimExpr, bound: Bound) -> None:
        """Note a user's bound, whose infinite ends stay infinite though the data type has ends."""
        self._declared.add(id(var))
        self.set_bound(var, bound)

    def is_declared(self, var: PrimExpr) -> bool:
        return id(var) in self._declared

    def set_residue(self, var: PrimExpr, residue: Residue) -> None:
        self._kept.append(var)
        for layer in self.layers:
            layer.residues[id(var)] = residue

    def add_range_end(self, form: Linear, var: PrimExpr) -> None:
        """Note, in all layers, that the form, an end of the variable's range, is not negative."""
        for layer in self.layers:
            layer.inequalities.append(Inequality(form, id(var)))

    def assume(self, condition: Any, stable_only: bool = False) -> None:
        """Note a condition, simplified and interned, in the innermost layer."""
        cls = condition.__class__
        if cls is tir.And:
            self.assume(condition.a, stable_only)
            self.assume(condition.b, stable_only)
            return
        if cls is tir.Call and getattr(condition.op, "name", "") == "tir.likely":
            self.assume(condition.args[0], stable_only)
            return
        if cls is tir.IntImm or (stable_only and reads_memory(condition)):
            return
        negation = self.analyzer.rewriter.logical_not(condition)
        if cls in _RELATIONS and self._is_index(condition.a):
            _RELATIONS[cls](self, condition)
        self._kept.append(condition)
        self._top.truths[id(condition)] = True
        self._top.truths[id(negation)] = False
        if negation.__class__ is tir.Or:
            self._assume_alternatives_false(negation)

    def _assume_alternatives_false(self, disjunction: tir.Or) -> None:
        for part in (disjunction.a, disjunction.b):
            self._top.truths[id(part)] = False

    def _is_index(self, expr: PrimExpr) -> bool:
        return expr.dtype in ("int32", "int64")

    def _assume_lt(self, condition: tir.LT) -> None:
        linear = self.analyzer.linear
        self._not_negative(linear.difference(condition.b, condition.a).shifted(-1))
        if type(condition.b) is tir.IntImm:
            self._bound(condition.a, (NEG_INF, condition.b.value - 1))

    def _assume_le(self, condition: tir.LE) -> None:
        self._not_negative(self.analyzer.linear.difference(condition.b, condition.a))
        if type(condition.a) is tir.IntImm:
            self._bound(condition.b, (condition.a.value, POS_INF))

    def _assume_eq(self, condition: tir.EQ) -> None:
        form = self.analyzer.linear.difference(condition.a, condition.b)
        self._not_negative(form)
        self._not_negative(form.scaled(-1))
        a, b = condition.a, condition.b
        if type(b) is not tir.IntImm:
            return
        self._bound(a, (b.value, b.value))
        if type(a) is tir.FloorMod and type(a.b) is tir.IntImm and a.b.value > 0:
            self._top.residues[id(a.a)] = (a.b.value, b.value % a.b.value)

    def _assume_ne(self, condition: tir.NE) -> None:
        if type(condition.b) is not tir.IntImm:
            return
        low, high = self.analyzer.bounds.visit(condition.a)
        value = condition.b.value
        if low == value:
            self._bound(condition.a, (low + 1, high))
        elif high == value:
            self._bound(condition.a, (low, high - 1))

    def _bound(self, expr: PrimExpr, bound: Bound) -> None:
        known = self._top.bounds.get(id(expr))
        self._kept.append(expr)
        self._top.bounds[id(expr)] = bound if known is None else intersect_bounds(known, bound)
        self.analyzer.forget_results()

    def _not_negative(self, form: Linear) -> None:
        """c*x + d >= 0 bounds x; forms of several terms are kept for the prover."""
        if len(form.terms) > 1:
            self._top.inequalities.append(Inequality(form))
            return
        for key, factor in form.terms.items():
            atom = self.analyzer.linear.atoms[key]
            if factor > 0:
                self._bound(atom, (-(form.constant // factor), POS_INF))
            else:
                self._bound(atom, (NEG_INF, form.constant // -factor))


class _MemoryReads(Visitor):
    """Finds loads and calls whose value can change."""

    found = False

    def visit_buffer_load(self, load: tir.BufferLoad) -> None:
        self.found = True

    def visit_call(self, call: tir.Call) -> None:
        self.found = self.found or effect_of(call.op) > tir.CallEffectKind.Pure
        self.visit_children(call)


def reads_memory(expr: PrimExpr) -> bool:
    """Whether a store may change the expression's value."""
    reads = _MemoryReads()
    reads.visit(expr)
    return reads.found


_RELATIONS: dict[Any, Any] = {
    tir.LT: Facts._assume_lt,
    tir.LE: Facts._assume_le,
    tir.EQ: Facts._assume_eq,
    tir.NE: Facts._assume_ne,
}
