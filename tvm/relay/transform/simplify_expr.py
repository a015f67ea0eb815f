"""Remove operators that cancel each other or do nothing.

reshape(reshape(%x, a), b)              ->    reshape(%x, b)
transpose(transpose(%x, p), q)          ->    transpose(%x, p[q])
cast(%x, its own dtype)                 ->    %x
cast(cast(%x, wider), dtype)            ->    cast(%x, dtype)
multiply(%x, 1f), add(%x, zeros)        ->    %x
add(add(%x, 1f), 2f)                    ->    add(%x, 3f)
divide(%x, sqrt(%y))                    ->    multiply(%x, rsqrt(%y))
reshape to the same shape               ->    %x
reshape(dense(reshape(%x), %w))         ->    dense(%x, %w), leading axes as in %x
conv2d whose window sees borders only   ->    conv2d of a smaller window
zeros_like(%x), broadcast_to_like(..)   ->    zeros(shape), broadcast_to(.., shape)
broadcast_to_like of the same shape     ->    %x
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import infer_type_of, known_type, tensor_type_of
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, const
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import ops
from tvm.relay.op.types import same_dim, shape_of_type
from tvm.relay.transform.blind_taps import without_blind_taps
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import CONVOLUTIONS, RESHAPES, calls
from tvm.relay.traverse import rewrite_function
from tvm.relay.ty import is_dynamic
from tvm.support import DType

Rule: TypeAlias = "Callable[[Call, TensorType], RelayExpr | None]"


@relay_pass("SimplifyExpr", opt_level=0)
def simplify_expr(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Apply the rewrites bottom up."""
    if is_primitive(func):
        return func
    return rewrite_function(func, _simplify)


def _simplify(old: RelayExpr, new: RelayExpr) -> RelayExpr:
    if isinstance(new, TupleGetItem) and isinstance(new.tuple_value, Tuple):
        return new.tuple_value.fields[new.index]
    if not isinstance(new, Call) or not isinstance(new.op, Op):
        return new
    rule = _RULES.get(new.op)
    ty = known_type(old)
    if rule is None or not isinstance(ty, TensorType):
        return new
    simpler = rule(new, ty)
    return new if simpler is None else simpler


def _same_type(call: Call, ty: Type) -> RelayExpr | None:
    """An operator that changes nothing but the shape, to the shape there was."""
    argument = call.args[0]
    if is_dynamic(ty) or infer_type_of(argument) != ty:
        return None
    return argument


def _reshape(call: Call, ty: TensorType) -> RelayExpr | None:
    if (same := _same_type(call, ty)) is not None:
        return same
    inner = call.args[0]
    if is_dynamic(ty):
        return None
    if call.op is ops.reshape_like:
        return ops.reshape(inner, newshape=ty.concrete_shape)
    if calls(inner, ops.nn.dense):
        return _dense_of_rows(inner, ty)
    if not calls(inner, *RESHAPES):
        return None
    return ops.reshape(inner.args[0], newshape=ty.concrete_shape)


def _dense_of_rows(dense: Call, ty: TensorType) -> RelayExpr | None:
    """A dense layer keeps the leading axes that were merged for it and parted after it."""
    data, weight = dense.args
    if not calls(data, *RESHAPES) or len(ty.shape) < 2:
        return None
    source, units = data.args[0], tensor_type_of(weight).shape[0]
    *outer, rows, _ = ty.concrete_shape
    if rows < 16 and np.prod(outer) > 1:
        return None  # few rows at a time would fill no tile
    wanted = TensorType((*tensor_type_of(source).shape[:-1], units), ty.dtype)
    return ops.nn.dense(source, weight, **dict(dense.attrs.items())) if wanted == ty else None


def _transpose(call: Call, ty: TensorType) -> RelayExpr | None:
    inner = call.args[0]
    rank = len(ty.shape)
    outer_axes = _axes(call, rank)
    if outer_axes == list(range(rank)):
        return inner
    inner_axes = _axes(inner, rank)
    if outer_axes is None or inner_axes is None or not isinstance(inner, Call):
        return None
    axes = [inner_axes[axis] for axis in outer_axes]
    if axes == list(range(rank)):
        return inner.args[0]
    return ops.transpose(inner.args[0], axes=tuple(axes))


def _axes(expr: RelayExpr, rank: int) -> list[int] | None:
    """The order of axes that a transpose, or a layout transform without blocks, leaves."""
    if calls(expr, ops.transpose):
        axes: Sequence[int] | None = expr.attrs["axes"]
        return [int(a) % rank for a in axes] if axes else list(reversed(range(rank)))
    if not calls(expr, ops.layout_transform):
        return None
    source, target = str(expr.attrs["src_layout"]), str(expr.attrs["dst_layout"])
    return [source.index(c) for c in target] if sorted(source) == sorted(target) else None


def _cast(call: Call, ty: TensorType) -> RelayExpr | None:
    argument = call.args[0]
    source = tensor_type_of(argument).dtype
    if source == ty.dtype:
        return argument
    if not calls(argument, ops.cast):
        return None
    first = argument.args[0]
    if not _holds_all(source, tensor_type_of(first).dtype):
        return None
    return first if tensor_type_of(first).dtype == ty.dtype else ops.cast(first, dtype=ty.dtype)


# bits of a float's significand, the leading one counted
_SIGNIFICAND = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def _holds_all(wide: DType, narrow: DType) -> bool:
    """Whether every value of one dtype is a value of the other."""
    if wide.lanes != narrow.lanes or wide == "bool":
        return wide == narrow
    if narrow == "bool":
        return True
    is_signed = narrow.startswith("int")
    if narrow in _SIGNIFICAND:
        # a bfloat16 has the exponents of float32
        same_range = wide != "float16" and (wide, narrow) != ("bfloat16", "float16")
        return wide in _SIGNIFICAND and _SIGNIFICAND[wide] >= _SIGNIFICAND[narrow] and same_range
    if not is_signed and not narrow.startswith("uint"):
        return False
    digits = narrow.bits - is_signed
    if wide in _SIGNIFICAND:
        return _SIGNIFICAND[wide] >= digits
    if wide.startswith("uint"):
        return not is_signed and wide.bits >= digits
    return wide.startswith("int") and wide.bits - 1 >= digits


def _neutral(value: float, is_commutative: bool) -> Callable[[Call, TensorType], RelayExpr | None]:
    """`x op value` is x."""

    def rule(call: Call, ty: TensorType) -> RelayExpr | None:
        left, right = call.args
        if _is_splat(right, value) and infer_type_of(left) == ty:
            return left
        if is_commutative and _is_splat(left, value) and infer_type_of(right) == ty:
            return right
        return None

    return rule


def _with_constant(
    neutral: float, combine: Callable[..., np.ndarray]
) -> Callable[[Call, TensorType], RelayExpr | None]:
    """`(x op a) op b` is `x op (a op b)`, and `x op neutral` is x."""
    unchanged = _neutral(neutral, True)

    def rule(call: Call, ty: TensorType) -> RelayExpr | None:
        if (same := unchanged(call, ty)) is not None:
            return same
        inner, outer = _parted(call)
        if outer is None or not calls(inner, call.operator):
            return None
        value, before = _parted(inner)
        if before is None or infer_type_of(value) != ty:
            return None
        with np.errstate(over="ignore"):
            both = combine(before.data.numpy(), outer.data.numpy())
        # two numbers that fit may have a sum or a product that does not
        return call.operator(value, const(nd.array(both))) if np.isfinite(both).all() else None

    return rule


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product; NaN where it is too small for its dtype, though the factors are not."""
    both: np.ndarray = left * right
    if not np.issubdtype(both.dtype, np.floating):
        return both
    is_lost = (np.abs(both) < np.finfo(both.dtype).tiny) & (left != 0) & (right != 0)
    return np.where(is_lost, np.array(np.nan, both.dtype), both)


def _parted(call: Call) -> tuple[RelayExpr, Constant | None]:
    """The operand that is computed, and the constant one, if it is small."""
    for value, other in (call.args, reversed(call.args)):
        if isinstance(other, Constant) and np.prod(other.data.shape, dtype="int64") <= _SMALL:
            return value, other
    return call, None


def _quotient(call: Call, ty: TensorType) -> RelayExpr | None:
    value, divisor = call.args
    if _is_splat(divisor, 1) and infer_type_of(value) == ty:
        return value
    if not calls(divisor, ops.sqrt):
        return None
    inverse = ops.rsqrt(divisor.args[0])
    is_one = _is_splat(value, 1) and infer_type_of(divisor) == ty
    return inverse if is_one else ops.multiply(value, inverse)


def _concrete(make: Callable[[Call, TensorType], RelayExpr]) -> Rule:
    """An operator that takes a shape from a tensor, as one that knows it."""
    return lambda call, ty: None if is_dynamic(ty) else make(call, ty)


def _broadcast_like(call: Call, ty: TensorType) -> RelayExpr | None:
    if not is_dynamic(ty):
        return ops.broadcast_to(call.args[0], shape=ty.concrete_shape, dtype=ty.dtype)
    have, want = shape_of_type(infer_type_of(call.args[0])), shape_of_type(ty)
    is_same = len(have) == len(want) and all(map(same_dim, have, want))
    return call.args[0] if is_same else None


# large tensors are parameters: looking at all their elements would cost more than it saves
_SMALL = 4096
_FILLED = {ops.zeros: 0, ops.zeros_like: 0, ops.ones: 1, ops.ones_like: 1}


def _is_splat(expr: RelayExpr, value: float) -> bool:
    if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op in _FILLED:
        return _FILLED[expr.op] == value
    if calls(expr, ops.full):
        return _is_splat(expr.args[0], value)
    if not isinstance(expr, Constant) or math.prod(expr.data.shape) > _SMALL:
        return False
    array = expr.data.numpy()
    return array.size > 0 and bool((array == value).all())


_RULES: dict[Op, Rule] = {
    **dict.fromkeys(RESHAPES, _reshape),
    ops.transpose: _transpose,
    ops.layout_transform: _transpose,
    ops.cast: _cast,
    ops.multiply: _with_constant(1, _product),
    ops.divide: _quotient,
    ops.add: _with_constant(0, np.add),
    ops.subtract: _neutral(0, False),
    ops.zeros_like: _concrete(lambda _, ty: ops.zeros(shape=ty.concrete_shape, dtype=ty.dtype)),
    ops.ones_like: _concrete(lambda _, ty: ops.ones(shape=ty.concrete_shape, dtype=ty.dtype)),
    ops.full_like: _concrete(
        lambda call, ty: ops.full(call.args[1], shape=ty.concrete_shape, dtype=ty.dtype)
    ),
    ops.broadcast_to_like: _broadcast_like,
    ops.collapse_sum_like: _concrete(
        lambda call, ty: ops.collapse_sum_to(call.args[0], shape=ty.concrete_shape)
    ),
    ops.cast_like: lambda call, ty: ops.cast(call.args[0], dtype=ty.dtype),
    **dict.fromkeys(CONVOLUTIONS, without_blind_taps),
}

SimplifyExpr = simplify_expr.factory
