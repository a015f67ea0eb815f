"""Whether a value's type fits an expected type, binding type variables on the way."""

from __future__ import annotations

from tvm.ir.expr import BaseExpr
from tvm.ir.structural import structural_equal
from tvm.ir.type import (
    FuncType,
    IncompleteType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from tvm.tir.expr import Any, IntImm

Binding = dict[int, Type]


def unify(expected: Type, found: Type, binding: Binding) -> bool:
    """Whether `found` fits `expected`; variables met for the first time are bound."""
    if expected is found:
        return True
    if isinstance(expected, TypeVar) and id(expected) in binding:
        return unify(binding[id(expected)], found, {})
    if isinstance(expected, (TypeVar, IncompleteType)):
        binding[id(expected)] = found
        return True
    if isinstance(found, IncompleteType):
        return True
    if type(expected) is not type(found):
        return False
    if isinstance(expected, TensorType):
        return _tensors_fit(expected, found)
    if isinstance(expected, TupleType):
        return _all_fit(expected.fields, found.fields, binding)
    if isinstance(expected, FuncType):
        return _all_fit(expected.arg_types, found.arg_types, binding) and unify(
            expected.ret_type, found.ret_type, binding
        )
    if isinstance(expected, RelayRefType):
        return unify(expected.value, found.value, binding)
    if isinstance(expected, TypeCall):
        return expected.func is found.func and _all_fit(expected.args, found.args, binding)
    return structural_equal(expected, found)


def instantiate(ty: Type, binding: Binding) -> Type:
    """`ty` with bound type variables replaced."""
    if not binding:
        return ty
    if isinstance(ty, TypeVar):
        return binding.get(id(ty), ty)
    if isinstance(ty, (TupleType, FuncType, RelayRefType, TypeCall)):
        return ty.map_children(_Instantiate(binding))
    return ty


class _Instantiate:
    def __init__(self, binding: Binding) -> None:
        self.binding = binding

    def __call__(self, ty: Type) -> Type:
        return instantiate(ty, self.binding)


def join(a: Type, b: Type) -> Type | None:
    """The least type that both fit: dimensions that differ become unknown; None if there is none."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        if a.dtype != b.dtype or len(a.shape) != len(b.shape):
            return None
        if all(_same_dim(x, y) for x, y in zip(a.shape, b.shape, strict=True)):
            return a
        dims = [x if _same_dim(x, y) else Any() for x, y in zip(a.shape, b.shape, strict=True)]
        return TensorType(tuple(dims), a.dtype)
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        if len(a.fields) != len(b.fields):
            return None
        fields = [join(x, y) for x, y in zip(a.fields, b.fields, strict=True)]
        return None if any(f is None for f in fields) else TupleType(tuple(fields))
    return a if unify(a, b, {}) else None


def _all_fit(expected: tuple[Type, ...], found: tuple[Type, ...], binding: Binding) -> bool:
    return len(expected) == len(found) and all(
        unify(e, f, binding) for e, f in zip(expected, found, strict=True)
    )


def _tensors_fit(expected: TensorType, found: TensorType) -> bool:
    return (
        expected.dtype == found.dtype
        and len(expected.shape) == len(found.shape)
        and all(_dim_fits(e, f) for e, f in zip(expected.shape, found.shape, strict=True))
    )


def _dim_fits(expected: BaseExpr, found: BaseExpr) -> bool:
    return isinstance(expected, Any) or isinstance(found, Any) or _same_dim(expected, found)


def _same_dim(a: BaseExpr, b: BaseExpr) -> bool:
    if a is b:
        return True
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return a.value == b.value
    return structural_equal(a, b)
