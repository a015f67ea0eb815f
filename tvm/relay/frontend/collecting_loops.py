"""Loops of a dynamic trip count that collect a row in each trip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType
from tvm.relay import op as _op
from tvm.relay.analysis.infer import infer_type_of, tensor_type_of
from tvm.relay.expr import Call, If, Tuple, TupleGetItem, Var
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, static_or
from tvm.relay.frontend.dynamic_extents import with_static_extents
from tvm.relay.frontend.hoisting import with_bindings
from tvm.relay.loops import while_loop
from tvm.relay.traverse import free_vars, operands, post_order, rewrite_post_order
from tvm.relay.ty import Any as AnyDim
from tvm.tir import IntImm

# what a trip gives: whether there is a next one, the states, a row for each collection
Trip = tuple[Any, Sequence[Any], Sequence[Any]]
# from the index of a step, its index from the end, and the states to states and rows
Step = Callable[[Any, Any, Sequence[Any]], tuple[list[Any], list[Any]]]


def collecting_loop(
    body: Callable[[Var, Var, Sequence[Var]], Trip],
    has_next: Callable[[RelayExpr, RelayExpr], RelayExpr],
    goes_on: RelayExpr,
    initial: Sequence[Any],
    backwards: Sequence[bool],
) -> list[Any]:
    """The last states, and what the trips gave, a row for each: collections grow by rows.

    Rows come first, not last, in collections that are `backwards`.
    """
    states = [Var(f"state{i}", infer_type_of(value)) for i, value in enumerate(initial)]
    while True:
        trip = Var("trip", TensorType((), "int64")), Var("goes_on", TensorType((), "bool"))
        is_next, results, pieces = body(*trip, states)
        wider = [
            Var(state.name_hint, _common_type(tensor_type_of(state), tensor_type_of(result)))
            for state, result in zip(states, results, strict=True)
        ]
        if all(
            len(_dynamic_axes(new)) == len(_dynamic_axes(old))
            for new, old in zip(wider, states, strict=True)
        ):
            break
        states = wider
    collections = [
        (_FlatRows if _dynamic_axes(piece) else _Rows)(piece, is_first)
        for piece, is_first in zip(pieces, chain(backwards, repeat(False)), strict=False)
    ]
    following = [trip[0] + constant(1, "int64"), is_next, *results]
    variables, first = [*trip, *states], [constant(0, "int64"), goes_on, *initial]
    for collection in collections:
        variables += collection.variables
        following += collection.appended()
        first += collection.empty()
    bindings, (condition, *following) = _hoisted([has_next(*trip), *following], variables)
    loop = while_loop(lambda *_: condition, variables, lambda *_: following)
    last: RelayExpr = Call(loop, first)
    last = with_bindings(bindings, last)
    fields = [TupleGetItem(last, i) for i in range(len(variables))]
    rest = iter(fields[2 + len(states) :])
    rows = [c.result(fields[0], *[next(rest) for _ in c.variables]) for c in collections]
    return [*fields[2 : 2 + len(states)], *rows]


def scan(
    step: Step, x: RelayExpr, axis: int, initial: Sequence[Any], backwards: Sequence[bool]
) -> tuple[list[Any], list[Any]]:
    """The last states, and what the steps gave, a row for each: one step for each slice of ``x``.

    They are unrolled if their number is known, else a loop.
    """
    length = infer_shape(x)[axis]
    if isinstance(length, int):
        return _unrolled(step, length, list(initial), backwards)
    count, goes_on = extent_of(x, axis), constant(True, "bool")
    last = count - constant(1, "int64")
    results = collecting_loop(
        lambda trip, _, states: (goes_on, *step(trip, last - trip, states)),
        lambda trip, _: _op.less(trip, count), goes_on, initial, backwards,
    )  # fmt: skip
    return results[: len(initial)], results[len(initial) :]


def _unrolled(
    step: Step, length: int, states: list[Any], backwards: Sequence[bool]
) -> tuple[list[Any], list[Any]]:
    if length == 0:
        first = constant(0, "int64")
        return states, [no_rows_of(piece) for piece in step(first, first, states)[1]]
    rows = []
    for trip in range(length):
        positions = constant(trip, "int64"), constant(length - 1 - trip, "int64")
        states, pieces = step(*positions, states)
        rows.append(pieces)
    columns = zip(zip(*rows, strict=True), backwards, strict=True)
    return states, [_op.stack(list(c[::-1] if back else c), 0) for c, back in columns]


def recurrence(
    inputs: RelayExpr,
    initial: Sequence[RelayExpr],
    step: Callable[[RelayExpr, RelayExpr, list[RelayExpr]], tuple[RelayExpr, list[RelayExpr]]],
    backwards: bool,
) -> tuple[RelayExpr, list[RelayExpr]]:
    """The outputs of all steps, one for each row of inputs, and the last states.

    `step(time, row, states)` gives an output and states.
    """
    count = infer_shape(inputs)[0]
    parts = list(_op.split(inputs, count, 0)) if isinstance(count, int) and count else []
    known = iter(parts[::-1] if backwards else parts)

    def body(position: Any, mirrored: Any, states: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        time = mirrored if backwards else position
        row = _op.squeeze(next(known), [0]) if parts else _op.take(inputs, time, 0)
        output, new = step(time, row, list(states))
        return new, [output]

    states, (outputs,) = scan(body, inputs, 0, initial, [backwards])
    return outputs, states


class _Rows:
    """A tensor that grows by a row in each trip, at its end or at its begin."""

    def __init__(self, piece: RelayExpr, is_first: bool) -> None:
        ty = tensor_type_of(piece)
        self.piece, self.is_first = piece, is_first
        self.variables = [Var("rows", TensorType([AnyDim(), *ty.shape], ty.dtype))]

    def empty(self) -> list[RelayExpr]:
        """The values before the first trip."""
        return [no_rows_of(self.piece)]

    def appended(self) -> list[RelayExpr]:
        """The values behind a trip."""
        return [self._joined(_op.expand_dims(self.piece, 0))]

    def _joined(self, new: RelayExpr) -> RelayExpr:
        old = self.variables[0]
        return _op.concatenate([new, old] if self.is_first else [old, new], 0)

    def result(self, count: RelayExpr, *fields: RelayExpr) -> RelayExpr:
        """The tensor behind the last of ``count`` trips."""
        return fields[0]


class _FlatRows(_Rows):
    """Rows of dynamic extents: their elements flattened, and those extents."""

    def __init__(self, piece: RelayExpr, is_first: bool) -> None:
        super().__init__(piece, is_first)
        rank = len(infer_shape(piece))
        self.variables = [
            Var("elements", TensorType([AnyDim()], infer_dtype(piece))),
            Var("extents", TensorType([rank], "int64")),
        ]

    def empty(self) -> list[RelayExpr]:
        extents = static_or(infer_shape(self.piece), 0)
        return [constant(np.zeros(0, infer_dtype(self.piece))), constant(extents, "int64")]

    def appended(self) -> list[RelayExpr]:
        line = self._joined(_op.reshape(self.piece, (-1,)))
        return [line, _op.shape_of(self.piece, "int64")]

    def result(self, count: RelayExpr, *fields: RelayExpr) -> RelayExpr:
        elements, extents = fields
        shape = _op.concatenate([_op.reshape(count, (1,)), extents], 0)
        return with_static_extents(_op.reshape(elements, shape), [None, *infer_shape(self.piece)])


def _hoisted(
    exprs: Sequence[RelayExpr], variables: Sequence[Var]
) -> tuple[list[tuple[Var, RelayExpr]], list[RelayExpr]]:
    """What no trip changes, computed once before: its bindings, and the rest of a trip."""
    body, changing = Tuple(exprs), {id(v) for v in variables}
    fixed: set[int] = set()
    chosen: dict[int, tuple[Var, RelayExpr]] = {}
    for node in post_order(body, is_opaque=lambda node: not isinstance(node, _AT_ONCE)):
        below = operands(node)
        if not isinstance(node, _AT_ONCE):
            is_fixed = not any(id(v) in changing for v in free_vars(node))
        else:
            is_fixed = all(id(child) in fixed for child in below) and node is not body
        if is_fixed:
            fixed.add(id(node))
        elif isinstance(node, _AT_ONCE):
            for child in below:
                if id(child) in fixed and isinstance(child, (*_AT_ONCE, If)):
                    chosen.setdefault(id(child), (Var("once", infer_type_of(child)), child))
    done: dict[int, RelayExpr] = {key: name for key, (name, _) in chosen.items()}
    rest = rewrite_post_order(body, lambda _, new: new, lambda n: not isinstance(n, _AT_ONCE), done)
    return list(chosen.values()), list(operands(rest))


# computed wherever they stand, unlike branches and functions
_AT_ONCE = (Call, Tuple, TupleGetItem)


def no_rows_of(value: RelayExpr) -> RelayExpr:
    """No elements along a new first axis."""
    return constant(np.zeros((0, *infer_shape(value)), infer_dtype(value)))


def extent_of(x: RelayExpr, axis: int) -> RelayExpr:
    return _op.take(_op.shape_of(x, "int64"), constant(axis % len(infer_shape(x)), "int64"), 0)


def _dynamic_axes(value: RelayExpr) -> list[int]:
    return [i for i, dim in enumerate(infer_shape(value)) if not isinstance(dim, int)]


def _common_type(before: TensorType, after: TensorType) -> TensorType:
    """The type of both: dimensions that differ are dynamic."""
    if len(before.shape) != len(after.shape) or before.dtype != after.dtype:
        raise OpAttributeUnImplemented(
            f"Loop requires values whose rank and element type stay, got {before} and then {after}"
        )
    dims = [
        int(a) if isinstance(a, IntImm) and isinstance(b, IntImm) and int(a) == int(b) else AnyDim()
        for a, b in zip(before.shape, after.shape, strict=True)
    ]
    return TensorType(dims, before.dtype)
