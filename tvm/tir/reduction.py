"""Commutative reducers: ``sum``, ``min``, ``max`` and those that programs define."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.support import dtype as as_dtype

from . import arithmetic as _op
from .expr import BOOL, CommReducer, IterVar, IterVarType, Reduce, Var, as_expr, const
from .math_op import infinity, max_value, min_value


def comm_reducer(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """Define a commutative reducer.

    Parameters
    ----------
    fcombine : callable
        The combination of two values, or of two tuples of values.
    fidentity : callable
        From the dtype (or dtypes) to the neutral element (or elements).
    name : str
        The reducer's name.

    Returns
    -------
    callable
        ``reducer(expr, axis, where=None, init=None)`` builds a reduction over iteration
        variables; ``reducer(a, b, ...)`` combines values directly.
    """

    def reducer(*args: Any, **options: Any) -> Any:
        if options or len(args) < 2 or isinstance(args[1], (IterVar, list, tuple)):
            return _make_reduce(fcombine, fidentity, *args, **options)
        _check_values(name, args)
        return reduce(fcombine, [value for value in args if value is not None])

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = f"The {name} of an expression over axes, or of the given values."
    return reducer


def _check_values(name: str, values: Sequence[Any]) -> None:
    """Reject `te.sum(A[i], i)`, where the second operand was meant as the axis."""
    first, last = values[0], values[-1]
    if len(values) != 2 or type(last) is not Var or not last.dtype.is_int:
        return
    if name == "sum" or as_expr(first).dtype.is_float:
        raise RuntimeTypeError(
            f"{name} over an axis requires one that te.reduce_axis made, got {last.name}, an axis of "
            f"the result or a scalar; an operator combines it as a value"
        )


def _make_reduce(
    fcombine: Callable[..., Any],
    fidentity: Callable[..., Any],
    expr: Any,
    axis: IterVar | Sequence[IterVar],
    where: Any = None,
    init: Any = None,
) -> Any:
    axes: list[Any] = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    for over in axes:
        if not isinstance(over, IterVar) or over.iter_type is IterVarType.DataPar:
            raise RuntimeTypeError(
                f"a reduction requires axes that te.reduce_axis made, got {over}"
            )
    condition = const(True, BOOL) if where is None else as_expr(where)
    if not condition.dtype.is_bool:
        raise RuntimeTypeError(f"a reduction requires a condition as where, got {condition.dtype}")
    if not isinstance(expr, (tuple, list)):
        value = as_expr(expr)
        combiner = _combiner_of_one(fcombine, fidentity, value)
        start = [] if init is None else [as_expr(init, value.dtype)]
        return Reduce(combiner, [value], axes, condition, 0, start)
    values = [as_expr(item) for item in expr]
    combiner = _combiner_of_tuple(fcombine, fidentity, values)
    start = [] if init is None else [as_expr(i, v.dtype) for i, v in zip(init, values, strict=True)]
    return tuple([Reduce(combiner, values, axes, condition, i, start) for i in range(len(values))])


def _combiner_of_one(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], value: PrimExpr
) -> CommReducer:
    names = _parameter_names(fcombine)
    lhs, rhs = Var(names[0], value.dtype), Var(names[1], value.dtype)
    result = as_expr(fcombine(lhs, rhs), value.dtype)
    return CommReducer((lhs,), (rhs,), (result,), (as_expr(fidentity(value.dtype), value.dtype),))


def _combiner_of_tuple(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], values: list[PrimExpr]
) -> CommReducer:
    names = _parameter_names(fcombine)
    lhs = tuple([Var(f"{names[0]}_{i}", value.dtype) for i, value in enumerate(values)])
    rhs = tuple([Var(f"{names[1]}_{i}", value.dtype) for i, value in enumerate(values)])
    result = fcombine(lhs, rhs)
    identity = fidentity(*[value.dtype for value in values])
    if len(result) != len(values) or len(identity) != len(values):
        raise RuntimeValueError(
            f"comm_reducer requires {len(values)} results and neutral elements, "
            f"got {len(result)} and {len(identity)}"
        )
    return CommReducer(lhs, rhs, tuple(result), tuple(identity))


def _parameter_names(fcombine: Callable[..., Any]) -> list[str]:
    try:
        names = list(inspect.signature(fcombine).parameters)
    except ValueError:
        names = []
    return names if len(names) == 2 else ["lhs", "rhs"]


def greatest(dtype: str) -> PrimExpr:
    """What no value exceeds: infinity where the type has one."""
    return infinity(dtype) if _has_infinity(dtype) else max_value(dtype)


def least(dtype: str) -> PrimExpr:
    """What no value is below."""
    return -infinity(dtype) if _has_infinity(dtype) else min_value(dtype)


def _has_infinity(dtype: str) -> bool:
    kind = as_dtype(dtype)
    return kind.is_float and not kind.is_custom and kind.code != "e4m3_float"


sum = comm_reducer(lambda x, y: _op.add(x, y), lambda t: const(0, t), name="sum")
min = comm_reducer(lambda x, y: _op.minimum(x, y), greatest, name="min")
max = comm_reducer(lambda x, y: _op.maximum(x, y), least, name="max")

__all__ = ["comm_reducer", "max", "min", "sum"]
