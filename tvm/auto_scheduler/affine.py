"""Quasi-affine forms: integers as sums over loops, which bounds and features are computed with.

i = i.0*16 + i.1              AffineForm(0, {i.0: 16, i.1: 1})
i = f // 8, j = f % 8         AffineForm(0, {Quotient(f, 8): 1}), AffineForm(0, {Remainder(f, 8): 1})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd

# the number of values that a loop takes, 1 for those that stand still
Counts = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Quotient:
    """The quotient of a form by a positive constant, rounded down."""

    form: AffineForm
    divisor: int

    def count(self, counts: Counts) -> int:
        """How many values it takes at most."""
        count = self.form.count(counts)
        start = self.form.at_start(counts).largest_remainder(self.divisor)
        return (start + count - 1) // self.divisor + 1

    def at_start(self, counts: Counts) -> Quotient | int:
        """The same with all loops that run at their first iteration."""
        start = self.form.at_start(counts)
        return Quotient(start, self.divisor) if start.terms else start.const // self.divisor


@dataclass(frozen=True, slots=True)
class Remainder:
    """The remainder of a form by a positive constant."""

    form: AffineForm
    divisor: int

    def count(self, counts: Counts) -> int:
        """How many values it takes at most."""
        count = self.form.count(counts)
        start = self.form.at_start(counts).largest_remainder(self.divisor)
        return count if start + count <= self.divisor else self.divisor

    def at_start(self, counts: Counts) -> Remainder | int:
        """The same with all loops that run at their first iteration."""
        if self.count(counts) == self.divisor:
            return 0  # it takes all values, from 0 on
        start = self.form.at_start(counts)
        return Remainder(start, self.divisor) if start.terms else start.const % self.divisor


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that no form tells, from 0 to below an extent."""

    extent: int
    loops: tuple[int, ...]

    def count(self, counts: Counts) -> int:
        """All values, if any loop runs."""
        return self.extent if any([counts(loop) > 1 for loop in self.loops]) else 1

    def at_start(self, counts: Counts) -> Unknown | int:
        """The same with all loops that run at their first iteration."""
        return 0 if self.count(counts) > 1 else self


@dataclass(frozen=True, slots=True)
class Capped:
    """A form of loops that run further than what they are for, below an extent."""

    form: AffineForm
    extent: int

    def count(self, counts: Counts) -> int:
        """How many values it takes at most."""
        return min(self.form.count(counts), self.extent)

    def at_start(self, counts: Counts) -> Capped | int:
        """The same with all loops that run at their first iteration."""
        start = self.form.at_start(counts)
        return Capped(start, self.extent) if start.terms else start.const


Atom = Quotient | Remainder | Unknown | Capped


class AffineForm:
    """A constant, and loops or atoms times constants."""

    __slots__ = ("const", "terms")

    def __init__(self, const: int, terms: Mapping[int | Atom, int]) -> None:
        self.const = const
        self.terms = terms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineForm) and (self.const, self.terms) == (
            other.const,
            other.terms,
        )

    def __hash__(self) -> int:
        return hash((self.const, *self.terms.items()))

    def __repr__(self) -> str:
        return " + ".join([f"{a}*{c}" for a, c in self.terms.items()] + [str(self.const)])

    def plus(self, other: AffineForm, factor: int = 1) -> AffineForm:
        """The sum with a multiple of another form."""
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            total = terms.get(atom, 0) + coefficient * factor
            if total:
                terms[atom] = total
            else:
                del terms[atom]
        return AffineForm(self.const + other.const * factor, terms)

    def times(self, factor: int) -> AffineForm:
        """A multiple."""
        if not factor:
            return ZERO
        return AffineForm(self.const * factor, {a: c * factor for a, c in self.terms.items()})

    def floordiv(self, divisor: int) -> AffineForm:
        """The quotient by a positive constant."""
        # (d*a + b) // d = a + b // d
        whole = {a: c // divisor for a, c in self.terms.items() if c % divisor == 0}
        rest = {a: c for a, c in self.terms.items() if c % divisor}
        if not rest:
            return AffineForm(self.const // divisor, whole)
        return AffineForm(0, {**whole, Quotient(AffineForm(self.const, rest), divisor): 1})

    def floormod(self, divisor: int) -> AffineForm:
        """The remainder by a positive constant."""
        terms = {a: c for a, c in self.terms.items() if c % divisor}
        if not terms:
            return AffineForm(self.const % divisor, {})
        return AffineForm(0, {Remainder(AffineForm(self.const, terms), divisor): 1})

    def count(self, counts: Counts) -> int:
        """The extent of the values while some loops run."""
        total = 1
        for atom, coefficient in self.terms.items():
            count = counts(atom) if isinstance(atom, int) else atom.count(counts)
            total += abs(coefficient) * (count - 1)
        return total

    def at_start(self, counts: Counts) -> AffineForm:
        """The least value while some loops run, as a form of the others."""
        const = self.const
        terms: dict[int | Atom, int] = {}
        for atom, coefficient in self.terms.items():
            if isinstance(atom, int):
                count = counts(atom)
                if count == 1:
                    terms[atom] = coefficient
                elif coefficient < 0:
                    const += coefficient * (count - 1)
                continue
            count = atom.count(counts)
            start = atom.at_start(counts)
            if not isinstance(start, int):
                terms[start] = terms.get(start, 0) + coefficient
            else:
                const += coefficient * start
            if coefficient < 0:
                const += coefficient * (count - 1)
        return AffineForm(const, terms)

    def largest_remainder(self, divisor: int) -> int:
        """The largest remainder by a divisor that any values of its terms give."""
        step = gcd(divisor, *self.terms.values())
        return self.const % step + divisor - step

    def loops(self) -> Iterator[int]:
        """The loops that it depends on."""
        for atom in self.terms:
            if isinstance(atom, int):
                yield atom
            elif isinstance(atom, Unknown):
                yield from atom.loops
            else:
                yield from atom.form.loops()

    def stride(self, loop: int) -> int | None:
        """By how much it grows with a loop; None if it does not depend on it."""
        if (coefficient := self.terms.get(loop)) is not None:
            return abs(coefficient)
        strides = []
        for atom, factor in self.terms.items():
            if isinstance(atom, (Quotient, Remainder, Capped)):
                inner = atom.form.stride(loop)
                if inner is not None:
                    divisor = atom.divisor if isinstance(atom, Quotient) else 1
                    strides.append(abs(factor) * max(inner // divisor, 1))
            elif isinstance(atom, Unknown) and loop in atom.loops:
                strides.append(abs(factor))
        return min(strides) if strides else None


ZERO = AffineForm(0, {})
