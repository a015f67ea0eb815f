"""Loops of scripted modules that go on for as long as data says: recursive functions.

    while x.sum() > 1:               let loop = fn (i, goes_on, x, c) {
        x, c = x / 2, c + 1    ->        if goes_on: loop(i + 1, sum(x / 2) > 1, x / 2, c + 1)
                                         else: (i, goes_on, x, c) }

What a step changes is found by converting the body until nothing new is seen to change: then the
values that are carried from step to step, and their types, are known. What was computed before the
loop stays outside of the function, which would compute it in each step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import TupleGetItem, Var
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.frontend.hoisting import bound_before, with_bindings
from tvm.relay.loops import while_loop
from tvm.relay.ty import TensorType
from tvm.tir import Any as AnyDim

from .control import State, as_flag, assign, names_within
from .nested import as_tensor, filled, flattened, followed, is_same, with_structure_of
from .registry import as_dtype, as_number, is_tensor, promote_dtypes

if TYPE_CHECKING:
    from .importer import GraphImporter

_MOST_TRIALS = 20


def dynamic_loop(
    importer: GraphImporter, node: Any, trip_count: Any, condition: Any, carried: list[Any],
    first: int = 0,
) -> list[Any]:  # fmt: skip
    """The values after the last step of a loop of which ``first`` steps were taken already."""
    loop = _Loop(importer, node, carried, first)
    for _ in range(_MOST_TRIALS):
        if (step := loop.tried()) is not None:
            return loop.finished(step, trip_count, condition)
    raise TVMError(
        "a loop that depends on data requires values whose types do not change", hint=_HINT
    )


_HINT = "trace the model with example inputs instead of scripting it"


class _Loop:
    """What is known of a loop: the values at its start, and which of them its steps change."""

    def __init__(self, importer: GraphImporter, node: Any, carried: list[Any], first: int) -> None:
        (self.block,) = node.blocks()
        self.importer = importer
        self.inner = names_within(node)
        self.before = State.of(importer)
        self.carried = len(carried)
        self.start = list(carried)
        self.names: list[str] = []
        self.held: list[int] = []  # containers
        self.positions: list[str | int] = []  # of both
        self.opened: dict[int, Var] = {}  # by the positions of values in the nested ones
        self.index = Var("index", TensorType((), "int64"))
        self.first = first
        self.number = self.index + constant(first, "int64") if first else self.index

    def tried(self) -> list[Any] | None:
        """The condition and the values after a step, None if it shows that more is changed."""
        leaves, pattern = self._leaves()
        values = filled(pattern, [self.opened.get(i, leaf) for i, leaf in enumerate(leaves)])
        assign(self.importer, self.before, self.names, self.held, values[self.carried :])
        start = State.of(self.importer, self.before)
        inputs = [value.debugName() for value in self.block.inputs()]
        given = [self.number, *values[: self.carried]]
        self.importer.values.update(zip(inputs, given, strict=True))
        condition, *results = self.importer.block_results(self.block)
        after = State.of(self.importer, self.before)
        self.before.restore(self.importer)
        results += [after.values[name] for name in self.names]
        results += [after.contents[key][1] for key in self.held]
        if self._found_new_state(start, after) or self._initialized(results):
            return None
        following: dict[int, Any] = {}
        for one, value in zip(pattern, results, strict=True):
            followed(one, value, following)
        return None if self._widened(leaves, following) else [condition, following]

    def _leaves(self) -> tuple[list[Any], list[Any]]:
        leaves: list[Any] = []
        pattern = [flattened(value, leaves) for value in self.start]
        for i, leaf in enumerate(leaves):
            if is_tensor(leaf) and i not in self.opened:
                self.opened[i] = _variable(i, _shape(leaf), infer_dtype(leaf))
        return leaves, pattern

    def _found_new_state(self, start: State, after: State) -> bool:
        """Whether the step wrote to names and containers that are not carried yet."""
        names, held = start.changes(after, self.inner)
        more = [name for name in names if name not in self.names]
        held = [key for key in held if key not in self.held]
        if not more and not held:
            return False
        self.names += more
        self.held += held
        known = dict(zip(self.positions, self.start[self.carried :], strict=True))
        self.positions = [*self.names, *self.held]
        self.start[self.carried :] = [
            known[slot] if slot in known
            else self.before.contents[slot][1] if isinstance(slot, int)
            else self.before.values[slot]
            for slot in self.positions
        ]  # fmt: skip
        self.opened = {}
        return True

    def _initialized(self, results: list[Any]) -> bool:
        """Whether the step shows what values are that nothing is known of at the start."""
        made = [with_structure_of(a, b) for a, b in zip(self.start, results, strict=True)]
        if all(a is b for a, b in zip(made, self.start, strict=True)):
            return False
        self.start, self.opened = made, {}
        return True

    def _widened(self, leaves: list[Any], following: dict[int, Any]) -> bool:
        """Whether the step gives values of more types than those known so far."""
        changed = False
        for i, new in following.items():
            old = self.opened.get(i)
            if old is None and is_same(new, leaves[i]):
                continue
            value = as_tensor(leaves[i]) if old is None else old
            shape, dtype = _joined_type(value, as_tensor(new))
            if old is None or (shape, dtype) != (_shape(old), infer_dtype(old)):
                self.opened[i] = _variable(i, shape, dtype)
                changed = True
        return changed

    def finished(self, step: list[Any], trip_count: Any, condition: Any) -> list[Any]:
        """The values after the loop."""
        goes_on, following = step
        positions = list(self.opened)
        variables = [self.opened[i] for i in positions]
        flag = Var("goes_on", TensorType((), "bool"))
        count = as_dtype(as_number(trip_count), "int64")
        if self.first:
            count = count - constant(self.first, "int64")
        next_values = [
            as_dtype(as_tensor(following[i]), infer_dtype(self.opened[i])) for i in positions
        ]
        is_next = _op.logical_and(flag, _op.less(self.index, count))
        following_ones = [self.index + constant(1, "int64"), as_flag(goes_on), *next_values]
        bindings, (is_next, *following_ones) = bound_before(
            [is_next, *following_ones], [*self.before.expressions(), count]
        )
        loop = while_loop(
            lambda *_: is_next, [self.index, flag, *variables], lambda *_: following_ones
        )
        leaves, pattern = self._leaves()
        start = [as_dtype(as_tensor(leaves[i]), infer_dtype(self.opened[i])) for i in positions]
        result = with_bindings(bindings, loop(constant(0, "int64"), as_flag(condition), *start))
        for position, i in enumerate(positions):
            leaves[i] = TupleGetItem(result, position + 2)
        values = filled(pattern, leaves)
        assign(self.importer, self.before, self.names, self.held, values[self.carried :])
        return list(values[: self.carried])


def _variable(slot: int, shape: tuple[Any, ...], dtype: str) -> Var:
    sizes = [AnyDim() if size is None else size for size in shape]
    return Var(f"carried{slot}", TensorType(sizes, dtype))


def _shape(value: RelayExpr) -> tuple[int | None, ...]:
    """The sizes, None where they are known at run time only."""
    return tuple([
        int(size) if isinstance(size, (int, np.integer)) else None for size in infer_shape(value)
    ])  # fmt: skip


def _joined_type(old: RelayExpr, new: RelayExpr) -> tuple[tuple[int | None, ...], str]:
    before, after = _shape(old), _shape(new)
    if len(before) != len(after):
        raise TVMError(
            "a loop that depends on data requires tensors that keep their number of axes, got "
            f"{len(before)} before a step and {len(after)} after it",
            hint=_HINT,
        )
    shape = tuple([a if a == b else None for a, b in zip(before, after, strict=True)])
    return shape, promote_dtypes(infer_dtype(old), infer_dtype(new))
