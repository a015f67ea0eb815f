"""Linear forms: an index expression as a sum of atoms times constants.

Remainders are written with divisions, x % c = x - c*(x//c), so that sums of the parts of a division collapse by adding
coefficients alone:

    (x//4)*4 + x%4          ->   4*D + x - 4*D                  ->   x
    (x//4)%4*4 + x%4        ->   4*D - 16*E + x - 4*D           ->   x - 16*E    (E = (x//4)//4 = x//16)

`recompose` finds the remainders again: x - 16*E is x%16.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd
from typing import TYPE_CHECKING, Any

from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.tir import expr as tir

from .const_int_bound import (
    NEG_INF,
    POS_INF,
    Bound,
    add_bounds,
    intersect_bounds,
    range_of,
    scale_bound,
)

if TYPE_CHECKING:
    from .analyzer import Analyzer

# products of sums with more terms than this stay products
MAX_PRODUCT = 12
# and so do products of more factors
MAX_DEGREE = 8


class Linear:
    """The sum of `factor * atom` over `terms`, plus a constant. Keys are ids of interned expressions."""

    __slots__ = ("constant", "terms")

    def __init__(self, terms: dict[int, int], constant: int) -> None:
        self.terms = terms
        self.constant = constant

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        terms = dict(self.terms)
        for key, value in other.terms.items():
            total = terms.get(key, 0) + value * factor
            if total:
                terms[key] = total
            else:
                terms.pop(key, None)
        return Linear(terms, self.constant + other.constant * factor)

    def scaled(self, factor: int) -> Linear:
        if factor == 0:
            return Linear({}, 0)
        terms = {key: value * factor for key, value in self.terms.items()}
        return Linear(terms, self.constant * factor)

    def shifted(self, constant: int) -> Linear:
        return Linear(self.terms, self.constant + constant)

    def common_factor(self) -> int:
        """The greatest divisor of all factors, constant aside."""
        return gcd(*self.terms.values())


class LinearForms:
    """Linear forms of interned expressions."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.interner = analyzer.interner
        self.memo: dict[int, Linear] = {}
        self.atoms: dict[int, Any] = {}
        # what an atom is made of: a product's factors, a division's dividend and divisor; the latter,
        # like `memo` and `recomposed`, holds in the constraint scope where it was found
        self.factors: dict[int, tuple[int, ...]] = {}
        self.divisions: dict[int, tuple[Linear, int]] = {}
        self.recomposed: dict[Any, Linear] = {}

    def visit(self, expr: Any) -> Linear:
        """The linear form of an expression of scalar integer dtype."""
        found = self.memo.get(id(expr))
        if found is None:
            found = self._flatten(expr)
            self.memo[id(expr)] = found
        return found

    def difference(self, a: PrimExpr, b: PrimExpr) -> Linear:
        return self.visit(a).plus(self.visit(b), -1)

    def bound(self, form: Linear) -> Bound:
        """Constant bounds of the form's value, remainders taken together."""
        form = self.recompose(form)
        total = (form.constant, form.constant)
        bounds = self.analyzer.bounds
        for key, factor in form.terms.items():
            total = add_bounds(total, scale_bound(bounds.visit(self.atoms[key]), factor))
        return total

    # ---- from expressions

    def _flatten(self, expr: Any) -> Linear:
        """Add up the terms of a sum with an explicit stack: sums get deep."""
        terms: dict[int, int] = {}
        constant = 0
        stack: list[tuple[Any, int]] = [(expr, 1)]
        while stack:
            node, factor = stack.pop()
            form = self.memo.get(id(node))
            if form is None:
                cls = node.__class__
                if cls is tir.IntImm:
                    constant += factor * node.value
                    continue
                if cls is tir.Add:
                    stack += ((node.b, factor), (node.a, factor))
                    continue
                if cls is tir.Sub:
                    stack += ((node.b, -factor), (node.a, factor))
                    continue
                if cls is tir.Mul and node.b.__class__ is tir.IntImm:
                    if node.b.value:
                        stack.append((node.a, factor * node.b.value))
                    continue
                form = self._other(node)
                self.memo[id(node)] = form
            constant += factor * form.constant
            for key, value in form.terms.items():
                terms[key] = terms.get(key, 0) + value * factor
        return Linear({key: value for key, value in terms.items() if value}, constant)

    def _other(self, node: Any) -> Linear:
        cls = node.__class__
        if cls is tir.Mul:
            a, b = self.visit(node.a), self.visit(node.b)
            if self._degree(a) + self._degree(b) > MAX_DEGREE:
                return self._of_atom(node)
            return self.product(a, b)
        if cls is tir.FloorDiv or cls is tir.FloorMod:
            return self._division(node)
        if cls is tir.Div or cls is tir.Mod:
            low, divisor = self.analyzer.bounds.visit(node.a)[0], node.b
            if low >= 0 and divisor.__class__ is tir.IntImm and divisor.value > 0:
                # nothing is negative: both kinds of division agree
                return self._division(node)
        if cls is tir.Cast and self._keeps_value(node):
            return self.visit(node.value)
        return self._of_atom(node)

    def _of_atom(self, node: Any) -> Linear:
        atom = self.analyzer.canonical.visit_atom(node)
        if id(atom) != id(node) and type(atom) in _LINEAR:
            return self.visit(atom)
        return self.atom(atom)

    def atom(self, expr: Any, factor: int = 1) -> Linear:
        if expr.__class__ is tir.IntImm:
            return Linear({}, expr.value * factor)
        self.atoms[id(expr)] = expr
        return Linear({id(expr): factor}, 0)

    def _keeps_value(self, node: tir.Cast) -> bool:
        """Whether the operand fits the cast's dtype, so that the cast changes nothing."""
        source, target = node.value.dtype, node.dtype
        if not (source.is_int and target.is_int) or source.lanes > 1 or source.bits < 32:
            return False
        if source.bits <= target.bits:
            return True
        low, high = range_of(target)
        bound = self.analyzer.bounds.visit(node.value)
        return low <= bound[0] and bound[1] <= high

    def _degree(self, form: Linear) -> int:
        return max([len(self.factors.get(key, (key,))) for key in form.terms], default=0)

    def product(self, a: Linear, b: Linear) -> Linear:
        if not a.terms:
            return b.scaled(a.constant)
        if not b.terms:
            return a.scaled(b.constant)
        if len(a.terms) * len(b.terms) > MAX_PRODUCT:
            dtype = self.atoms[next(iter(a.terms))].dtype
            sides = [self.analyzer.canonical.emit(form, dtype) for form in (a, b)]
            return self._monomial([id(self._registered(side)) for side in sides])
        total = b.scaled(a.constant).plus(Linear(a.scaled(b.constant).terms, 0))
        for x, p in a.terms.items():
            for y, q in b.terms.items():
                factors = (*self.factors.get(x, (x,)), *self.factors.get(y, (y,)))
                total = total.plus(self._monomial(factors), p * q)
        return total

    def _registered(self, expr: Any) -> Any:
        self.atoms[id(expr)] = expr
        return expr

    def _monomial(self, factors: Iterable[int]) -> Linear:
        """The product of atoms, one node whatever their order."""
        ordered = sorted(factors, key=lambda key: self.interner.serial(self.atoms[key]))
        widest = max([self.atoms[key].dtype for key in ordered], key=lambda dtype: dtype.bits)
        parts = [self._as_dtype(self.atoms[key], widest) for key in ordered]
        node = parts[0]
        for part in parts[1:]:
            node = self.interner.binary(tir.Mul, node, part)
        self.atoms[id(node)] = node
        self.factors[id(node)] = tuple(ordered)
        return Linear({id(node): 1}, 0)

    def _as_dtype(self, expr: Any, dtype: DType) -> Any:
        return expr if expr.dtype is dtype else self.analyzer.rewriter.cast(dtype, expr)

    # ---- divisions

    def _division(self, node: Any) -> Linear:
        dividend, divisor = self.visit(node.a), self.visit(node.b)
        if not divisor.terms:
            if divisor.constant <= 0:
                return self._of_atom(node)
            quotient = self.floordiv(dividend, divisor.constant, node.dtype)
        else:
            found = self._symbolic_floordiv(dividend, divisor, node)
            if found is None:
                return self._of_atom(node)
            quotient = found
        if node.__class__ is tir.FloorDiv or node.__class__ is tir.Div:
            return quotient
        return dividend.plus(self.product(quotient, divisor), -1)

    def floordiv(self, form: Linear, divisor: int, dtype: DType) -> Linear:
        """floor(form / divisor) for a positive constant divisor."""
        # whole multiples leave; what stays is smaller in magnitude than the divisor
        whole: dict[int, int] = {}
        rest: dict[int, int] = {}
        for key, factor in form.terms.items():
            times = abs(factor) // divisor * (1 if factor > 0 else -1)
            if times:
                whole[key] = times
            if factor - times * divisor:
                rest[key] = factor - times * divisor
        quotient = Linear(whole, form.constant // divisor)
        constant = form.constant % divisor
        if not rest:
            return quotient
        rest_form, divisor = self._without_low_part(Linear(rest, constant), divisor)
        return quotient.plus(self._small_division(rest_form, divisor, dtype))

    def _without_low_part(self, form: Linear, divisor: int) -> tuple[Linear, int]:
        """Drop addends that never reach the next multiple of what divides the others.

        floor((g*a + b) / (g*d)) = floor((a + k) / d)   if k*g <= b < (k + 1)*g
        """
        steps = {gcd(factor, divisor) for factor in form.terms.values()}
        for step in sorted(steps, reverse=True):
            if step == 1:
                break
            high = {key: f // step for key, f in form.terms.items() if f % step == 0}
            low = {key: f for key, f in form.terms.items() if f % step}
            least, greatest = self.bound(Linear(low, form.constant % step))
            if least != NEG_INF and greatest != POS_INF and least // step == greatest // step:
                constant = form.constant // step + least // step
                return self._without_low_part(Linear(high, constant), divisor // step)
        return form, divisor

    def _small_division(self, form: Linear, divisor: int, dtype: DType) -> Linear:
        if divisor == 1:
            return form
        least, greatest = self.bound(form)
        if least != NEG_INF and greatest != POS_INF and least // divisor == greatest // divisor:
            return Linear({}, least // divisor)
        if not 0 <= form.constant < divisor or any(
            [abs(f) >= divisor for f in form.terms.values()]
        ):
            return self.floordiv(form, divisor, dtype)
        if len(form.terms) == 1:
            [(key, factor)] = form.terms.items()
            if factor == 1 and key in self.divisions:
                # floor((floor(x/c) + k) / d) = floor((x + k*c) / (c*d))
                inner, inner_divisor = self.divisions[key]
                shifted = inner.shifted(form.constant * inner_divisor)
                return self.floordiv(shifted, inner_divisor * divisor, dtype)
        return self._division_atom(form, divisor, dtype)

    def _division_atom(self, form: Linear, divisor: int, dtype: DType) -> Linear:
        serial, atoms = self.interner.serial, self.atoms
        keys = sorted(form.terms, key=lambda key: serial(atoms[key]))
        ordered = Linear({key: form.terms[key] for key in keys}, form.constant)
        dividend = self.analyzer.canonical.emit(ordered, dtype)
        node = self.interner.binary(
            tir.FloorDiv, dividend, self.interner.constant(divisor, dividend.dtype)
        )
        self.divisions[id(node)] = (ordered, divisor)
        found = self.atom(node)
        self.memo[id(node)] = found
        return found

    def _symbolic_floordiv(self, form: Linear, divisor: Linear, node: Any) -> Linear | None:
        """i*m + j over m is i + j//m, for a positive product of variables m."""
        if len(divisor.terms) != 1 or divisor.constant:
            return None
        [(key, scale)] = divisor.terms.items()
        if scale != 1 or self.analyzer.bounds.visit(self.atoms[key])[0] <= 0:
            return None
        wanted = self.factors.get(key, (key,))
        quotient, rest = Linear({}, 0), Linear({}, form.constant)
        for term, factor in form.terms.items():
            left = _without(self.factors.get(term, (term,)), wanted)
            if left is None:
                rest = rest.plus(Linear({term: factor}, 0))
            elif left:
                quotient = quotient.plus(self._monomial(left), factor)
            else:
                quotient = quotient.shifted(factor)
        prover = self.analyzer.prover
        if prover.is_not_negative(rest) and prover.is_not_negative(
            divisor.plus(rest, -1).shifted(-1)
        ):
            return quotient
        dtype = node.dtype
        dividend = self.analyzer.canonical.emit(rest, dtype)
        divided = self._as_dtype(self.atoms[key], dtype)
        if self.visit(dividend).terms == form.terms and quotient.terms == {}:
            dividend = node.a
        division = self.interner.binary(tir.FloorDiv, dividend, divided)
        found = self.atom(division)
        self.memo[id(division)] = found
        return quotient.plus(found)

    # ---- remainders

    def recompose(self, form: Linear) -> Linear:
        """The same value with `s*x - s*c*(x//c)` written as `s*(x % c)`."""
        divisions = [key for key in form.terms if key in self.divisions]
        if not divisions:
            return form
        key = (tuple(form.terms.items()), form.constant)
        found = self.recomposed.get(key)
        if found is None:
            found = self.recomposed[key] = self._find_remainders(form, divisions)
        return found

    def _find_remainders(self, form: Linear, divisions: list[int]) -> Linear:
        remainders = Linear({}, 0)
        divisions.sort(key=lambda key: -self.divisions[key][1])
        for key in divisions:
            factor = form.terms.get(key, 0)
            if not factor:
                continue
            match = self._matching_dividend(form, key, factor)
            if match is None:
                continue
            dividend, divisor, scale = match
            form = form.plus(dividend, -scale).plus(Linear({key: factor}, 0), -1)
            remainders = remainders.plus(self._remainder(dividend, divisor, key), scale)
        return form.plus(remainders)

    def _matching_dividend(
        self, form: Linear, key: int, factor: int
    ) -> tuple[Linear, int, int] | None:
        """(x, c, s) such that the division `key`, with its factor, is -s*c*(x//c) and s*x is in the form."""
        inner, divisor = self.divisions[key]
        candidates: list[tuple[Linear, int, int]] = []
        if factor % divisor == 0:
            scale = -factor // divisor
            if all([form.terms.get(k) == f * scale for k, f in inner.terms.items()]):
                return inner, divisor, scale
        # x//16 is also (x//4)//4
        for other in form.terms:
            if other == key or other not in self.divisions:
                continue
            other_inner, step = self.divisions[other]
            if divisor % step or other_inner.terms != inner.terms:
                continue
            if (other_inner.constant != inner.constant) or factor % (divisor // step):
                continue
            scale = -factor // (divisor // step)
            left = form.terms[other] - scale
            if left == 0:
                return Linear({other: 1}, 0), divisor // step, scale
            # what stays must be the negative part of a remainder further down
            if left < 0 < scale and left % step == 0:
                candidates.append((Linear({other: 1}, 0), divisor // step, scale))
        return candidates[0] if candidates else None

    def _remainder(self, dividend: Linear, divisor: int, division: int) -> Linear:
        dtype = self.atoms[division].dtype
        operand = self.analyzer.canonical.emit(dividend, dtype)
        node = self.interner.binary(
            tir.FloorMod, operand, self.interner.constant(divisor, operand.dtype)
        )
        self.atoms[id(node)] = node
        return Linear({id(node): 1}, 0)


def _without(factors: tuple[int, ...], removed: tuple[int, ...]) -> list[int] | None:
    """The factors less the removed ones, or None if some is not there."""
    left = list(factors)
    for key in removed:
        if key not in left:
            return None
        left.remove(key)
    return left


_LINEAR = frozenset({tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod, tir.Cast, tir.IntImm})
__all__ = ["Linear", "LinearForms", "intersect_bounds"]
