"""Small helpers of computes and schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from typing import Any, overload

import numpy as np

from tvm import te, tir
from tvm.arith import Analyzer
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target

from . import tag


class InvalidShapeError(ValueError):
    """A shape does not suit a template."""


def dims(shape: Iterable[Any]) -> tuple[Any, ...]:
    """A shape with ints for the dimensions that are constants."""
    return tuple([int(d.value) if isinstance(d, tir.IntImm) else d for d in shape])


def extents_of(axes: Iterable[tir.IterVar]) -> tuple[Any, ...]:
    """The extents of the axes of an operation, ints where they are constants."""
    return dims([te.tensor.domain_of(axis).extent for axis in axes])


def real_axis(axis: Any, rank: int) -> int:
    """An axis counted from the front, which may be given from the end."""
    if not -rank <= axis < rank:
        raise RuntimeValueError(f"axis {axis} is out of range for {rank} dimensions")
    return int(axis) % rank


def require_equal(who: str, what: str, left: Any, right: Any) -> None:
    """Reject two extents that are known to differ."""
    known = dims((left, right))
    if all(isinstance(extent, int) for extent in known) and known[0] != known[1]:
        raise RuntimeValueError(f"{who} requires {what}, got {known[0]} and {known[1]}")


def prod(x: Iterable[Any]) -> Any:
    """The product of a sequence; 1 if it is empty."""
    total: Any = 1
    for value in x:
        total = value if isinstance(total, int) and total == 1 else total * value
    return total


def get_const_int(expr: Any) -> int:
    """The value of a constant integer expression.

    Raises
    ------
    ValueError
        If it is not a constant.
    """
    if isinstance(expr, int):
        return expr
    if not isinstance(expr, tir.IntImm):
        expr = simplify(expr)
    if not isinstance(expr, tir.IntImm):
        raise RuntimeValueError(f"a constant integer is required here, got {expr}")
    return int(expr.value)


def get_const_float(expr: Any) -> float:
    """The value of a constant float expression."""
    if isinstance(expr, (int, float)):
        return float(expr)
    if not isinstance(expr, (tir.FloatImm, tir.IntImm)):
        expr = simplify(expr)
    if not isinstance(expr, (tir.FloatImm, tir.IntImm)):
        raise RuntimeValueError(f"a constant number is required here, got {expr}")
    return float(expr.value)


def equal_const_int(expr: Any, value: int) -> bool:
    """Whether an expression is that constant."""
    found = dims((expr,))[0]
    return isinstance(found, int) and found == value


def get_const_tuple(in_tuple: Iterable[Any]) -> tuple[Any, ...]:
    """Ints for constant expressions; variables stay."""
    found: list[Any] = []
    for element in in_tuple:
        if isinstance(element, (tir.Var, tir.Any)):
            found.append(element)
        elif isinstance(element, PrimExpr) and not isinstance(element, tir.IntImm):
            simpler = simplify(element)
            found.append(int(simpler.value) if isinstance(simpler, tir.IntImm) else simpler)
        else:
            found.append(get_const_int(element))
    return tuple(found)


def get_float_tuple(in_tuple: Iterable[Any]) -> tuple[float, ...]:
    """Floats of constant expressions."""
    return tuple([get_const_float(element) for element in in_tuple])


def simplify(expr: Any) -> Any:
    """An expression in its simplest form; Python numbers stay."""
    return Analyzer().simplify(expr) if isinstance(expr, PrimExpr) else expr


def as_extent(expr: Any) -> Any:
    """An extent in its simplest form; 0 where an open one would be less, so that bounds are provable."""
    found = simplify(expr)
    return found if isinstance(found, int) else simplify(tir.max(found, 0))


def is_dynamic_shape(shape: Iterable[Any]) -> bool:
    """Whether a dimension is not a constant."""
    return any(not isinstance(d, int) for d in dims(shape))


def is_empty_shape(shape: Iterable[Any]) -> bool:
    """Whether a dimension is zero."""
    return any(isinstance(d, int) and d == 0 for d in dims(shape))


@overload
def ceil_div(a: int, b: int) -> int: ...
@overload
def ceil_div(a: Any, b: Any) -> Any: ...
def ceil_div(a: Any, b: Any) -> Any:
    """The quotient rounded up."""
    return (
        tir.indexdiv(a + (b - 1), b)
        if not (isinstance(a, int) and isinstance(b, int))
        else -(-a // b)
    )


@overload
def rounded_up(extent: int, step: int) -> int: ...
@overload
def rounded_up(extent: Any, step: Any) -> Any: ...
def rounded_up(extent: Any, step: Any) -> Any:
    """The smallest multiple of the step that is not below the extent."""
    return ceil_div(extent, step) * step


def ravel_index(indices: Sequence[Any], shape: Sequence[Any]) -> Any:
    """The position of an element in row-major order."""
    position: Any = None
    for index, extent in zip(indices, shape, strict=True):
        position = index if position is None else position * extent + index
    return 0 if position is None else position


def unravel_index(idx: Any, shape: Sequence[Any]) -> list[Any]:
    """The indices of a position in row-major order."""
    indices: list[Any] = []
    for extent in reversed(dims(shape)):
        if isinstance(extent, int) and extent <= 1:  # no element of an empty axis is asked for
            indices.append(0)
            continue
        indices.append(tir.indexmod(idx, extent))
        idx = tir.indexdiv(idx, extent)
    # the leading index is below its extent by itself
    return indices[::-1]


def get_max_power2_factor(n: int, max_value: int | None = None) -> int:
    """The largest power of two that divides `n` (and is at most `max_value`)."""
    factor = gcd(n, 1 << 62)
    while max_value is not None and factor > max_value:
        factor //= 2
    return factor


def largest_divisor(n: int, at_most: int) -> int:
    """The largest divisor of `n` that is at most a bound; all numbers divide 0."""
    return next(d for d in range(min(n or at_most, at_most), 0, -1) if n % d == 0)


def divisors(n: int) -> list[int]:
    """All divisors in increasing order."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return small + [n // d for d in reversed(small) if d * d != n]


def equals(value: Any, other: Any) -> PrimExpr:
    """The condition value == other."""
    return tir.EQ(value, other)


def cast_scalar(value: Any, dtype: str) -> PrimExpr:
    """A number or an index expression as a scalar of a dtype."""
    if isinstance(value, (int, float)):
        return tir.const(value, dtype)
    scalar: PrimExpr = value.astype(dtype)
    return scalar


def wide_index(index: PrimExpr) -> PrimExpr:
    """An index out of a tensor, in an integer dtype that holds every extent."""
    is_wide = index.dtype.bits >= 32 and not index.dtype.is_float
    return index if is_wide else index.astype("int32")


def sum_dtype(dtype: str) -> str:
    """The dtype of partial sums: those of half precision would stop at 2048."""
    kind = as_dtype(dtype)
    return "float32" if kind.is_float and kind.bits < 32 else dtype


def product_dtype(dtype: str) -> str:
    """The dtype of sums of products of which a dtype holds the result.

    Eight bits of bfloat16 would lose a part of each product; a pair of them is added in float32 by
    the processors that have instructions for it.
    """
    return "float32" if dtype == "bfloat16" else dtype


def mean_dtype(dtype: str) -> str:
    """As `sum_dtype`, where only the sum's quotient has to fit the elements' dtype."""
    kind = as_dtype(dtype)
    if kind.is_bool:
        return "float32"
    if kind.is_float:
        return sum_dtype(dtype)
    return "int32" if kind.bits < 32 else dtype


def ncw_pack_layout(layout_info: Sequence[int]) -> str:
    """NCW with blocks of the batch and of channels, such as "NCW2n16c"."""
    return f"NCW{layout_info[0]}n{layout_info[1]}c"


def ncw_xc_layout(layout_info: Sequence[int]) -> str:
    """NCW with blocks of channels, whose size comes second."""
    return f"NCW{layout_info[1]}c"


def nchw_pack_layout(layout_info: Sequence[int]) -> str:
    """NCHW with blocks of the batch and of channels, such as "NCHW2n16c"."""
    return f"NCHW{layout_info[0]}n{layout_info[1]}c"


def nchw_xc_layout(layout_info: Sequence[int]) -> str:
    """NCHW with blocks of channels, whose size comes second."""
    return f"NCHW{layout_info[1]}c"


def const_vector(vector: Any, name: str = "const_vector") -> te.Tensor:
    """A tensor of the numbers of a vector."""
    row = np.asarray(vector)
    numbers = [tir.const(v, str(row.dtype)) for v in row.tolist()]
    return te.compute(row.shape, lambda i: chosen(i, numbers), name=name)


def const_matrix(
    matrix: Any, name: str = "const_matrix", attrs: dict[str, Any] | None = None
) -> te.Tensor:
    """A tensor of the numbers of a matrix.

    Parameters
    ----------
    matrix : array
        The numbers.
    name : str
        The tensor's name.
    attrs : dict, optional
        Attributes of its operation; by default, those that keep tuners from rewriting it.
    """
    array = np.asarray(matrix)
    numbers = [tir.const(v, str(array.dtype)) for v in array.ravel().tolist()]
    given = attrs if attrs is not None else {
        "const_matrix": True, "schedule_rule": "None",
    }  # fmt: skip
    width = array.shape[1]
    return te.compute(
        array.shape, lambda i, j: chosen(i * width + j, numbers), name=name, attrs=given
    )


def chosen(index: Any, values: Sequence[Any]) -> Any:
    """The value at an index, which is best a constant after unrolling."""
    found = values[-1]
    for position in range(len(values) - 2, -1, -1):
        found = tir.Select(equals(index, position), values[position], found)
    return found


def within_index(b: Any, e: Any, s: Any, i: Any) -> PrimExpr:
    """Whether an index is one of those from `b` to `e` (left out) in steps of `s`."""
    inside = tir.Select(s < 0, tir.all(i <= b, i > e), tir.all(i >= b, i < e))
    return tir.all(inside, equals(tir.floormod(i - b, s), 0))


def make_idx(b: Any, e: Any, s: Any, z: Any, i: Any) -> PrimExpr:
    """Which of the indices from `b` to `e` in steps of `s` is `i`; kept in [0, z) outside.

    Parameters
    ----------
    b, e, s : Expr
        Where the indices begin and end, and their step.
    z : Expr
        The extent.
    i : Expr
        The index.
    """
    before = tir.Select(s < 0, i < e, i < b)
    behind = tir.Select(s < 0, i > b, i >= e)
    within = tir.floordiv(i - b, s)
    return tir.Select(before, tir.const(0, within.dtype), tir.Select(behind, z - 1, within))


def get_shape(src_shape: Sequence[Any], src_layout: str, dst_layout: str) -> tuple[Any, ...]:
    """A shape in another layout of the same axes, such as NCHW in NHWC.

    Parameters
    ----------
    src_shape : sequence
        The shape.
    src_layout, dst_layout : str
        The layouts.
    """
    if src_layout == dst_layout:
        return tuple(get_const_tuple(src_shape))
    mapping = tir.BijectiveLayout(src_layout, dst_layout)
    return tuple(get_const_tuple(mapping.forward_shape(list(src_shape))))


def swap(arr: Sequence[int], axis: int) -> list[int]:
    """A permutation with one axis and the last exchanged."""
    found = list(arr)
    found[axis], found[-1] = found[-1], found[axis]
    return found


def traverse_inline(
    s: te.Schedule, final_op: te.tensor.Operation, callback: Callable[[te.tensor.Operation], None]
) -> None:
    """Inline what is injective above an operation, calling back for every operation met.

    Parameters
    ----------
    s : te.Schedule
        The schedule.
    final_op : te.tensor.Operation
        The operation to start from.
    callback : callable
        Called with each operation, inputs first.
    """
    for op in operations_above(final_op):
        if tag.is_injective(op.tag) and op not in s.outputs:
            s[op].compute_inline()
        callback(op)


def operations_above(final_op: te.tensor.Operation) -> list[te.tensor.Operation]:
    """The compute operations that an operation needs, itself last, each once."""
    order: list[te.tensor.Operation] = []
    seen: set[int] = set()
    stack: list[tuple[te.tensor.Operation, bool]] = [(final_op, False)]
    while stack:
        op, is_done = stack.pop()
        if is_done:
            order.append(op)
            continue
        if id(op) in seen:
            continue
        seen.add(id(op))
        stack.append((op, True))
        for tensor in reversed(op.input_tensors):
            if not isinstance(tensor.op, te.tensor.PlaceholderOp):
                stack.append((tensor.op, False))
    return order


def is_target(names: str | Sequence[str]) -> bool:
    """Whether the current target has one of the keys."""
    wanted = [names] if isinstance(names, str) else names
    target = Target.current()
    return target is not None and any(key in wanted for key in target.keys)


def arrangement(layout: str) -> Callable[[Any, Any, Any, Any], tuple[Any, ...]]:
    """Indices (or extents) of batch, channel, row and column in a layout."""

    def arranged(n: Any, c: Any, y: Any, x: Any) -> tuple[Any, ...]:
        at = {"N": n, "C": c, "H": y, "W": x}
        return tuple([at[axis] for axis in layout])

    return arranged
