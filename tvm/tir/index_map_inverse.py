"""The inverse of an index map: indices are taken apart into digits, and put together again.

    i -> [i // 4, i % 4]      has the digits  i[4:16]  and  i[0:4];  back:  (a, b) -> a*4 + b

A digit is ``(variable // lower) % extent``. Each new index has to be a number in a mixed radix whose
places are digits, and the digits of each variable have to be all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.ir.expr import PrimExpr

from . import op as _op
from .expr import Add, Cast, FloorDiv, FloorMod, IntImm, Mul, Range, Var, as_expr, const


@dataclass(frozen=True)
class Digit:
    """``(var // lower) % extent``, standing at ``place`` of a sum."""

    var: Var
    lower: int
    extent: int
    place: int


class NotInvertibleError(ValueError):
    """The map loses information, or it is of a form that is not understood."""


def invert(
    variables: Sequence[Var], indices: Sequence[PrimExpr], extents: Sequence[int]
) -> tuple[list[Var], list[PrimExpr], list[int], list[PrimExpr]]:
    """The way back from ``indices`` of an array with the given extents.

    Returns
    -------
    tuple
        New variables, the old indices in terms of them, the extents that these can reach (beyond
        the array's own where parts are padded), and the extents of the new indices.
    """
    sizes = dict(zip(variables, extents, strict=True))
    new = [Var(f"axis{i}", index.dtype) for i, index in enumerate(indices)]
    parts: dict[Var, list[tuple[int, int, PrimExpr]]] = {var: [] for var in variables}
    shape: list[PrimExpr] = []
    for variable, index in zip(new, indices, strict=True):
        place = 1
        digits = sorted(_digits(index, sizes), key=lambda d: d.place)
        for rank, digit in enumerate(digits):
            if digit.place != place:
                raise NotInvertibleError(f"an inverse requires places without gaps, got {index}")
            value = _op.floordiv(variable, place)
            if rank + 1 < len(digits):
                value = _op.floormod(value, digit.extent)
            parts[digit.var].append((digit.lower, digit.extent, value))
            place *= digit.extent
        shape.append(const(place, index.dtype))
    old, reached = [], []
    for var in variables:
        expr, size = _joined(var, parts[var], sizes[var])
        old.append(expr)
        reached.append(size)
    return new, old, reached, shape


def _joined(var: Var, parts: list[tuple[int, int, PrimExpr]], extent: int) -> tuple[PrimExpr, int]:
    """The variable from its digits, and how far these reach."""
    lower = 1
    result: PrimExpr = const(0, var.dtype)
    for start, _, value in sorted(parts, key=lambda part: part[0], reverse=True):
        result = _op.add(result, _op.multiply(value, start))
    for start, size, _ in sorted(parts, key=lambda part: part[0]):
        if start != lower:
            raise NotInvertibleError(f"an inverse requires all digits of {var}")
        lower *= size
    if lower < extent:
        raise NotInvertibleError(f"an inverse requires all digits of {var}")
    return result, lower


def _digits(expr: PrimExpr, sizes: dict[Var, int]) -> list[Digit]:
    """The digits whose sum, each times its place, is the expression."""
    if isinstance(expr, Var):
        return [Digit(expr, 1, sizes[expr], 1)] if sizes[expr] > 1 else []
    if isinstance(expr, IntImm) and expr.value == 0:
        return []
    if type(expr) is Cast:
        return _digits(expr.value, sizes)
    if type(expr) is Add:
        return _digits(expr.a, sizes) + _digits(expr.b, sizes)
    if type(expr) in (Mul, FloorDiv, FloorMod):
        binary: Any = expr
        if type(binary.b) is IntImm and binary.b.value > 0:
            inner = _digits(binary.a, sizes)
            return _SCALED[type(expr)](inner, binary.b.value)
    raise NotInvertibleError(f"an inverse requires sums of parts of the variables, got {expr}")


def _times(digits: list[Digit], factor: int) -> list[Digit]:
    return [Digit(d.var, d.lower, d.extent, d.place * factor) for d in digits]


def _divided(digits: list[Digit], divisor: int) -> list[Digit]:
    return [
        Digit(d.var, d.lower, d.extent, d.place // divisor)
        for d in _cut(digits, divisor)
        if d.place >= divisor
    ]


def _remainder(digits: list[Digit], divisor: int) -> list[Digit]:
    return [d for d in _cut(digits, divisor) if d.place < divisor]


def _cut(digits: list[Digit], border: int) -> list[Digit]:
    """The digits, with the one that stands on both sides of the border cut in two."""
    result = []
    for d in digits:
        if d.place >= border:
            if d.place % border:
                raise NotInvertibleError("an inverse requires divisors that fall between digits")
            result.append(d)
        elif d.place * d.extent <= border:
            result.append(d)
        else:
            inner, rest = divmod(border, d.place)
            if rest:
                raise NotInvertibleError("an inverse requires divisors that fall between digits")
            result.append(Digit(d.var, d.lower, inner, d.place))
            result.append(Digit(d.var, d.lower * inner, -(-d.extent // inner), border))
    return result


_SCALED: dict[type, Callable[[list[Digit], int], list[Digit]]] = {
    Mul: _times,
    FloorDiv: _divided,
    FloorMod: _remainder,
}


def extents_of(shape: Sequence[Any]) -> list[int]:
    """The constant extents of a shape, given as ranges or numbers."""
    values = [item.extent if isinstance(item, Range) else as_expr(item) for item in shape]
    constants = [value.value for value in values if isinstance(value, IntImm)]
    if len(constants) < len(values):
        raise NotInvertibleError(f"an inverse requires constant extents, got {values}")
    return constants
