"""Operators of two operands with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast, overload

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.te import tensor_ops

from . import tag
from .math import elementwise
from .utils import dims, require_equal


def broadcast_to(data: te.Tensor, shape: Sequence[Any]) -> te.Tensor:
    """Repeat axes of extent 1 to reach a shape.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    shape : sequence of int or PrimExpr
        The wanted shape.

    Returns
    -------
    te.Tensor
        Of shape `shape` and the dtype of `data`.
    """
    target = [d if isinstance(d, PrimExpr) else tir.const(d, "int32") for d in shape]
    for have, want in zip(reversed(dims(data.shape)), reversed(dims(target)), strict=False):
        if not isinstance(have, int) or have != 1:
            require_equal("broadcast_to", "axes of that extent or of 1", have, want)
    return te.compute(
        target,
        lambda *i: data(*tensor_ops.broadcast_indices(i, data.shape, target)),
        name="T_broadcast_to",
        tag=tag.BROADCAST,
    )


class Broadcasting(Protocol):
    """An operator of two tensors, of a tensor and a scalar, or of two scalars."""

    @overload
    def __call__(self, lhs: te.Tensor, rhs: Any) -> te.Tensor: ...
    @overload
    def __call__(self, lhs: Any, rhs: te.Tensor) -> te.Tensor: ...
    @overload
    def __call__(self, lhs: Any, rhs: Any) -> Any: ...


def _binary(name: str, function: Callable[[Any, Any], PrimExpr]) -> Broadcasting:
    def build(lhs: te.Tensor | PrimExpr, rhs: te.Tensor | PrimExpr) -> Any:
        if not isinstance(lhs, te.Tensor) and not isinstance(rhs, te.Tensor):
            return function(lhs, rhs)
        if (
            isinstance(lhs, te.Tensor)
            and isinstance(rhs, te.Tensor)
            and dims(lhs.shape) == dims(rhs.shape)
        ):
            return te.compute(
                lhs.shape, lambda *i: function(lhs(*i), rhs(*i)), name=f"T_{name}", tag=tag.ELEMWISE
            )
        return tensor_ops.apply(function, f"T_{name}", lhs, rhs)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"""`{name}` of two tensors, or of a tensor and a scalar, with broadcasting.

    Parameters
    ----------
    lhs, rhs : te.Tensor or PrimExpr
        The operands.

    Returns
    -------
    te.Tensor or PrimExpr
        Of the shape that both broadcast to; an expression if neither is a tensor.
    """
    return cast(Broadcasting, build)


def added(a: Any, b: Any) -> PrimExpr:
    """The sum; of truth values, as numpy has it, whether one of them is true."""
    total = tir.add(a, b)
    return tir.any(a, b) if total.dtype.is_bool else total


def _divide(a: Any, b: Any) -> PrimExpr:
    return tir.div(a, b)


def _mod(a: Any, b: Any) -> PrimExpr:
    return tir.fmod(a, b) if a.dtype.is_float else tir.truncmod(a, b)


def _floor_divide(a: Any, b: Any) -> PrimExpr:
    return tir.floor(tir.div(a, b)) if a.dtype.is_float else tir.floordiv(a, b)


def _floor_mod(a: Any, b: Any) -> PrimExpr:
    if not a.dtype.is_float:
        return tir.floormod(a, b)
    rest, zero = tir.fmod(a, b), tir.const(0, a.dtype)
    has_other_sign = tir.all(rest != zero, (rest < zero) != (b < zero))
    return tir.Select(has_other_sign, rest + b, rest)


def _trunc_divide(a: Any, b: Any) -> PrimExpr:
    return tir.trunc(tir.div(a, b)) if a.dtype.is_float else tir.truncdiv(a, b)


def _logical(a: Any) -> PrimExpr:
    return a if a.dtype.is_bool else tir.NE(a, tir.const(0, a.dtype))


add = _binary("add", added)
subtract = _binary("subtract", tir.subtract)
multiply = _binary("multiply", tir.multiply)
divide = _binary("divide", _divide)
floor_divide = _binary("floor_divide", _floor_divide)
trunc_divide = _binary("trunc_divide", _trunc_divide)
mod = _binary("mod", _mod)
trunc_mod = _binary("trunc_mod", _mod)
floor_mod = _binary("floor_mod", _floor_mod)
maximum = _binary("maximum", tir.max)
minimum = _binary("minimum", tir.min)
power = _binary("power", tir.power)
left_shift = _binary("left_shift", tir.shift_left)
right_shift = _binary("right_shift", tir.shift_right)
greater = _binary("greater", lambda a, b: a > b)
less = _binary("less", lambda a, b: a < b)
equal = _binary("equal", lambda a, b: tir.EQ(a, b))
not_equal = _binary("not_equal", lambda a, b: tir.NE(a, b))
greater_equal = _binary("greater_equal", lambda a, b: a >= b)
less_equal = _binary("less_equal", lambda a, b: a <= b)
logical_and = _binary("logical_and", lambda a, b: tir.all(_logical(a), _logical(b)))
logical_or = _binary("logical_or", lambda a, b: tir.any(_logical(a), _logical(b)))
logical_xor = _binary("logical_xor", lambda a, b: tir.NE(_logical(a), _logical(b)))
bitwise_and = _binary("bitwise_and", tir.bitwise_and)
bitwise_or = _binary("bitwise_or", tir.bitwise_or)
bitwise_xor = _binary("bitwise_xor", tir.bitwise_xor)
# the first names, of old programs
broadcast_add, broadcast_sub, broadcast_mul, broadcast_div = add, subtract, multiply, divide
broadcast_maximum, broadcast_minimum = maximum, minimum


def logical_not(data: te.Tensor) -> te.Tensor:
    """Logical negation of every element.

    Parameters
    ----------
    data : te.Tensor
        The tensor; numbers are true where they are not 0.

    Returns
    -------
    te.Tensor
        Of the shape of `data`, and of dtype bool.
    """
    return elementwise(data, lambda v: tir.Not(_logical(v)), "T_logical_not")


def bitwise_not(data: te.Tensor) -> te.Tensor:
    """Bitwise negation of every element.

    Parameters
    ----------
    data : te.Tensor
        Integers or truth values.

    Returns
    -------
    te.Tensor
        Of the shape and dtype of `data`.
    """
    return elementwise(data, tir.bitwise_not, "T_bitwise_not")


__all__ = [
    "add",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_add",
    "broadcast_div",
    "broadcast_maximum",
    "broadcast_minimum",
    "broadcast_mul",
    "broadcast_sub",
    "broadcast_to",
    "divide",
    "equal",
    "floor_divide",
    "floor_mod",
    "greater",
    "greater_equal",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "not_equal",
    "power",
    "right_shift",
    "subtract",
    "trunc_divide",
    "trunc_mod",
]
