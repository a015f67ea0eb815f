"""The static types of relax: what struct info says without shapes and values."""

from __future__ import annotations

from tvm.ir.node import leaf
from tvm.ir.type import FuncType, TupleType, Type
from tvm.support.dtype import DType, dtype


class ShapeType(Type, key="relax.ShapeType"):
    """A shape of so many dimensions, -1 if that is not known."""

    ndim: int = -1


class ObjectType(Type, key="relax.ObjectType"):
    """Any object of the runtime."""


class DynTensorType(Type, key="relax.DynTensorType"):
    """A tensor of so many dimensions, -1 if that is not known, and a data type."""

    ndim: int = -1
    dtype: DType = leaf(default=dtype("float32"), convert=dtype)


class PackedFuncType(Type, key="relax.PackedFuncType"):
    """A packed function."""


__all__ = ["DynTensorType", "FuncType", "ObjectType", "PackedFuncType", "ShapeType", "TupleType"]
