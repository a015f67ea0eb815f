"""Indices of an operation's reads as functions of its axes, parsed once, then evaluated on affine forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.support.scope import deep
from tvm.te.tensor import ComputeOp
from tvm.tir.expr import Add, Call, Cast, Div, FloorDiv, FloorMod, IntImm, Mod, Mul, Ramp, Sub
from tvm.tir.stmt_functor import variables_of

from .affine import ZERO, AffineForm, Unknown

# the variable of the lanes of vectors
LANE = object()
# from the forms of the axes to that of an index
Index = Callable[[Sequence[AffineForm]], AffineForm]


@cache
def axis_index(position: int) -> Index:
    """The axis at a position."""
    return lambda axes: axes[position]


@deep
def parse_index(op: ComputeOp, index: PrimExpr, extent: int) -> Index:
    """An index into a dimension of the given extent."""
    axes = {iv.var: position for position, iv in enumerate(op.root_iter_vars())}
    return _Parser(axes, extent).parse(index)


def parse_value(value: PrimExpr, variables: Mapping[Any, AffineForm], extent: int) -> AffineForm:
    """An index over loops, of variables whose forms are known."""
    known = list(variables)
    axes = {var: position for position, var in enumerate(known)}
    return _Parser(axes, extent).parse(value)(list(variables.values()))


class _Parser:
    def __init__(self, axes: dict[Any, int], extent: int) -> None:
        self.axes = axes
        self.extent = extent

    def parse(self, value: PrimExpr) -> Index:
        if (affine := self.affine(value)) is not None:
            return _affine_index(*affine)
        if isinstance(value, (FloorDiv, FloorMod, Div, Mod)) and isinstance(value.b, IntImm):
            divisor = int(value.b.value)
            inner = self.parse(value.a)
            if divisor > 0 and isinstance(value, (FloorDiv, Div)):
                return lambda axes: inner(axes).floordiv(divisor)
            if divisor > 0:
                return lambda axes: inner(axes).floormod(divisor)
        if isinstance(value, (Add, Sub)):
            a, b = self.parse(value.a), self.parse(value.b)
            factor = 1 if isinstance(value, Add) else -1
            return lambda axes: a(axes).plus(b(axes), factor)
        if isinstance(value, Mul) and isinstance(value.b, IntImm):
            a, factor = self.parse(value.a), int(value.b.value)
            return lambda axes: a(axes).times(factor)
        if isinstance(value, Cast):
            return self.parse(value.value)
        if isinstance(value, Ramp):  # of a vector, as many elements
            return self.ramp(value)
        return self.unknown(value)

    def ramp(self, value: Ramp) -> Index:
        """The elements of a vector, by the number of the lane."""
        base, stride = self.parse(value.base), self.affine(value.stride)
        lane = self.axes.get(LANE)
        if lane is None or stride is None or stride[1]:
            return base
        return lambda axes: base(axes).plus(axes[lane], stride[0])

    def unknown(self, value: PrimExpr) -> Index:
        """Anything within the dimension, of the axes that the value uses."""
        used = [self.axes[var] for var in variables_of(value) if var in self.axes]
        if isinstance(value, Call):
            used = list(self.axes.values())  # what it reads may depend on more
        extent = self.extent

        def index(axes: Sequence[AffineForm]) -> AffineForm:
            loops = dict.fromkeys([loop for axis in used for loop in axes[axis].loops()])
            return AffineForm(0, {Unknown(extent, tuple(loops)): 1}) if loops else ZERO

        return index

    def affine(self, value: PrimExpr) -> tuple[int, dict[int, int]] | None:
        """A constant and the coefficients of axes."""
        if isinstance(value, IntImm):
            return int(value.value), {}
        if value in self.axes:
            return 0, {self.axes[value]: 1}
        if isinstance(value, Cast):
            return self.affine(value.value)
        if not isinstance(value, (Add, Sub, Mul)):
            return None
        a, b = self.affine(value.a), self.affine(value.b)
        if a is None or b is None:
            return None
        if isinstance(value, Mul):
            if b[1]:
                a, b = b, a
            if b[1]:
                return None
            return a[0] * b[0], {axis: c * b[0] for axis, c in a[1].items()}
        sign = 1 if isinstance(value, Add) else -1
        terms = dict(a[1])
        for axis, coefficient in b[1].items():
            terms[axis] = terms.get(axis, 0) + sign * coefficient
        return a[0] + sign * b[0], terms


def _affine_index(const: int, terms: dict[int, int]) -> Index:
    if not const and len(terms) == 1 and next(iter(terms.values())) == 1:
        return axis_index(next(iter(terms)))

    def index(axes: Sequence[AffineForm]) -> AffineForm:
        total = AffineForm(const, {})
        for axis, coefficient in terms.items():
            total = total.plus(axes[axis], coefficient)
        return total

    return index
