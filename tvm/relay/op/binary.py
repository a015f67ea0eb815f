"""Broadcasting operators of two arguments: a table, one row an operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relay.expr import Call
from tvm.tir.interp_values import trunc_divide as divide_towards_zero

from .layout import layout_broadcast
from .registry import OpPattern, Precision, define_op, ops
from .types import (
    TypeRelation,
    broadcast_shapes,
    expect_same_dtype,
    expect_tensor,
    integers_only,
    shape_of_type,
    tensor,
)

_BinaryGradient = Callable[
    [RelayExpr, RelayExpr, RelayExpr, RelayExpr], tuple[RelayExpr, RelayExpr]
]


def broadcast_type(who: str, dtype: str | None = None) -> TypeRelation:
    """Numpy's broadcasting; the dtype is the operands' unless one is given."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        lhs, rhs = [
            expect_tensor(t, who, n) for t, n in zip(arg_types, ("lhs", "rhs"), strict=True)
        ]
        common = expect_same_dtype((lhs, rhs), who)
        shape = broadcast_shapes(shape_of_type(lhs), shape_of_type(rhs), who)
        return tensor(shape, dtype or common)

    return relation


def binary(
    name: str,
    function: Callable[[te.Tensor, te.Tensor], te.Tensor],
    fold: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    gradient: _BinaryGradient | None = None,
    dtype: str | None = None,
    precision: Precision = Precision.FOLLOW,
    infer_type: TypeRelation | None = None,
) -> Op:
    """One row; `gradient(a, b, y, g)` gives the gradients before they are summed to the shapes."""
    return define_op(
        name,
        inputs=("lhs", "rhs"),
        infer_type=infer_type or broadcast_type(name, dtype),
        fuse=OpPattern.BROADCAST,
        compute=lambda attrs, inputs, out_type: [function(inputs[0], inputs[1])],
        fold=_broadcast_fold(fold) if fold else None,
        gradient=_collapsed(gradient) if gradient else None,
        infer_layout=layout_broadcast,
        precision=precision,
    )


def integer_binary(
    name: str,
    function: Callable[[te.Tensor, te.Tensor], te.Tensor],
    fold: Callable[[np.ndarray, np.ndarray], np.ndarray],
    gradient: _BinaryGradient | None = None,
) -> Op:
    """One row of integers only."""
    relation = integers_only(broadcast_type(name), name)
    return binary(name, function, fold, gradient, infer_type=relation)


def _broadcast_fold(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Callable[[Attrs, Sequence[np.ndarray], Type], list[np.ndarray]]:
    def fold(attrs: Attrs, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            result = np.asarray(function(arrays[0], arrays[1]))
        wanted = np.dtype(bool) if out_type.dtype == "bool" else arrays[0].dtype  # type: ignore[attr-defined]
        return [result.astype(wanted, copy=False)]

    return fold


def _collapsed(function: _BinaryGradient) -> Callable[[Call, RelayExpr], list[RelayExpr]]:
    def gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
        lhs, rhs = call.args
        collapse = Op.get("collapse_sum_like")
        to_lhs, to_rhs = function(lhs, rhs, call, grad)
        if function is _flat:
            return [to_lhs, to_rhs]
        return [collapse(to_lhs, lhs), collapse(to_rhs, rhs)]

    return gradient


def _truncated_divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    quotient: np.ndarray = divide_towards_zero(a, b)
    is_whole = np.issubdtype(a.dtype, np.integer)
    return quotient if is_whole else np.asarray(np.trunc(quotient))


def _flat(a: RelayExpr, b: RelayExpr, y: RelayExpr, g: RelayExpr) -> tuple[RelayExpr, RelayExpr]:
    """Where a function has a derivative, it is zero."""
    return ops.zeros_like(a), ops.zeros_like(b)


def _select(condition: RelayExpr, grad: RelayExpr) -> RelayExpr:
    return Op.get("where")(condition, grad, ops.zeros_like(grad))


binary("add", topi.add, np.add, lambda a, b, y, g: (g, g))
binary("subtract", topi.subtract, np.subtract, lambda a, b, y, g: (g, ops.negative(g)))
binary("multiply", topi.multiply, np.multiply, lambda a, b, y, g: (g * b, g * a))
binary(
    "divide", topi.divide, divide_towards_zero, lambda a, b, y, g: (g / b, ops.negative(g * y / b))
)
binary("floor_divide", topi.floor_divide, np.floor_divide, _flat)
binary("trunc_divide", topi.trunc_divide, _truncated_divide, _flat)
binary(
    "floor_mod",
    topi.floor_mod,
    np.mod,
    lambda a, b, y, g: (g, ops.negative(g * ops.floor_divide(a, b))),
)


def _trunc_mod_gradient(
    a: RelayExpr, b: RelayExpr, y: RelayExpr, g: RelayExpr
) -> tuple[RelayExpr, RelayExpr]:
    return g, ops.negative(g * ops.trunc_divide(a, b))


binary("trunc_mod", topi.trunc_mod, np.fmod, _trunc_mod_gradient)
binary("mod", topi.mod, np.fmod, _trunc_mod_gradient)
binary(
    "power",
    topi.power,
    np.power,
    lambda a, b, y, g: (g * b * y / a, g * y * ops.log(a)),
    precision=Precision.KEEP_FLOAT32,
)
binary(
    "maximum",
    topi.maximum,
    np.maximum,
    lambda a, b, y, g: (_select(ops.greater_equal(a, b), g), _select(ops.less(a, b), g)),
)
binary(
    "minimum",
    topi.minimum,
    np.minimum,
    lambda a, b, y, g: (_select(ops.less_equal(a, b), g), _select(ops.greater(a, b), g)),
)
integer_binary("left_shift", topi.left_shift, np.left_shift, _flat)
integer_binary("right_shift", topi.right_shift, np.right_shift, _flat)
binary("equal", topi.equal, np.equal, _flat, dtype="bool")
binary("not_equal", topi.not_equal, np.not_equal, _flat, dtype="bool")
binary("less", topi.less, np.less, _flat, dtype="bool")
binary("less_equal", topi.less_equal, np.less_equal, _flat, dtype="bool")
binary("greater", topi.greater, np.greater, _flat, dtype="bool")
binary("greater_equal", topi.greater_equal, np.greater_equal, _flat, dtype="bool")
binary("logical_and", topi.logical_and, np.logical_and, _flat)
binary("logical_or", topi.logical_or, np.logical_or, _flat)
binary("logical_xor", topi.logical_xor, np.logical_xor, _flat)
integer_binary("bitwise_and", topi.bitwise_and, np.bitwise_and, _flat)
integer_binary("bitwise_or", topi.bitwise_or, np.bitwise_or, _flat)
integer_binary("bitwise_xor", topi.bitwise_xor, np.bitwise_xor, _flat)


def _public(op: Op, summary: str) -> Callable[[RelayExpr, RelayExpr], RelayExpr]:
    """The public function of one row: `add(lhs, rhs)`."""

    def function(lhs: RelayExpr, rhs: RelayExpr) -> RelayExpr:
        return op(lhs, rhs)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = (
        f"{summary}, with numpy's broadcasting.\n\n"
        "Parameters\n----------\nlhs, rhs : relay.Expr\n    The operands, of one dtype."
    )
    return function


add = _public(ops.add, "Sum")
subtract = _public(ops.subtract, "Difference")
multiply = _public(ops.multiply, "Product")
divide = _public(ops.divide, "Quotient (truncated towards zero for integers)")
floor_divide = _public(ops.floor_divide, "Quotient rounded towards minus infinity")
trunc_divide = _public(ops.trunc_divide, "Quotient rounded towards zero")
floor_mod = _public(ops.floor_mod, "Remainder with the divisor's sign")
trunc_mod = _public(ops.trunc_mod, "Remainder with the dividend's sign")
mod = _public(ops.mod, "Remainder with the dividend's sign")
power = _public(ops.power, "Power")
maximum = _public(ops.maximum, "The larger of two")
minimum = _public(ops.minimum, "The smaller of two")
left_shift = _public(ops.left_shift, "Shift of the bits to the left")
right_shift = _public(ops.right_shift, "Shift of the bits to the right")
equal = _public(ops.equal, "Whether lhs == rhs")
not_equal = _public(ops.not_equal, "Whether lhs != rhs")
less = _public(ops.less, "Whether lhs < rhs")
less_equal = _public(ops.less_equal, "Whether lhs <= rhs")
greater = _public(ops.greater, "Whether lhs > rhs")
greater_equal = _public(ops.greater_equal, "Whether lhs >= rhs")
logical_and = _public(ops.logical_and, "Logical conjunction")
logical_or = _public(ops.logical_or, "Logical disjunction")
logical_xor = _public(ops.logical_xor, "Logical exclusive or")
bitwise_and = _public(ops.bitwise_and, "Bitwise conjunction")
bitwise_or = _public(ops.bitwise_or, "Bitwise disjunction")
bitwise_xor = _public(ops.bitwise_xor, "Bitwise exclusive or")
