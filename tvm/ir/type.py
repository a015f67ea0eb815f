"""Types of the graph level and of loop-level pointers."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from tvm.support import DType, dtype

from .node import Node, child, ignored, leaf
from .span import Span


class TypeKind(IntEnum):
    """What a type variable stands for."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


class Type(Node):
    """The base of all types. ``==`` compares structure."""

    span: Span | None = ignored(default=None)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Type) and types_equal(self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return type_hash(self)


class PrimType(Type):
    """A scalar of a data type."""

    dtype: DType = leaf(convert=dtype)


class PointerType(Type):
    """A pointer to elements in a storage scope ("" is global)."""

    element_type: Type
    storage_scope: str = ""


class TypeVar(Type, key="relay.TypeVar"):
    """A type parameter of a polymorphic function."""

    name_hint: str
    kind: TypeKind = TypeKind.Type

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class GlobalTypeVar(Type):
    """The name of an algebraic data type."""

    name_hint: str
    kind: TypeKind = TypeKind.AdtHandle

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class TupleType(Type):
    """A tuple of types."""

    fields_: tuple[Type, ...]
