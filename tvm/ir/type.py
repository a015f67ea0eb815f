"""Types of the graph level and of loop-level pointers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

from tvm.error import TypeCheckError
from tvm.support import DType, dtype

from . import extension
from .expr import PrimExpr
from .node import Node, binder, child, ignored, leaf
from .script_printer import Scriptable
from .span import Span
from .structural import structural_equal, structural_hash


class TypeKind(IntEnum):
    """What a type variable stands for."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


def _tuple(items: Any) -> tuple[Any, ...]:
    return () if items is None else tuple(items)


def _are_equal_dimensions(a: PrimExpr, b: PrimExpr) -> bool:
    """Whether two dimensions are the same number, whatever their variables stand for."""
    if structural_equal(a, b):
        return True
    # a number and an expression differ, as their hashes do
    is_open = not (hasattr(a, "value") or hasattr(b, "value"))
    prove = extension.are_equal_dimensions.function
    return is_open and prove is not None and prove(a, b)


def as_dimensions(shape: Any) -> tuple[PrimExpr, ...]:
    """Dimensions as expressions; Python and numpy integers become ``int32`` literals."""
    if isinstance(shape, (int, PrimExpr)):
        shape = (shape,)
    make = extension.make_dimension.required
    return tuple([d if isinstance(d, PrimExpr) else make(int(d)) for d in shape])


class Type(Scriptable, Node):
    """The base of all types. ``==`` compares structure."""

    span: Span | None = ignored(default=None, kw_only=True)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Type) and structural_equal(self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return structural_hash(self)


class PrimType(Type):
    """A scalar of a data type."""

    dtype: DType = leaf(convert=dtype)


def _storage_scope(scope: str) -> str:
    return scope or "global"


class PointerType(Type):
    """A pointer to elements in a storage scope ("" is global)."""

    element_type: Type
    storage_scope: str = leaf(default="global", convert=_storage_scope)


class TypeVar(Type, key="relay.TypeVar"):
    """A type parameter of a polymorphic function."""

    name_hint: str
    kind: TypeKind = TypeKind.Type
    structural: ClassVar[str] = "variable"
    hashed_by_kind: ClassVar[bool] = True  # types of two functions may share it or not

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__

    def __call__(self, *args: Type) -> TypeCall:
        """This type applied to arguments."""
        return TypeCall(self, args)


class GlobalTypeVar(Type):
    """The name of an algebraic data type."""

    name_hint: str
    kind: TypeKind = TypeKind.AdtHandle

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__

    def __call__(self, *args: Type) -> TypeCall:
        """This type applied to arguments."""
        return TypeCall(self, args)


class TupleType(Type):
    """A tuple of types."""

    fields: tuple[Type, ...] = child(convert=tuple)

    if TYPE_CHECKING:

        def __init__(
            self,
            fields: Sequence[Type],
            span: Span | None = None,
        ) -> None: ...

    def __eq__(self, other: object) -> bool:
        if self is other or type(other) is not TupleType:
            return self is other
        pairs = zip(self.fields, other.fields, strict=False)
        return len(self.fields) == len(other.fields) and all([a == b for a, b in pairs])

    def __hash__(self) -> int:
        return hash((TupleType, self.fields))


class TypeConstraint(Type):
    """A condition on types."""


class FuncType(Type):
    """The type of a function."""

    arg_types: tuple[Type, ...] = child(convert=tuple)
    ret_type: Type
    type_params: tuple[TypeVar, ...] = binder("arg_types", "ret_type", default=(), convert=_tuple)
    type_constraints: tuple[TypeConstraint, ...] = child(default=(), convert=_tuple)

    if TYPE_CHECKING:

        def __init__(
            self,
            arg_types: Sequence[Type],
            ret_type: Type,
            type_params: Sequence[TypeVar] | None = None,
            type_constraints: Sequence[TypeConstraint] | None = None,
            span: Span | None = None,
        ) -> None: ...


class IncompleteType(Type):
    """A type that inference has still to find."""

    kind: TypeKind = TypeKind.Type

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__


class RelayRefType(Type, key="relay.RefType"):
    """A mutable cell that holds a value of a type."""

    value: Type


class TypeRelation(TypeConstraint):
    """A relation that an operator demands of its argument and result types."""

    func: object = leaf()
    args: tuple[Type, ...] = child(convert=tuple)
    num_inputs: int
    attrs: object = leaf(default=None)


class TypeCall(Type):
    """An algebraic data type applied to arguments."""

    func: Type
    args: tuple[Type, ...] = child(convert=tuple)

    if TYPE_CHECKING:

        def __init__(
            self,
            func: Type,
            args: Sequence[Type],
            span: Span | None = None,
        ) -> None: ...


class BaseTensorType(Type, key="relay.BaseTensorType"):
    """The base of tensor types."""


class TensorType(BaseTensorType, key="relay.TensorType"):
    """A tensor of a shape and a data type.

    Parameters
    ----------
    shape : sequence of int or PrimExpr
        The dimensions; ``tir.Any()`` for one not known before run time.
    dtype : str
        The element type.
    """

    shape: tuple[PrimExpr, ...] = child(convert=as_dimensions)
    dtype: DType = leaf(default=dtype("float32"), convert=dtype)

    if TYPE_CHECKING:

        def __init__(
            self,
            shape: Sequence[Any],
            dtype: str = "float32",
            span: Span | None = None,
        ) -> None: ...

    def __eq__(self, other: object) -> bool:
        """One dtype, and extents that are equal: t + t and t * 2 are."""
        if self is other or type(other) is not TensorType:
            return self is other
        if self.dtype is not other.dtype or len(self.shape) != len(other.shape):
            return False
        pairs = zip(self.shape, other.shape, strict=True)
        return all([_are_equal_dimensions(a, b) for a, b in pairs])

    def __hash__(self) -> int:
        known = tuple([getattr(dim, "value", None) for dim in self.shape])
        return hash((TensorType, self.dtype, known))

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as integers.

        Raises
        ------
        TypeCheckError
            If a dimension is not a constant.
        """
        values = [getattr(dim, "value", None) for dim in self.shape]
        known = tuple([value for value in values if type(value) is int])
        if len(known) < len(values):
            raise TypeCheckError(f"concrete_shape requires constant dimensions, got {self}")
        return known

    @property
    def is_empty(self) -> bool:
        """Whether the shape is constant and has no elements."""
        return not self.is_dynamic and 0 in self.concrete_shape

    @property
    def is_dynamic(self) -> bool:
        """Whether a dimension is not a constant."""
        return any(type(getattr(dim, "value", None)) is not int for dim in self.shape)
