"""Blocks of memory, tensors in them, and the end of values' lives; for the virtual machine.

let %storage = memory.alloc_storage(4096, [32, 32], 64);
let %out = memory.alloc_tensor(%storage, 0, [32, 32]);
...
let %_ = memory.kill(%out);
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.error import TypeCheckError
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.node import leaf
from tvm.ir.op import register_op
from tvm.ir.type import GlobalTypeVar, TupleType, Type, TypeCall
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, const
from tvm.relay.op.registry import OpPattern
from tvm.relay.op.types import is_known, shape_of_type, tensor, unknown
from tvm.relay.ty import flat_types
from tvm.runtime import Device
from tvm.target.virtual_device import VirtualDevice

_STORAGE = TypeCall(GlobalTypeVar("Storage"), ())
EMPTY = TupleType(())


def _extents(shape: Any) -> tuple[int, ...] | None:
    """A shape that a program gives as a constant or as numbers."""
    if shape is None:
        return None
    return tuple([int(n) for n in (shape.data.numpy() if isinstance(shape, Constant) else shape)])


class AllocStorageAttrs(Attrs, key="relay.attrs.AllocStorageAttrs"):
    """What the block will mostly hold, and where it is."""

    dtype: str = "float32"
    virtual_device: VirtualDevice | None = None  # of the main target by default


class AllocTensorAttrs(Attrs, key="relay.attrs.AllocTensorAttrs"):
    """The tensor's dtype, and its shape where that is known."""

    dtype: str = "float32"
    const_shape: tuple[int, ...] | None = leaf(default=None, convert=_extents)
    assert_shape: tuple[int, ...] | None = None


def _alloc_tensor_type(attrs: AllocTensorAttrs, arg_types: Sequence[Type]) -> Type:
    known = attrs.const_shape if attrs.const_shape is not None else attrs.assert_shape
    if known is not None:
        return tensor(known, attrs.dtype)
    (rank,) = shape_of_type(arg_types[2])
    assert is_known(rank)
    return tensor([unknown() for _ in range(rank)], attrs.dtype)


# no `define_op`: the virtual machine runs them, no kernel does
ALLOC_STORAGE = register_op("memory.alloc_storage").set_facets(
    attrs_type=AllocStorageAttrs,
    num_inputs=3,
    arguments=[("size", "Expr", ""), ("shape", "Expr", ""), ("alignment", "Expr", "")],
    infer_type=lambda attrs, arg_types: _STORAGE,
    fuse=OpPattern.OPAQUE,
)
ALLOC_TENSOR = register_op("memory.alloc_tensor").set_facets(
    attrs_type=AllocTensorAttrs,
    num_inputs=3,
    arguments=[("storage", "Expr", ""), ("offset", "Expr", ""), ("shape", "Expr", "")],
    infer_type=_alloc_tensor_type,
    fuse=OpPattern.OPAQUE,
)
KILL = register_op("memory.kill").set_facets(
    num_inputs=1,
    arguments=[("value", "Expr", "")],
    infer_type=lambda attrs, arg_types: EMPTY,
    fuse=OpPattern.OPAQUE,
)


def alloc_storage(
    size: RelayExpr,
    shape: RelayExpr,
    alignment: RelayExpr,
    virtual_device: Device | VirtualDevice | None = None,
    dtype_hint: str = "float32",
) -> Call:
    """A block of memory.

    Parameters
    ----------
    size : the bytes, an int64 scalar.
    shape : of the tensor that it is made for.
    alignment : of its start, an int64 scalar.
    virtual_device : where it is; with the main target by default.
    dtype_hint : what it will mostly hold.
    """
    position = virtual_device
    if isinstance(position, Device):
        position = VirtualDevice(position)
    return Call(ALLOC_STORAGE, (size, shape, alignment), AllocStorageAttrs(dtype_hint, position))


def alloc_tensor(
    storage: RelayExpr,
    offset: RelayExpr,
    shape: RelayExpr | Sequence[int],
    dtype: str = "float32",
    assert_shape: Sequence[int] | None = None,
) -> Call:
    """A tensor in a block of memory.

    Parameters
    ----------
    storage, offset : the block, and the byte in it at which the tensor starts.
    shape : extents, or an expression of them.
    dtype : the tensor's.
    assert_shape : the static shape, if `shape` is an expression.
    """
    known: tuple[int, ...] | None = None
    if isinstance(shape, Constant) or not isinstance(shape, RelayExpr):
        known = _extents(shape)
    if not isinstance(shape, RelayExpr):
        shape = const(nd.array(np.array(known, "int64")))
    asserted = _extents(assert_shape)
    return Call(ALLOC_TENSOR, (storage, offset, shape), AllocTensorAttrs(dtype, known, asserted))


def kill(value: RelayExpr) -> Call:
    """Say that nobody reads a value any more."""
    return Call(KILL, (value,))


flatten_tuple_type = flat_types


def from_tuple_type(ty: Type, expr: RelayExpr) -> list[RelayExpr]:
    """The tensors in a value of a type, in order."""
    if not isinstance(ty, TupleType):
        return [expr]
    return [
        part
        for i, field in enumerate(ty.fields)
        for part in from_tuple_type(field, TupleGetItem(expr, i))
    ]


def to_tuple_type(ty: Type, exprs: Sequence[RelayExpr]) -> RelayExpr:
    """The value of a type that consists of the tensors."""
    rest = list(exprs)
    value = _take(ty, rest)
    if rest:
        raise TypeCheckError(
            f"to_tuple_type requires as many tensors as {ty} has, got {len(exprs)}"
        )
    return value


def _take(ty: Type, rest: list[RelayExpr]) -> RelayExpr:
    if isinstance(ty, TupleType):
        return Tuple([_take(field, rest) for field in ty.fields])
    return rest.pop(0)
