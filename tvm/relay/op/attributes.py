"""Attribute values in one form: Python ints, floats and tuples, whatever the caller wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np

from tvm.error import OpAttributeInvalid
from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Constant, Tuple, TupleWrapper, const
from tvm.tir import FloatImm, IntImm

P = ParamSpec("P")
R = TypeVar("R")


class UnsuitableValue(OpAttributeInvalid):
    """A value that an attribute does not take: what it is, and what is wanted."""

    def __init__(self, wanted: str, value: object) -> None:
        super().__init__(f"{wanted} is required, got {value!r}")
        self.wanted = wanted
        self.value = value


class Numbers(tuple[Any, ...]):
    """The numbers of an attribute: a tuple that prints as programs write it, ``[1, 2]``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"[{', '.join([repr(number) for number in self])}]"


def as_int(value: object) -> int:
    """A Python int from an int, an `IntImm`, a numpy integer or a scalar constant."""
    if isinstance(value, IntImm):
        return int(value.value)
    plain: Any = value.data.numpy() if isinstance(value, Constant) else value
    try:
        number = int(plain)
    except (TypeError, ValueError, OverflowError):
        reject(value, "an integer")
    if isinstance(plain, (float, np.floating, np.ndarray)) and plain != number:
        reject(value, "an integer")
    return number


def as_float(value: object) -> float:
    """A Python float from a number, an immediate or a scalar constant."""
    if isinstance(value, (IntImm, FloatImm)):
        return float(value.value)
    plain: Any = value.data.numpy() if isinstance(value, Constant) else value
    try:
        return float(plain)
    except (TypeError, ValueError, OverflowError):
        reject(value, "a number")


def as_ints(values: object) -> tuple[int, ...]:
    """A tuple of ints from one int or from a sequence of them."""
    if isinstance(values, Constant):
        return Numbers([as_int(v) for v in values.data.numpy().reshape(-1)])
    if isinstance(values, (str, bytes, Mapping)):
        reject(values, "integers")
    if isinstance(values, Iterable):
        return Numbers([as_int(v) for v in values])
    return Numbers([as_int(values)])


def as_optional_int(value: object) -> int | None:
    """As `as_int`; None stays None."""
    return None if value is None else as_int(value)


def as_tuple(tensors: Any) -> RelayExpr:
    """Several tensors as one expression, whether the caller wrote it or a sequence."""
    if isinstance(tensors, TupleWrapper):
        return tensors.astuple()
    return tensors if isinstance(tensors, RelayExpr) else Tuple(as_list(tensors, "tensors"))


def as_floats(values: object) -> tuple[float, ...]:
    """A tuple of floats from a sequence of numbers."""
    return Numbers([as_float(value) for value in as_list(values, "numbers")])


def as_expr(value: Any, dtype: str | None = None) -> RelayExpr:
    """An expression; a number becomes a constant."""
    return value if isinstance(value, RelayExpr) else const(value, dtype)


def as_list(values: object, wanted: str) -> list[Any]:
    """The elements of a sequence of what is wanted."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        reject(values, f"a sequence of {wanted}")
    return list(values)


def reject(value: object, wanted: str) -> NoReturn:
    """Raise the error of a value that is not what is wanted."""
    raise UnsuitableValue(wanted, value)


def names_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose errors about a value name it and the parameter that holds the value."""
    parameters = signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except UnsuitableValue as error:
            given = parameters.bind(*args, **kwargs).arguments
            holders = [name for name, held in given.items() if _holds(held, error.value)]
            argument = f" for {holders[0]}" if holders else ""
            raise OpAttributeInvalid(
                f"{function.__name__} requires {error.wanted}{argument}, got {error.value!r}"
            ) from None

    return call


def _holds(held: object, value: object) -> bool:
    return held is value or (
        isinstance(held, (list, tuple)) and any([item is value for item in held])
    )


def is_run_time(value: object) -> bool:
    """Whether only the run knows the value: an expression that is no constant."""
    return isinstance(value, RelayExpr) and not isinstance(value, Constant)


def run_time_vector(value: object) -> RelayExpr:
    """Integers as an expression, whether the caller wrote one or a sequence."""
    return value if isinstance(value, RelayExpr) else const(list(as_ints(value)), "int64")


def as_optional_str(value: object) -> str:
    """Text; None is the empty text."""
    return str(value or "")


def as_optional_ints(values: object) -> tuple[int, ...] | None:
    """As `as_ints`; None stays None."""
    return None if values is None else as_ints(values)


def spread(values: object, rank: int) -> tuple[int, ...]:
    """One number for each of `rank` spatial axes."""
    numbers = as_ints(values)
    if len(numbers) == 1:
        return numbers * rank
    if len(numbers) != rank:
        reject(values, f"1 or {rank} numbers")
    return numbers


def optional_spread(values: object, rank: int) -> tuple[int, ...] | None:
    """As `spread`, or None."""
    return None if values is None else spread(values, rank)


def padding_pairs(padding: object, rank: int) -> tuple[int, ...]:
    """Padding as `rank` numbers before and `rank` numbers after, from 1, `rank` or 2 * `rank`."""
    numbers = as_ints(padding)
    if len(numbers) == 1:
        return numbers * (2 * rank)
    if len(numbers) == rank:
        return numbers * 2
    if len(numbers) != 2 * rank:
        reject(padding, f"1, {rank} or {2 * rank} numbers")
    return numbers
