"""Remove operators that cancel each other or do nothing.

reshape(reshape(%x, a), b)              ->    reshape(%x, b)
transpose(transpose(%x, p), q)          ->    transpose(%x, p[q])
cast(%x, its own dtype)                 ->    %x
multiply(%x, 1f), add(%x, 0f)           ->    %x
reshape to the same shape               ->    %x
reshape(dense(reshape(%x), %w))         ->    dense(%x, %w), leading axes as in %x
conv2d whose window sees borders only   ->    conv2d of a smaller window
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import infer_type_of, known_type, tensor_type_of
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform import operators as ops
from tvm.relay.transform.blind_taps import without_blind_taps
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import rewrite_function
from tvm.relay.ty import is_dynamic


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
    if calls(inner, ops.DENSE):
        return _dense_of_rows(inner, ty)
    if not calls(inner, *ops.RESHAPES):
        return None
    return ops.RESHAPE(inner.args[0], newshape=ty.concrete_shape)


def _dense_of_rows(dense: Call, ty: TensorType) -> RelayExpr | None:
    """A dense layer keeps the leading axes that were merged for it and parted after it."""
    data, weight = dense.args
    if not calls(data, *ops.RESHAPES) or len(ty.shape) < 2:
        return None
    source, units = data.args[0], tensor_type_of(weight).shape[0]
    *outer, rows, _ = ty.concrete_shape
    if rows < 16 and np.prod(outer) > 1:
        return None  # few rows at a time would fill no tile
    wanted = TensorType((*tensor_type_of(source).shape[:-1], units), ty.dtype)
    return ops.DENSE(source, weight, **dict(dense.attrs.items())) if wanted == ty else None


def _transpose(call: Call, ty: TensorType) -> RelayExpr | None:
    inner = call.args[0]
    rank = len(ty.shape)
    outer_axes = _axes(call, rank)
    if outer_axes == list(range(rank)):
        return inner
    if not calls(inner, ops.TRANSPOSE):
        return None
    inner_axes = _axes(inner, rank)
    axes = [inner_axes[axis] for axis in outer_axes]
    if axes == list(range(rank)):
        return inner.args[0]
    return ops.TRANSPOSE(inner.args[0], axes=tuple(axes))


def _axes(call: Call, rank: int) -> list[int]:
    axes: Sequence[int] | None = call.attrs["axes"]
    return [int(a) % rank for a in axes] if axes else list(reversed(range(rank)))


def _cast(call: Call, ty: TensorType) -> RelayExpr | None:
    argument = call.args[0]
    return argument if tensor_type_of(argument).dtype == ty.dtype else None


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


def _is_splat(expr: RelayExpr, value: float) -> bool:
    # large tensors are parameters: looking at all their elements would cost more than it saves
    if not isinstance(expr, Constant) or np.prod(expr.data.shape, dtype="int64") > 4096:
        return False
    array = expr.data.numpy()
    # adding 0.0 turns -0.0 into 0.0, which no program may rely on
    return array.size > 0 and bool(np.all(array == value))


_RULES: dict[Op, Callable[[Call, TensorType], RelayExpr | None]] = {
    **dict.fromkeys(ops.RESHAPES, _reshape),
    ops.TRANSPOSE: _transpose,
    ops.CAST: _cast,
    ops.MULTIPLY: _neutral(1, True),
    ops.DIVIDE: _neutral(1, False),
    ops.ADD: _neutral(0, True),
    ops.SUBTRACT: _neutral(0, False),
    **dict.fromkeys(ops.CONVOLUTIONS, without_blind_taps),
}

SimplifyExpr = simplify_expr.factory
