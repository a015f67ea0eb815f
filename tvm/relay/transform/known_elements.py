"""The elements of shapes that are computed, as far as types tell them.

%v = concatenate((%count, take(shape_of(%x), 1), take(shape_of(%x), 2)))
with %x: Tensor[(?, 256, 14), float32]    ->    (None, 256, 14)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Constant, Tuple
from tvm.relay.op.registry import OpPattern, ops
from tvm.relay.transform.operators import calls, is_operator_call
from tvm.tir.expr import IntImm

_MOST = 64  # elements of what may be a shape
# they give elements of their arguments, unchanged
_MOVEMENTS = (
    ops.take,
    ops.strided_slice,
    ops.concatenate,
    ops.expand_dims,
    ops.reshape,
    ops.squeeze,
)
# those that may leave out what is not known
SELECTIONS = (ops.take, ops.strided_slice)


@dataclass(frozen=True)
class _Partial:
    """Integers, and where they are known; the others are ones."""

    values: np.ndarray
    known: np.ndarray


def known_elements(expr: RelayExpr) -> tuple[int | None, ...]:
    """The elements of a vector, None for those that only the run tells; () if it is too long."""
    found = _partial(expr, {})
    if found is None or found.values.ndim != 1:
        return ()
    pairs = zip(found.values.tolist(), found.known.tolist(), strict=True)
    return tuple([int(value) if known else None for value, known in pairs])


def known_value(expr: RelayExpr) -> np.ndarray | None:
    """The value of a small tensor of integers if types tell all of it."""
    found = _partial(expr, {})
    return found.values if found is not None and found.known.all() else None


def _partial(expr: RelayExpr, done: dict[int, _Partial | None]) -> _Partial | None:
    if id(expr) not in done:
        ty = infer_type_of(expr)
        done[id(expr)] = _found(expr, ty, done) if _may_be_shape(ty) else None
    return done[id(expr)]


def _may_be_shape(ty: Type) -> TypeGuard[TensorType]:
    if not isinstance(ty, TensorType) or ty.dtype.is_float or len(ty.shape) > 2:
        return False
    extents = [d.value for d in ty.shape if isinstance(d, IntImm)]
    return len(extents) == len(ty.shape) and int(np.prod(extents)) <= _MOST


def _found(expr: RelayExpr, ty: TensorType, done: dict[int, _Partial | None]) -> _Partial | None:
    shape = ty.concrete_shape
    if isinstance(expr, Constant):
        return _Partial(expr.data.numpy(), np.ones(shape, bool))
    if calls(expr, ops.shape_of):
        dims = [d.value if isinstance(d, IntImm) else None for d in _shape(expr.args[0])]
        known = np.array([d is not None for d in dims], bool)
        return _Partial(np.array([1 if d is None else d for d in dims], ty.dtype.numpy), known)
    if is_operator_call(expr) and expr.operator.fold is not None:
        found = _computed(expr, expr.operator, ty, done)
        if found is not None and found.values.shape == shape:
            return found
    return _Partial(np.ones(shape, ty.dtype.numpy), np.zeros(shape, bool))


def _shape(data: RelayExpr) -> tuple[object, ...]:
    ty = infer_type_of(data)
    return ty.shape if isinstance(ty, TensorType) else ()


def _computed(
    call: Call, op: Op, ty: TensorType, done: dict[int, _Partial | None]
) -> _Partial | None:
    first = call.args[0] if call.args else None
    fields = first.fields if isinstance(first, Tuple) else call.args
    given = [_partial(field, done) for field in fields]
    parts = [part for part in given if part is not None]
    if not parts or len(parts) < len(given):
        return None
    if any([op is movement for movement in _MOVEMENTS]):
        if op is ops.take and not parts[1].known.all():
            return None
        marks = [parts[0].known, *[p.values if op is ops.take else p.known for p in parts[1:]]]
        known = _folded(call, op, [m.astype("int64") for m in marks], ty)
        values = _folded(call, op, [p.values for p in parts], ty)
        return None if values is None or known is None else _Partial(values, known.astype(bool))
    if op is not ops.where and op.fuse not in (OpPattern.ELEMWISE, OpPattern.BROADCAST):
        return None
    values = _folded(call, op, [p.values for p in parts], ty)
    if values is None:
        return None
    known = np.logical_and.reduce(np.broadcast_arrays(*[p.known for p in parts]))
    if op is ops.where:
        condition, yes, no = parts
        known = condition.known & np.where(condition.values, yes.known, no.known)
    return _Partial(values, np.broadcast_to(known, values.shape))


def _folded(call: Call, op: Op, arrays: list[np.ndarray], ty: TensorType) -> np.ndarray | None:
    assert op.fold is not None
    with np.errstate(all="ignore"):
        results = op.fold(call.attrs, arrays, ty)
    return None if results is None else np.asarray(results[0])
