"""Linear equations over the integers in Smith's normal form.

A x = y becomes D x' = U y with a diagonal D = U A V, where x = V x'. Rows are combined freely;
columns stand for the unknowns, so that what is done to them is remembered in V and its inverse.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.expr import EQ, IntImm, Var, const

from .analyzer import Analyzer
from .pattern import detect_linear_equation


class DiagonalForm:
    """Equations in unknowns, made diagonal; what is not linear is left as conditions."""

    def __init__(self, variables: Sequence[Var], relations: Sequence[PrimExpr]) -> None:
        self.variables = list(variables)
        self.dtype = variables[0].dtype if variables else "int32"
        self.simplify = Analyzer().simplify
        self.matrix: list[list[int]] = []
        self.values: list[PrimExpr] = []  # right-hand sides
        self.conditions: list[PrimExpr] = []
        for relation in relations:
            self._add(relation)
        size = len(self.variables)
        self.columns = [[int(i == j) for j in range(size)] for i in range(size)]  # V
        self.unknowns: list[PrimExpr] = list(self.variables)  # V^-1 x
        self._diagonalize()
        self._check()

    def _add(self, relation: PrimExpr) -> None:
        """Take an equation as a row of the matrix."""
        if isinstance(relation, EQ) and self.variables:
            difference = self.simplify(op.subtract(relation.a, relation.b))
            if found := detect_linear_equation(difference, self.variables):
                row = [factor.value for factor in found[:-1] if isinstance(factor, IntImm)]
                if len(row) == len(self.variables):
                    self.matrix.append(row)
                    self.values.append(self.simplify(op.negative(found[-1])))
                    return
        self.conditions.append(relation)

    def _diagonalize(self) -> None:
        at = 0
        while at < min(len(self.matrix), len(self.variables)):
            self._choose_pivot(at)
            if self.matrix[at][at] == 0:
                at += 1
                continue
            for row in range(at + 1, len(self.matrix)):
                if self.matrix[row][at]:
                    self._combine_rows(at, row)
            others = [j for j in range(at + 1, len(self.variables)) if self.matrix[at][j]]
            for column in others:
                self._combine_columns(at, column)
            if not others:  # else the column may have changed
                at += 1

    def _choose_pivot(self, at: int) -> None:
        """Bring the smallest factor of a column to the diagonal, or any factor of the row."""
        rows = [i for i in range(at, len(self.matrix)) if self.matrix[i][at]]
        if rows:
            best = min(rows, key=lambda i: abs(self.matrix[i][at]))
            self.matrix[at], self.matrix[best] = self.matrix[best], self.matrix[at]
            self.values[at], self.values[best] = self.values[best], self.values[at]
            return
        for j in range(at + 1, len(self.variables)):
            if self.matrix[at][j]:
                for row in (*self.matrix, *self.columns):
                    row[at], row[j] = row[j], row[at]
                self.unknowns[at], self.unknowns[j] = self.unknowns[j], self.unknowns[at]
                return

    def _combine_rows(self, at: int, other: int) -> None:
        """Make the factor of row ``other`` zero, that of row ``at`` their greatest divisor."""
        first, second = self.matrix[at], self.matrix[other]
        a, b, p, q = _reduction(first[at], second[at])
        self.matrix[at] = [a * x + b * y for x, y in zip(first, second, strict=True)]
        self.matrix[other] = [q * x - p * y for x, y in zip(first, second, strict=True)]
        u, v = self.values[at], self.values[other]
        self.values[at] = self._sum(a, u, b, v)
        self.values[other] = self._sum(q, u, -p, v)

    def _combine_columns(self, at: int, other: int) -> None:
        a, b, p, q = _reduction(self.matrix[at][at], self.matrix[at][other])
        for row in (*self.matrix, *self.columns):
            x, y = row[at], row[other]
            row[at], row[other] = a * x + b * y, q * x - p * y
        u, v = self.unknowns[at], self.unknowns[other]
        self.unknowns[at] = self._sum(p, u, q, v)
        self.unknowns[other] = self._sum(b, u, -a, v)

    def _sum(self, a: int, u: PrimExpr, b: int, v: PrimExpr) -> PrimExpr:
        return self.simplify(op.add(op.multiply(u, a), op.multiply(v, b)))

    def _factor(self, i: int) -> int:
        return self.matrix[i][i] if i < min(len(self.matrix), len(self.variables)) else 0

    def _check(self) -> None:
        """Add the conditions under which there are solutions: what factors divide, and zeros."""
        for i, value in enumerate(self.values):
            factor = self._factor(i)
            remainder = value if factor == 0 else op.floormod(value, abs(factor))
            condition = self.simplify(op.equal(remainder, 0))
            if not (isinstance(condition, IntImm) and condition.value):
                self.conditions.append(condition)

    @property
    def is_contradiction(self) -> bool:
        """Whether nothing solves the equations."""
        return any(isinstance(c, IntImm) and not c.value for c in self.conditions)

    def solution(self) -> tuple[list[Var], dict[Var, PrimExpr], dict[Var, PrimExpr]]:
        """New variables for what stays free, the unknowns in terms of them, and the reverse."""
        free: list[Var] = []
        back: dict[Var, PrimExpr] = {}
        diagonal: list[PrimExpr] = []
        for i, unknown in enumerate(self.unknowns):
            if factor := self._factor(i):
                scaled = self.values[i] if factor > 0 else op.negative(self.values[i])
                diagonal.append(self.simplify(op.floordiv(scaled, abs(factor))))
                continue
            var = Var(f"n{len(free)}", self.dtype)
            free.append(var)
            back[var] = unknown
            diagonal.append(var)
        solved = {}
        for var, row in zip(self.variables, self.columns, strict=True):
            total: PrimExpr = const(0, var.dtype)
            for factor, value in zip(row, diagonal, strict=True):
                total = op.add(total, op.multiply(value, factor))
            solved[var] = self.simplify(total)
        return free, solved, back


def _reduction(x: int, y: int) -> tuple[int, int, int, int]:
    """(a, b, x/g, y/g) with a*x + b*y = g, the greatest common divisor; b is 0 if x divides y."""
    old, new = (x, 1, 0), (y, 0, 1)
    if y % x == 0:
        new = (0, 0, 0)
    while new[0]:
        quotient = old[0] // new[0]
        old, new = new, (
            old[0] - quotient * new[0],
            old[1] - quotient * new[1],
            old[2] - quotient * new[2],
        )  # fmt: skip
    divisor, a, b = old
    if divisor < 0:
        divisor, a, b = -divisor, -a, -b
    return a, b, x // divisor, y // divisor
