"""Whether a value's type fits an expected type, binding type variables on the way.

A binding has an entry for each variable that may be bound, None until it is. Other variables are
those of the function around: they fit themselves alone.
"""

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
from tvm.tir.expr import Any, IntImm, SizeVar, Var

Binding = dict[int, Type | None]


def unify(expected: Type, found: Type, binding: Binding) -> bool:
    """Whether `found` fits `expected`; variables met for the first time are bound."""
    if expected is found:
        return True
    if id(expected) in binding:
        return _bind(expected, found, binding)
    if id(found) in binding:
        return _bind(found, expected, binding)
    if isinstance(expected, IncompleteType) or isinstance(found, IncompleteType):
        return True
    if isinstance(expected, TensorType) and isinstance(found, TensorType):
        return _tensors_fit(expected, found)
    if isinstance(expected, TupleType) and isinstance(found, TupleType):
        return _all_fit(expected.fields, found.fields, binding)
    if isinstance(expected, FuncType) and isinstance(found, FuncType):
        return _functions_fit(expected, found, binding)
    if isinstance(expected, RelayRefType) and isinstance(found, RelayRefType):
        return unify(expected.value, found.value, binding)
    if isinstance(expected, TypeCall) and isinstance(found, TypeCall):
        return expected.func is found.func and _all_fit(expected.args, found.args, binding)
    return structural_equal(expected, found)


def _bind(variable: Type, ty: Type, binding: Binding) -> bool:
    """Give a variable its value, or compare with the one that it has."""
    while (known := binding.get(id(ty))) is not None:
        ty = known
    bound = binding[id(variable)]
    if ty is variable:
        return True
    if bound is None:
        binding[id(variable)] = ty
        return True
    if not unify(bound, ty, binding):
        return False
    if is_incomplete(bound):
        binding[id(variable)] = join(instantiate(bound, binding), instantiate(ty, binding))
    return True


def instantiate(ty: Type, binding: Binding) -> Type:
    """`ty` with bound type variables replaced."""
    if not binding:
        return ty
    if isinstance(ty, TypeVar):
        value = binding.get(id(ty))
        return ty if value is None or value is ty else instantiate(value, binding)
    if isinstance(ty, (TupleType, FuncType, RelayRefType, TypeCall)):
        return ty.map_children(_Instantiate(binding))
    return ty


def instantiate_function(ty: FuncType, binding: Binding) -> FuncType:
    """The same for a type of functions."""
    result = instantiate(ty, binding)
    assert isinstance(result, FuncType)
    return result


class _Instantiate:
    def __init__(self, binding: Binding) -> None:
        self.binding = binding

    def __call__(self, ty: Type) -> Type:
        return instantiate(ty, self.binding)


def join(a: Type, b: Type) -> Type | None:
    """The least type that both fit: dimensions that differ become unknown; None if there is none."""
    if isinstance(a, IncompleteType):
        return b
    if isinstance(b, IncompleteType):
        return a
    if isinstance(a, TypeCall) and isinstance(b, TypeCall):
        args = _joined(a.args, b.args) if a.func is b.func else None
        return None if args is None else TypeCall(a.func, args)
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        if a.dtype != b.dtype or len(a.shape) != len(b.shape):
            return None
        if all(_same_dim(x, y) for x, y in zip(a.shape, b.shape, strict=True)):
            return a
        dims = [x if _same_dim(x, y) else Any() for x, y in zip(a.shape, b.shape, strict=True)]
        return TensorType(tuple(dims), a.dtype)
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        fields = _joined(a.fields, b.fields)
        return None if fields is None else TupleType(fields)
    return a if unify(a, b, {}) else None


def _joined(left: tuple[Type, ...], right: tuple[Type, ...]) -> tuple[Type, ...] | None:
    if len(left) != len(right):
        return None
    found = [join(a, b) for a, b in zip(left, right, strict=True)]
    known = tuple([ty for ty in found if ty is not None])
    return known if len(known) == len(found) else None


def is_incomplete(ty: Type) -> bool:
    """Whether a part of the type is still to be found."""
    if isinstance(ty, IncompleteType):
        return True
    if isinstance(ty, (TupleType, FuncType, RelayRefType, TypeCall)):
        return any([is_incomplete(part) for part in ty.children() if isinstance(part, Type)])
    return False


def _functions_fit(expected: FuncType, found: FuncType, binding: Binding) -> bool:
    if expected.type_params and len(expected.type_params) == len(found.type_params):
        renamed = zip(found.type_params, expected.type_params, strict=True)
        binding_of_names: Binding = {id(old): new for old, new in renamed}
        found = instantiate_function(found, binding_of_names)
    elif found.type_params:  # a polymorphic function stands for one of its instances
        found, variables = fresh_variables(found)
        binding.update(variables)
    return _all_fit(expected.arg_types, found.arg_types, binding) and unify(
        expected.ret_type, found.ret_type, binding
    )


def fresh_variables(func: FuncType) -> tuple[FuncType, Binding]:
    """The function with type parameters of its own, which the binding may bind."""
    if not func.type_params:
        return func, {}
    params = [TypeVar(p.name_hint, p.kind) for p in func.type_params]
    binding: Binding = {id(p): q for p, q in zip(func.type_params, params, strict=True)}
    arg_types = tuple([instantiate(ty, binding) for ty in func.arg_types])
    fresh = FuncType(arg_types, instantiate(func.ret_type, binding), tuple(params))
    return fresh, {id(p): None for p in params}


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
    """Whether two extents may be equal: what only the run can tell passes."""
    if isinstance(expected, Any) or isinstance(found, Any) or _same_dim(expected, found):
        return True
    kinds = {type(expected), type(found)}
    return not (kinds <= {IntImm} or kinds <= {Var, SizeVar})


def _same_dim(a: BaseExpr, b: BaseExpr) -> bool:
    if a is b:
        return True
    if isinstance(a, IntImm) and isinstance(b, IntImm):
        return a.value == b.value
    return structural_equal(a, b)
