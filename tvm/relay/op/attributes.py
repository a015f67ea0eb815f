"""Attribute values in one form: Python ints, floats and tuples, whatever the caller wrote."""

from __future__ import annotations

from collections.abc import Iterable

from tvm.error import OpAttributeInvalid
from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Constant, const
from tvm.tir import FloatImm, IntImm


def as_int(value: object) -> int:
    """A Python int from an int, an `IntImm`, a numpy integer or a scalar constant."""
    if isinstance(value, IntImm):
        return int(value.value)
    if isinstance(value, Constant):
        return int(value.data.numpy())
    return int(value)  # type: ignore[call-overload, no-any-return]


def as_float(value: object) -> float:
    """A Python float from a number, an immediate or a scalar constant."""
    if isinstance(value, (IntImm, FloatImm)):
        return float(value.value)
    if isinstance(value, Constant):
        return float(value.data.numpy())
    return float(value)  # type: ignore[arg-type]


def as_ints(values: object) -> tuple[int, ...]:
    """A tuple of ints from one int or from a sequence of them."""
    if isinstance(values, Constant):
        return tuple([int(v) for v in values.data.numpy().reshape(-1)])
    if isinstance(values, Iterable):
        return tuple([as_int(v) for v in values])
    return (as_int(values),)


def is_run_time(value: object) -> bool:
    """Whether only the run knows the value: an expression that is no constant."""
    return isinstance(value, RelayExpr) and not isinstance(value, Constant)


def run_time_vector(value: object) -> RelayExpr:
    """Integers as an expression, whether the caller wrote one or a sequence."""
    return value if isinstance(value, RelayExpr) else const(list(as_ints(value)), "int64")


def as_optional_ints(values: object) -> tuple[int, ...] | None:
    """As `as_ints`; None stays None."""
    return None if values is None else as_ints(values)


def spread(values: object, rank: int) -> tuple[int, ...]:
    """One number for each of `rank` spatial axes."""
    numbers = as_ints(values)
    if len(numbers) == 1:
        return numbers * rank
    if len(numbers) != rank:
        raise OpAttributeInvalid(f"1 or {rank} numbers are required, got {numbers}")
    return numbers


def padding_pairs(padding: object, rank: int) -> tuple[int, ...]:
    """Padding as `rank` numbers before and `rank` numbers after, from 1, `rank` or 2 * `rank`."""
    numbers = as_ints(padding)
    if len(numbers) == 1:
        return numbers * (2 * rank)
    if len(numbers) == rank:
        return numbers * 2
    if len(numbers) != 2 * rank:
        raise OpAttributeInvalid(f"padding requires 1, {rank} or {2 * rank} numbers, got {numbers}")
    return numbers
