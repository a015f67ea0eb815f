"""Branches and loops of scripted modules whose conditions depend on data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import If, Tuple, TupleGetItem, Var
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape
from tvm.relay.loops import while_loop
from tvm.relay.ty import TensorType

from .registry import as_dtype, is_tensor, promote_dtypes


def choice(condition: RelayExpr, yes: Sequence[Any], no: Sequence[Any]) -> list[Any]:
    """The results of one of two branches, by a condition."""
    leaves = [_merged(a, b) for a, b in zip(yes, no, strict=True)]
    chosen = If(_as_flag(condition), Tuple([a for a, _ in leaves]), Tuple([b for _, b in leaves]))
    return [TupleGetItem(chosen, i) for i in range(len(leaves))]


def _merged(a: Any, b: Any) -> tuple[RelayExpr, RelayExpr]:
    """Two values as tensors of one type."""
    left, right = _as_tensor(a), _as_tensor(b)
    dtype = promote_dtypes(infer_dtype(left), infer_dtype(right))
    return as_dtype(left, dtype), as_dtype(right, dtype)


def _as_tensor(value: Any) -> RelayExpr:
    if is_tensor(value):
        return value
    if isinstance(value, bool):
        return constant(value)
    if isinstance(value, (int, float)):
        return constant(value, "int64" if isinstance(value, int) else "float32")
    raise TVMError(
        f"a branch or loop that depends on data requires tensors and numbers, got {value!r}",
        hint="trace the model with example inputs instead of scripting it",
    )


def _as_flag(condition: Any) -> RelayExpr:
    """A condition without axes."""
    flag = as_dtype(condition, "bool")
    return flag if infer_shape(flag) == () else _op.reshape(flag, ())


def recursion(
    step: Callable[[Any, list[Any]], list[Any]],
    trip_count: Any,
    condition: Any,
    carried: Sequence[Any],
    first: int,
) -> list[Any]:
    """The values after the last step.

    ``step`` takes the number of the step and the values, and gives whether to go on and the next
    values. Shapes stay the same from step to step.
    """
    start = [constant(0, "int64"), _as_flag(condition), *[_as_tensor(v) for v in carried]]
    names = ["index", "goes_on", *[f"carried{i}" for i in range(len(carried))]]
    variables = [
        Var(name, TensorType(infer_shape(value), infer_dtype(value)))
        for name, value in zip(names, start, strict=True)
    ]
    count = as_dtype(trip_count, "int64")

    def goes_on(index: Any, flag: Any, *_: Any) -> RelayExpr:
        return _op.logical_and(flag, _op.less(index, count))

    def following(index: Any, flag: Any, *values: Any) -> list[RelayExpr]:
        number = index if not first else index + constant(first, "int64")
        condition, *results = step(number, list(values))
        kept = [
            as_dtype(_as_tensor(new), infer_dtype(old))
            for new, old in zip(results, values, strict=True)
        ]
        return [index + constant(1, "int64"), _as_flag(condition), *kept]

    result = while_loop(goes_on, variables, following)(*start)
    return [TupleGetItem(result, i + 2) for i in range(len(carried))]
