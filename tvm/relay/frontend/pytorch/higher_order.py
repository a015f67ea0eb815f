"""Operators of FX graphs that take graphs: branches, loops, and functions of slices.

cond(c, f, g, [x])               ->    if (c) { f(x) } else { g(x) }
while_loop(c, f, [x], [y])       ->    a recursive function
scan(f, [carry], [xs], [y])      ->    f(carry, xs[0], y), f(.., xs[1], y), ..
map_impl(f, [xs], [y])           ->    stack(f(xs[0], y), f(xs[1], y), ..)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import If, Tuple, TupleGetItem, Var
from tvm.relay.frontend.common import constant, infer_shape
from tvm.relay.loops import while_loop

from .control import as_flag
from .nested import as_tensor
from .registry import as_number, is_tensor

# the outputs of a graph module for values as inputs
Run = Callable[[Any, Sequence[Any]], list[Any]]


def is_higher_order(target: Any) -> bool:
    """Whether a node's target is an operator that takes graphs."""
    return any(kind.__name__ == "HigherOrderOperator" for kind in type(target).__mro__)


def higher_order(run: Callable[..., Any], name: str, args: Sequence[Any]) -> list[Any]:
    """The results of an operator on graphs."""
    if name not in _OPERATORS:
        raise OpNotImplemented(
            f"the PyTorch importer requires operators it knows, got the higher-order {name}; of "
            f"these it knows {', '.join(_OPERATORS)}",
            hint="write the model without it there",
        )

    def results(module: Any, inputs: Sequence[Any]) -> list[Any]:
        found = run(module, inputs)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    return _OPERATORS[name](results, *args)


def _cond(run: Run, flag: Any, yes: Any, no: Any, operands: Sequence[Any] = ()) -> list[Any]:
    flag = as_number(flag)
    if not is_tensor(flag):
        return run(yes if flag else no, operands)
    branches = [[as_tensor(v) for v in run(module, operands)] for module in (yes, no)]
    chosen = If(as_flag(flag), Tuple(branches[0]), Tuple(branches[1]))
    return [TupleGetItem(chosen, i) for i in range(len(branches[0]))]


def _while(
    run: Run, condition: Any, step: Any, carried: Sequence[Any], others: Sequence[Any] = ()
) -> list[Any]:
    start = [as_tensor(value) for value in carried]
    variables = [Var(f"carried{i}", infer_type_of(value)) for i, value in enumerate(start)]
    loop = while_loop(
        lambda *values: as_flag(run(condition, [*values, *others])[0]),
        variables,
        lambda *values: [as_tensor(v) for v in run(step, [*values, *others])],
    )
    result = loop(*start)
    return [TupleGetItem(result, i) for i in range(len(start))]


def _rows(values: Sequence[RelayExpr]) -> list[list[RelayExpr]]:
    """The slices of tensors along their first axis, of all of them for each index."""
    count = infer_shape(values[0])[0]
    if not isinstance(count, (int, np.integer)):
        raise TVMError("functions of slices require a number of slices that is known at import")
    positions = [constant(i, "int64") for i in range(count)]
    return [[_op.take(value, position, 0) for value in values] for position in positions]


def _stacked(rows: Sequence[Sequence[Any]]) -> list[RelayExpr]:
    return [_op.stack([as_tensor(v) for v in parts], 0) for parts in zip(*rows, strict=True)]


def _scan(
    run: Run, step: Any, carried: Sequence[Any], data: Sequence[Any], others: Sequence[Any] = ()
) -> list[Any]:
    carried, rows = list(carried), []
    for row in _rows(data):
        results = run(step, [*carried, *row, *others])
        rows.append(results[len(carried) :])
        carried = results[: len(carried)]
    return [*carried, *_stacked(rows)]


def _map(run: Run, step: Any, data: Sequence[Any], others: Sequence[Any] = ()) -> list[Any]:
    return _stacked([run(step, [*row, *others]) for row in _rows(data)])


_OPERATORS: dict[str, Callable[..., list[Any]]] = {
    "cond": _cond, "while_loop": _while, "scan": _scan, "map_impl": _map,
}  # fmt: skip
