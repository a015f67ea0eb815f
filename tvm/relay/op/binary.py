"""Broadcasting operators of two arguments: a table, one row an operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.expr import Call
from tvm.tir.interp_values import trunc_divide as divide_towards_zero

from .layout import layout_broadcast
from .operator import Expr, OperatorFunction, operator
from .registry import OpPattern, Precision, ops
from .types import (
    TypeRelation,
    broadcast_shapes,
    expect_same_dtype,
    expect_tensor,
    integers_only,
    shape_of_type,
    tensor,
)
from .unary import number_like

_BinaryGradient = Callable[
    [RelayExpr, RelayExpr, RelayExpr, RelayExpr], tuple[RelayExpr, RelayExpr]
]


def broadcast_type(who: str, dtype: str | None = None) -> TypeRelation:
    """Numpy's broadcasting; the dtype is the operands' unless one is given."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor of the shape that both operands broadcast to, and of their dtype; bool for
        comparisons and logical operators."""
        lhs, rhs = [
            expect_tensor(t, who, n) for t, n in zip(arg_types, ("lhs", "rhs"), strict=True)
        ]
        common = expect_same_dtype((lhs, rhs), who)
        shape = broadcast_shapes(shape_of_type(lhs), shape_of_type(rhs), who)
        return tensor(shape, dtype or common)

    return relation


BinaryFunction = OperatorFunction[[RelayExpr, RelayExpr], RelayExpr]


def binary(
    name: str,
    summary: str,
    function: Callable[[te.Tensor, te.Tensor], te.Tensor],
    fold: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    gradient: _BinaryGradient | None = None,
    dtype: str | None = None,
    **facets: Any,
) -> BinaryFunction:
    """One row; `gradient(a, b, y, g)` gives the gradients before they are summed to the shapes."""

    def row(lhs: Expr, rhs: Expr) -> RelayExpr: ...

    row.__name__ = row.__qualname__ = name
    row.__doc__ = (
        f"{summary}, with numpy's broadcasting.\n\n"
        "Parameters\n----------\nlhs, rhs : relay.Expr\n    The operands, of one dtype."
    )
    return operator(
        name,
        infer_type=broadcast_type(name, dtype),
        fuse=OpPattern.BROADCAST,
        compute=lambda attrs, inputs, out_type: [function(inputs[0], inputs[1])],
        fold=_broadcast_fold(fold) if fold else None,
        gradient=_collapsed(gradient) if gradient else None,
        derivative=gradient,
        infer_layout=layout_broadcast,
        **{"support_level": 4, **facets},
    )(row)


def integer_binary(
    name: str,
    summary: str,
    function: Callable[[te.Tensor, te.Tensor], te.Tensor],
    fold: Callable[[np.ndarray, np.ndarray], np.ndarray],
    gradient: _BinaryGradient | None = None,
) -> BinaryFunction:
    """One row of integers only."""
    return binary(name, summary, integers_only(function, name), fold, gradient)


def _broadcast_fold(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Callable[[Attrs, Sequence[np.ndarray], Any], list[np.ndarray] | None]:
    def fold(attrs: Attrs, arrays: Sequence[np.ndarray], out_type: Any) -> list[np.ndarray] | None:
        try:
            with np.errstate(all="ignore"):
                result = np.asarray(function(arrays[0], arrays[1]))
        except TypeError:  # no such function of floating-point numbers: compiling says so
            return None
        wanted = np.dtype(bool) if out_type.dtype == "bool" else arrays[0].dtype
        return [result.astype(wanted, copy=False)]

    return fold


def _collapsed(function: _BinaryGradient) -> Callable[[Call, RelayExpr], list[RelayExpr]]:
    def gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
        lhs, rhs = call.args
        to_lhs, to_rhs = function(lhs, rhs, call, grad)
        if function is _flat:
            return [to_lhs, to_rhs]
        return [ops.collapse_sum_like(to_lhs, lhs), ops.collapse_sum_like(to_rhs, rhs)]

    return gradient


def _truncated_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    quotient: np.ndarray = divide_towards_zero(a, b)
    is_whole = np.issubdtype(a.dtype, np.integer)
    return quotient if is_whole else np.asarray(np.trunc(quotient))


def _flat(a: RelayExpr, b: RelayExpr, y: RelayExpr, g: RelayExpr) -> tuple[RelayExpr, RelayExpr]:
    """Where a function has a derivative, it is zero."""
    return ops.zeros_like(a), ops.zeros_like(b)


def _select(condition: RelayExpr, grad: RelayExpr) -> RelayExpr:
    return ops.where(condition, grad, ops.zeros_like(grad))


# fmt: off
add = binary("add", "Sum", topi.add, np.add, lambda a, b, y, g: (g, g), support_level=1)
subtract = binary(
    "subtract", "Difference", topi.subtract, np.subtract, lambda a, b, y, g: (g, ops.negative(g)),
    support_level=1,
)
multiply = binary(
    "multiply", "Product", topi.multiply, np.multiply, lambda a, b, y, g: (g * b, g * a),
    support_level=1,
)
divide = binary(
    "divide", "Quotient (truncated towards zero for integers)", topi.divide, divide_towards_zero,
    lambda a, b, y, g: (g / b, ops.negative(g * y / b)),
    support_level=1,
)
floor_divide = binary(
    "floor_divide", "Quotient rounded towards minus infinity", topi.floor_divide, np.floor_divide,
    _flat,
    support_level=1,
)
trunc_divide = binary(
    "trunc_divide", "Quotient rounded towards zero", topi.trunc_divide, _truncated_divide, _flat,
    support_level=1,
)
floor_mod = binary(
    "floor_mod", "Remainder with the divisor's sign", topi.floor_mod, np.mod,
    lambda a, b, y, g: (g, ops.negative(g * ops.floor_divide(a, b))),
    support_level=1,
)
# fmt: on


def _trunc_mod_gradient(
    a: RelayExpr, b: RelayExpr, y: RelayExpr, g: RelayExpr
) -> tuple[RelayExpr, RelayExpr]:
    return g, ops.negative(g * ops.trunc_divide(a, b))


# fmt: off
trunc_mod = binary(
    "trunc_mod", "Remainder with the dividend's sign", topi.trunc_mod, np.fmod, _trunc_mod_gradient,
    support_level=1,
)
mod = binary(
    "mod", "Remainder with the dividend's sign", topi.mod, np.fmod, _trunc_mod_gradient,
    support_level=1,
)
power = binary(
    "power", "Power", topi.power, np.power,
    lambda a, b, y, g: (g * b * ops.power(a, b - number_like(1, b)), g * y * ops.log(a)),
    precision=Precision.KEEP_FLOAT32,
)
maximum = binary(
    "maximum", "The larger of two", topi.maximum, np.maximum,
    lambda a, b, y, g: (_select(ops.greater_equal(a, b), g), _select(ops.less(a, b), g)),
)
minimum = binary(
    "minimum", "The smaller of two", topi.minimum, np.minimum,
    lambda a, b, y, g: (_select(ops.less_equal(a, b), g), _select(ops.greater(a, b), g)),
)
left_shift = integer_binary(
    "left_shift", "Shift of the bits to the left", topi.left_shift, np.left_shift, _flat,
)
right_shift = integer_binary(
    "right_shift", "Shift of the bits to the right", topi.right_shift, np.right_shift, _flat,
)
equal = binary("equal", "Whether lhs == rhs", topi.equal, np.equal, _flat, dtype="bool")
not_equal = binary(
    "not_equal", "Whether lhs != rhs", topi.not_equal, np.not_equal, _flat, dtype="bool",
)
less = binary("less", "Whether lhs < rhs", topi.less, np.less, _flat, dtype="bool")
less_equal = binary(
    "less_equal", "Whether lhs <= rhs", topi.less_equal, np.less_equal, _flat, dtype="bool",
)
greater = binary("greater", "Whether lhs > rhs", topi.greater, np.greater, _flat, dtype="bool")
greater_equal = binary(
    "greater_equal", "Whether lhs >= rhs", topi.greater_equal, np.greater_equal, _flat,
    dtype="bool",
)
logical_and = binary("logical_and", "Logical conjunction", topi.logical_and, np.logical_and, _flat)
logical_or = binary("logical_or", "Logical disjunction", topi.logical_or, np.logical_or, _flat)
logical_xor = binary("logical_xor", "Logical exclusive or", topi.logical_xor, np.logical_xor, _flat)
bitwise_and = integer_binary(
    "bitwise_and", "Bitwise conjunction", topi.bitwise_and, np.bitwise_and, _flat,
)
bitwise_or = integer_binary(
    "bitwise_or", "Bitwise disjunction", topi.bitwise_or, np.bitwise_or, _flat,
)
bitwise_xor = integer_binary(
    "bitwise_xor", "Bitwise exclusive or", topi.bitwise_xor, np.bitwise_xor, _flat,
)
# fmt: on
