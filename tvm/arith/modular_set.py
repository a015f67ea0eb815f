"""Modular sets: the coefficient and base of x = coefficient*k + base for all values of x."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TYPE_CHECKING, Any

from tvm.ir.node import Node
from tvm.tir import expr as tir

if TYPE_CHECKING:
    from .analyzer import Analyzer

# (coefficient, base): coefficient 0 is the single value base, 1 any integer; 0 <= base < coefficient otherwise
Residue = tuple[int, int]
ANYTHING: Residue = (1, 0)


class ModularSet(Node, key="arith.ModularSet"):
    """The integers `coeff*k + base`."""

    coeff: int
    base: int


def residue(coefficient: int, base: int) -> Residue:
    """The normal form."""
    coefficient = abs(coefficient)
    return (coefficient, base % coefficient) if coefficient else (0, base)


def union(a: Residue, b: Residue) -> Residue:
    """The smallest set that holds both."""
    return residue(gcd(a[0], b[0], a[1] - b[1]), a[1])


def _inverse(value: int, modulus: int) -> int:
    return pow(value, -1, modulus) if modulus > 1 else 0


def intersection(a: Residue, b: Residue) -> Residue:
    """The values in both, by the Chinese remainder theorem; `a` if there are none."""
    if a[0] == 0:
        return a
    if b[0] == 0:
        return b
    step = gcd(a[0], b[0])
    if (a[1] - b[1]) % step:
        return a
    shift = (b[1] - a[1]) // step * _inverse(a[0] // step, b[0] // step)
    return residue(a[0] * b[0] // step, a[1] + a[0] * shift)


class ModularSetAnalyzer:
    """Modular sets of interned expressions, within what the analyzer knows."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.memo: dict[int, Residue] = {}

    def visit(self, expr: Any) -> Residue:
        found = self.memo.get(id(expr))
        if found is None:
            dtype = expr.dtype
            # arithmetic of narrow and unsigned integers is modulo their own range
            exact = dtype.is_int and dtype.bits >= 32
            method = _METHODS.get(expr.__class__) if exact else None
            found = ANYTHING if method is None else method(self, expr)
            fact = self.analyzer.facts.residue_of(expr)
            if fact is not None:
                found = intersection(found, fact)
            self.memo[id(expr)] = found
        return found

    def _add(self, expr: tir.Add) -> Residue:
        a, b = self.visit(expr.a), self.visit(expr.b)
        return residue(gcd(a[0], b[0]), a[1] + b[1])

    def _sub(self, expr: tir.Sub) -> Residue:
        a, b = self.visit(expr.a), self.visit(expr.b)
        return residue(gcd(a[0], b[0]), a[1] - b[1])

    def _mul(self, expr: tir.Mul) -> Residue:
        # (p*k + m)(q*l + n) = pq*kl + pn*k + qm*l + mn
        (p, m), (q, n) = self.visit(expr.a), self.visit(expr.b)
        return residue(gcd(p * q, p * n, q * m), m * n)

    def _divide(self, expr: tir.Div | tir.FloorDiv) -> Residue:
        b = self.visit(expr.b)
        if b[0] != 0 or b[1] == 0:
            return ANYTHING
        return self._divided(expr.a, b[1], rounds_down=type(expr) is tir.FloorDiv)

    def _divided(self, expr: Any, divisor: int, rounds_down: bool) -> Residue:
        a = self.visit(expr)
        if a[0] % divisor or not (rounds_down or a[1] % divisor == 0):
            return ANYTHING
        return residue(a[0] // divisor, a[1] // divisor)

    def _floormod(self, expr: tir.FloorMod) -> Residue:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if b[0] == 0 and b[1] != 0:
            if a[0] == 0:
                return 0, a[1] % b[1]
            if a[0] % b[1] == 0:
                return 0, a[1] % b[1]
        # a - b*k
        return residue(gcd(a[0], b[0], b[1]), a[1])

    def _truncmod(self, expr: tir.Mod) -> Residue:
        a, b = self.visit(expr.a), self.visit(expr.b)
        return residue(gcd(a[0], b[0], b[1]), a[1])

    def _masked(self, value: Any, mask: Any) -> Residue:
        """x & (2**n - 1) is x modulo 2**n."""
        coefficient, last = self.visit(mask)
        if coefficient or last < 0 or last & (last + 1):
            return ANYTHING
        a = self.visit(value)
        if a[0] % (last + 1) == 0:
            return 0, a[1] & last
        return residue(gcd(a[0], last + 1), a[1])

    def _cast(self, expr: tir.Cast) -> Residue:
        source = expr.value.dtype
        widens = source.is_int and source.bits <= expr.dtype.bits
        return self.visit(expr.value) if widens else ANYTHING

    def _let(self, expr: tir.Let) -> Residue:
        return self.visit(self.analyzer.substitute(expr.body, {expr.var: expr.value}))

    def _call(self, expr: tir.Call) -> Residue:
        name = getattr(expr.op, "name", "")
        if name == "tir.if_then_else":
            return union(self.visit(expr.args[1]), self.visit(expr.args[2]))
        if name == "tir.shift_left":
            shift = self.visit(expr.args[1])
            if shift[0] == 0 and 0 <= shift[1] < 63:
                coefficient, base = self.visit(expr.args[0])
                return residue(coefficient << shift[1], base << shift[1])
        if name == "tir.shift_right":
            shift = self.visit(expr.args[1])
            if shift[0] == 0 and 0 <= shift[1] < 63:
                return self._divided(expr.args[0], 1 << shift[1], rounds_down=True)
        if name == "tir.bitwise_and":
            return self._masked(*expr.args)
        if name == "tir.likely":
            return self.visit(expr.args[0])
        return ANYTHING


# each takes expressions of its own kind
_METHODS: dict[type, Callable[[ModularSetAnalyzer, Any], Residue]] = {
    tir.IntImm: lambda s, e: (0, e.value),
    tir.Add: ModularSetAnalyzer._add,
    tir.Sub: ModularSetAnalyzer._sub,
    tir.Mul: ModularSetAnalyzer._mul,
    tir.FloorDiv: ModularSetAnalyzer._divide,
    tir.Div: ModularSetAnalyzer._divide,
    tir.FloorMod: ModularSetAnalyzer._floormod,
    tir.Mod: ModularSetAnalyzer._truncmod,
    tir.Min: lambda s, e: union(s.visit(e.a), s.visit(e.b)),
    tir.Max: lambda s, e: union(s.visit(e.a), s.visit(e.b)),
    tir.Select: lambda s, e: union(s.visit(e.true_value), s.visit(e.false_value)),
    tir.Cast: ModularSetAnalyzer._cast,
    tir.Call: ModularSetAnalyzer._call,
    tir.Let: ModularSetAnalyzer._let,
}
