"""Shapes of which some sizes are known at run time only.

Such a size is an expression, a number without axes; lists of sizes mix numbers and expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm import tir
from tvm.arith import Analyzer
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType
from tvm.relay import op as _op
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Constant, var
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, static_or
from tvm.relay.frontend.indexing import SLICE_END
from tvm.relay.function import Function
from tvm.relay.traverse import bind
from tvm.tir import Any as AnyDim

from .registry import as_number, is_tensor


def with_variables(shape: Sequence[Any], name: str) -> list[Any]:
    """A shape whose dynamic sizes are variables, so that equal sizes are seen to be equal."""
    return [
        tir.SizeVar(f"{name}_{axis}", "int64") if isinstance(dim, AnyDim) else dim
        for axis, dim in enumerate(shape)
    ]


def without_variables(func: Function) -> Function:
    """A function whose parameters have dynamic sizes in place of variables."""
    replaced = {}
    for parameter in func.params:
        if not isinstance(infer_type_of(parameter), TensorType):
            continue
        shape = infer_shape(parameter)
        if any(not isinstance(dim, (int, AnyDim)) for dim in shape):
            opened = [dim if isinstance(dim, int) else AnyDim() for dim in shape]
            replaced[parameter] = var(
                parameter.name_hint, shape=opened, dtype=infer_dtype(parameter)
            )
    if not replaced:
        return func
    body = bind(func.body, replaced)
    return Function([replaced.get(p, p) for p in func.params], body)


def is_dynamic(x: RelayExpr) -> bool:
    """Whether a tensor has sizes that are not known."""
    return any(not isinstance(dim, (int, np.integer)) for dim in infer_shape(x))


def size_of(x: RelayExpr, axis: int) -> Any:
    """The size of an axis, read at run time if need be."""
    dim = infer_shape(x)[axis]
    if isinstance(dim, (int, np.integer)):
        return int(dim)
    rank = len(infer_shape(x))
    return _op.take(_op.shape_of(x, "int64"), constant(axis % rank, "int64"), 0, mode="fast")


def sizes_of(x: RelayExpr) -> list[Any]:
    """All sizes."""
    return [size_of(x, axis) for axis in range(len(infer_shape(x)))]


def as_sizes(values: Any) -> list[Any]:
    """Sizes as numbers where they are known."""
    items = values if isinstance(values, (list, tuple)) else [values]
    numbers = [as_number(item) for item in items]
    return [number if is_tensor(number) else int(number) for number in numbers]


def has_dynamic(sizes: Sequence[Any]) -> bool:
    """Whether some sizes are expressions."""
    return any(is_tensor(size) for size in sizes)


def stacked(sizes: Sequence[Any]) -> RelayExpr:
    """Sizes as one tensor."""
    return _op.stack([_expr(size) for size in sizes], 0)


def symbol_of(size: Any) -> Any:
    """A size in terms of the variables in shapes; None if it depends on something else."""
    if not is_tensor(size):
        return size
    if isinstance(size, Constant):
        return as_number(size)
    if (source := _source_axis(size)) is not None:
        dim = infer_shape(source[0])[source[1]]
        return None if isinstance(dim, AnyDim) else dim
    if (name := _name_of(size)) == "cast":
        return symbol_of(size.args[0])
    if name not in _ARITHMETIC:
        return None
    operands = [symbol_of(arg) for arg in size.args]
    return None if any(o is None for o in operands) else _ARITHMETIC[name](*operands)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b,
}  # fmt: skip


def are_same(a: Any, b: Any) -> bool:
    """Whether two sizes are surely the same."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if a is None or b is None or isinstance(a, AnyDim) or isinstance(b, AnyDim):
        return False
    return bool(Analyzer().can_prove_equal(a, b))


def reshaped(x: RelayExpr, sizes: Sequence[Any]) -> RelayExpr:
    """``x`` in another shape, its sizes taken from ``x`` where they are surely the same."""
    if not has_dynamic(sizes):
        return _op.reshape(x, sizes)
    codes = _codes(infer_shape(x), [symbol_of(size) for size in sizes])
    if codes is not None:
        return _op.reshape(x, codes)
    if sum(is_tensor(size) for size in sizes) == 1 and -1 not in sizes:
        return _op.reshape(x, [-1 if is_tensor(size) else size for size in sizes])
    if (like := _source_of(x, sizes)) is not None:
        return _op.reshape_like(x, like[0], 0, 1, like[1], like[1] + like[2])
    return with_known(_op.reshape(x, stacked(sizes)), sizes)


def _source_of(x: RelayExpr, sizes: Sequence[Any]) -> tuple[RelayExpr, int, int] | None:
    """The tensor, axis and number of axes that the first axis of ``x`` is split like."""
    count = len(sizes) - len(infer_shape(x)) + 1
    rest = zip(sizes[max(count, 0) :], infer_shape(x)[1:], strict=False)
    if count < 2 or any(is_tensor(size) or size != dim for size, dim in rest):
        return None
    positions = [found for size in sizes[:count] if (found := _source_axis(size)) is not None]
    if len(positions) < count:
        return None
    source, first = positions[0]
    expected = [(source, first + i) for i in range(count)]
    same = all(p[0] is e[0] and p[1] == e[1] for p, e in zip(positions, expected, strict=True))
    return (source, first, count) if same else None


def _source_axis(size: Any) -> tuple[RelayExpr, int] | None:
    """The tensor and axis that a size is read from."""
    while is_tensor(size) and _name_of(size) == "cast":
        size = size.args[0]
    if not is_tensor(size) or _name_of(size) != "take" or _name_of(size.args[0]) != "shape_of":
        return None
    return size.args[0].args[0], as_number(size.args[1])


def _name_of(expr: RelayExpr) -> str:
    return str(getattr(getattr(expr, "op", None), "name", ""))


def _codes(before: Sequence[Any], wanted: list[Any]) -> list[int] | None:
    """A new shape in relay's terms: 0 copies a size, -3 joins two, -4 splits one, -1 follows."""
    if any(dim is None for dim in wanted) or any(isinstance(dim, AnyDim) for dim in before):
        return None
    if -1 in [dim for dim in wanted if isinstance(dim, int)]:
        wanted = _resolved(before, wanted)
    codes: list[int] = []
    at = position = 0
    while position < len(wanted):
        dim, rest = wanted[position], wanted[position:]
        if at < len(before) and are_same(before[at], dim):
            codes.append(dim if isinstance(dim, int) else 0)
            at, position = at + 1, position + 1
        elif at + 1 < len(before) and are_same(before[at] * before[at + 1], dim):
            codes.append(-3)
            at, position = at + 2, position + 1
        elif at < len(before) and _splits(before[at], rest):
            codes.extend([-4, *static_or(rest[:2], -1)])
            at, position = at + 1, position + 2
        else:
            left = sum(not isinstance(d, int) or d == -1 for d in rest)
            fits = left <= 1 and -4 not in codes
            return [*codes, *static_or(rest, -1)] if fits else None
    return codes


def _splits(dim: Any, rest: Sequence[Any]) -> bool:
    """Whether the next two sizes, one of them known, make up another."""
    return (
        len(rest) > 1
        and any(isinstance(part, int) for part in rest[:2])
        and are_same(rest[0] * rest[1], dim)
    )


def _resolved(before: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
    """The size that follows from the others."""
    total, known = _product(before), _product([dim for dim in wanted if not _follows(dim)])
    found = Analyzer().simplify(tir.floordiv(total, known))
    size = found.value if isinstance(found, tir.IntImm) else found
    if not are_same(size * known, total):
        return list(wanted)
    return [size if _follows(dim) else dim for dim in wanted]


def _follows(dim: Any) -> bool:
    return isinstance(dim, int) and dim == -1


def _product(dims: Sequence[Any]) -> Any:
    total: Any = tir.const(1, "int64")
    for dim in dims:
        total = total * dim
    return total


def with_known(x: RelayExpr, sizes: Sequence[Any]) -> RelayExpr:
    """The type of a tensor made by sizes says which of them are known."""
    known = [0 if is_tensor(size) or size == -1 else size for size in sizes]
    return _op.reshape(x, known) if any(known) else x


def broadcast(x: RelayExpr, sizes: Sequence[Any]) -> RelayExpr:
    """``x`` broadcast to sizes."""
    if len(sizes) == len(infer_shape(x)) and all(
        are_same(have, symbol_of(size)) for have, size in zip(infer_shape(x), sizes, strict=True)
    ):
        return x
    if not has_dynamic(sizes):
        return _op.broadcast_to(x, sizes)
    return with_known(_op.broadcast_to(x, stacked(sizes)), sizes)


def common_size(a: Any, b: Any) -> Any:
    """What two sizes of an axis broadcast to: a dynamic one may turn out to be 1."""
    for size, other in ((a, b), (b, a)):
        if isinstance(size, int):
            return size if size != 1 else other
    return _op.where(_op.equal(_expr(a), constant(1, "int64")), _expr(b), _expr(a))


def filled(value: RelayExpr, sizes: Sequence[Any], dtype: str) -> RelayExpr:
    """A tensor of one number."""
    return with_known(_op.full(value, stacked(sizes), dtype), sizes)


def cut(x: RelayExpr, axis: int, start: Any, end: Any, step: int) -> RelayExpr:
    """A slice of an axis whose bounds or size are not known: the positions are counted off."""
    first, last = slice_bounds(x, axis, start, end)
    return _op.take(x, _op.arange(first, last, constant(step, "int64"), "int64"), axis)


def first_of(x: RelayExpr, axis: int, count: Any) -> RelayExpr:
    """The first slices of an axis."""
    if is_tensor(count):
        return cut(x, axis, 0, count, 1)
    return _op.strided_slice(x, [0], [count], [1], [axis])


def slice_bounds(x: RelayExpr, axis: int, start: Any, end: Any) -> tuple[RelayExpr, RelayExpr]:
    """The bounds of a slice, from the front and in order."""
    extent = size_of(x, axis)
    first = _bounded(0 if start is None else start, extent)
    last = (
        extent
        if end is None or (not is_tensor(end) and end >= SLICE_END)
        else _bounded(end, extent)
    )
    return first, _op.maximum(_expr(last), first)


def _expr(size: Any) -> RelayExpr:
    return _op.cast(size, "int64") if is_tensor(size) else constant(size, "int64")


def _bounded(bound: Any, extent: Any) -> RelayExpr:
    """A bound of a slice from the front, inside the axis."""
    bounded = index_from_front(bound, extent)
    return _op.minimum(_op.maximum(bounded, constant(0, "int64")), _expr(extent))


def index_from_front(index: Any, extent: Any) -> RelayExpr:
    """An index that may count from the end."""
    expr = _expr(index)
    return _op.where(_op.less(expr, constant(0, "int64")), expr + _expr(extent), expr)
