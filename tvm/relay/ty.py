"""The types of relay expressions, under the names programs use."""

from __future__ import annotations

from typing import cast

from tvm.error import TypeCheckError
from tvm.ir.adt import TypeData
from tvm.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeConstraint,
    TypeKind,
    TypeRelation,
    TypeVar,
)
from tvm.tir.expr import Any, IntImm

RefType = RelayRefType


def is_dynamic(tensor_type: Type) -> bool:
    """Whether a dimension somewhere in the type is not a constant."""
    if isinstance(tensor_type, TupleType):
        return any(is_dynamic(field) for field in tensor_type.fields)
    if isinstance(tensor_type, TensorType):
        return any(not isinstance(dim, IntImm) for dim in tensor_type.shape)
    return False


def static_shape(ty: object) -> tuple[int, ...] | None:
    """The shape of a tensor type without dynamic dimensions."""
    return ty.concrete_shape if type(ty) is TensorType and not ty.is_dynamic else None


def dtypes_of(ty: Type) -> list[str]:
    """The data types of a tensor, or of those in a tuple."""
    if type(ty) is TupleType:
        return [dtype for field in ty.fields for dtype in dtypes_of(field)]
    return [str(ty.dtype)] if type(ty) is TensorType else []


def open_extents(ty: Type) -> int:
    """How many extents of a tensor only the run knows; a kernel takes each as an argument."""
    dims = ty.shape if isinstance(ty, TensorType) else ()
    return sum([not isinstance(dim, IntImm) for dim in dims])


def kernel_arguments(ty: Type) -> int:
    """How many arguments of a kernel a tensor is: with open extents these, and its strides."""
    if not isinstance(ty, TensorType) or not is_dynamic(ty):
        return 1
    return 1 + open_extents(ty) + len(ty.shape)


def leaf_types(ty: Type) -> list[Type]:
    """The types in a type that are no tuples, those of nested tuples in order."""
    if not isinstance(ty, TupleType):
        return [ty]
    return [leaf for field in ty.fields for leaf in leaf_types(field)]


def flat_types(ty: Type) -> list[TensorType]:
    """The tensor types in a type, those of nested tuples in order."""
    leaves = leaf_types(ty)
    for leaf in leaves:
        if not isinstance(leaf, TensorType):
            raise TypeCheckError(
                f"tensors and tuples of them are required, got a value of type {leaf}"
            )
    return cast("list[TensorType]", leaves)


def flat_part(ty: Type, index: int) -> slice:
    """Where the tensors of a tuple's field are among all of the tuple."""
    assert isinstance(ty, TupleType)
    start = sum([len(flat_types(field)) for field in ty.fields[:index]])
    return slice(start, start + len(flat_types(ty.fields[index])))


def plain_dims(ty: TensorType) -> list[int | None]:
    """The dimensions as numbers, None for open ones."""
    return [int(dim) if isinstance(dim, (int, IntImm)) else None for dim in ty.shape]


def ShapeVar(name: str) -> TypeVar:
    """A type variable that stands for a shape."""
    return TypeVar(name, TypeKind.ShapeVar)


def scalar_type(dtype: str) -> TensorType:
    """The tensor type of rank zero."""
    return TensorType((), dtype)


__all__ = [
    "Any",
    "FuncType",
    "GlobalTypeVar",
    "IncompleteType",
    "RefType",
    "RelayRefType",
    "ShapeVar",
    "TensorType",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeConstraint",
    "TypeData",
    "TypeKind",
    "TypeRelation",
    "TypeVar",
    "is_dynamic",
    "scalar_type",
]
