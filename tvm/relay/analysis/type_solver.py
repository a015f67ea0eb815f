"""Equations between types, given one by one and solved as far as they go.

solver.add_constraint(Broadcast(Tensor[(10, 20)], Tensor[(10, 1)], ?a)),  Identity(?a, ?b)
solver.solve()    ->    ?a = ?b = Tensor[(10, 20)]

The types of programs are inferred by `infer.py` and `solve.py`; this one is for type relations by
themselves, under the classic name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm._ffi import register_func
from tvm.error import TVMError, TypeCheckError
from tvm.ir.type import (
    FuncType,
    IncompleteType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeRelation,
    TypeVar,
)
from tvm.relay.analysis.unify import join, unify

# the relation that tells the type of its argument from the result, too
_IDENTITY = "tvm.relay.type_relation.Identity"


class TypeSolver:
    """Types with holes (`IncompleteType`) and relations between them."""

    def __init__(self) -> None:
        self._known: dict[int, Type] = {}  # by ids of holes, and of types that were unified
        self._kept: list[Type] = []  # so that ids stay theirs
        self._relations: list[TypeRelation] = []

    def add_constraint(self, relation: TypeRelation) -> None:
        """One more equation."""
        self._relations.append(relation)

    def solve(self) -> bool:
        """Find what the relations tell; whether all of them hold now."""
        while self._relations:
            left = [relation for relation in self._relations if not self._holds(relation)]
            if len(left) == len(self._relations):
                return False
            self._relations = left
        return True

    def resolve(self, ty: Type) -> Type:
        """The type with what is known in the place of holes."""
        while (known := self._known.get(id(ty))) is not None and known is not ty:
            ty = known
        return _with_parts(ty, self.resolve)

    def unify(self, left: Type, right: Type) -> Type:
        """The type that both are, once holes in them are filled.

        Raises
        ------
        TypeCheckError
            If there is none.
        """
        found = self._unified(self._seen(left), self._seen(right))
        for ty in (left, right):
            if ty is not found and not isinstance(found, IncompleteType):
                self._know(ty, found)
        return self.resolve(found)

    # ---- what is known

    def _seen(self, ty: Type) -> Type:
        """What a hole is known to be, its parts as they stand."""
        while (known := self._known.get(id(ty))) is not None and isinstance(ty, IncompleteType):
            ty = known
        return ty

    def _know(self, ty: Type, value: Type) -> None:
        self._kept.append(ty)
        self._known[id(ty)] = value

    def _unified(self, left: Type, right: Type) -> Type:
        if left is right:
            return left
        if isinstance(left, IncompleteType):
            return self._filled(left, right)
        if isinstance(right, IncompleteType):
            return self._filled(right, left)
        if isinstance(left, TensorType) and isinstance(right, TensorType):
            common = join(left, right) if unify(left, right, {}) else None
            return _reject(left, right) if common is None else common
        if isinstance(left, FuncType) and isinstance(right, FuncType):
            return self._unified_functions(left, right)
        is_one_kind = type(left) is type(right) and isinstance(
            left, (TupleType, RelayRefType, TypeCall)
        )
        if not is_one_kind or getattr(left, "func", None) is not getattr(right, "func", None):
            return left if left == right else _reject(left, right)
        parts = self._all_unified(_parts(left), _parts(right))
        return _with_parts(left, _one_by_one(parts))

    def _filled(self, hole: IncompleteType, ty: Type) -> Type:
        resolved = self.resolve(ty)
        if resolved is not hole and any(part is hole for part in _holes(resolved)):
            raise TypeCheckError(f"a type cannot be a part of itself, got {resolved} for {hole}")
        self._know(hole, ty)
        return ty

    def _all_unified(self, left: Sequence[Type], right: Sequence[Type]) -> list[Type]:
        if len(left) != len(right):
            raise TypeCheckError(f"{len(left)} types cannot be unified with {len(right)}")
        return [self.unify(a, b) for a, b in zip(left, right, strict=True)]

    def _unified_functions(self, left: FuncType, right: FuncType) -> Type:
        """The one with more type parameters stands for its instances; among equals they have two names."""
        if len(left.type_params) < len(right.type_params):
            left, right = right, left
        values: list[Type] = [*right.type_params]
        if len(left.type_params) > len(right.type_params):
            values = [IncompleteType(param.kind) for param in left.type_params]
            self._kept += values
        renamed = {id(old): new for old, new in zip(left.type_params, values, strict=True)}
        instance = [_replaced(ty, renamed) for ty in (*left.arg_types, left.ret_type)]
        *args, result = self._all_unified(instance, (*right.arg_types, right.ret_type))
        return FuncType(tuple(args), result, right.type_params)

    # ---- relations

    def _holds(self, relation: TypeRelation) -> bool:
        """Take in what a relation tells; whether it has told everything."""
        count = int(relation.num_inputs)
        func: Any = relation.func
        inputs, results = relation.args[:count], relation.args[count:]
        if func.name == _IDENTITY:
            self.unify(inputs[0], results[0])
            return True
        known = [self.resolve(ty) for ty in inputs]
        if any([True for ty in known for _ in _holes(ty)]):
            return False
        self.unify(results[0], func(known, relation.attrs))
        return True


def _reject(left: Type, right: Type) -> Type:
    raise TypeCheckError(f"the types {left} and {right} cannot be unified")


def _parts(ty: Type) -> tuple[Type, ...]:
    """The types that a type is made of; type parameters are none of them."""
    if isinstance(ty, FuncType):
        return (*ty.arg_types, ty.ret_type)
    if isinstance(ty, TupleType):
        return tuple(ty.fields)
    if isinstance(ty, TypeCall):
        return tuple(ty.args)
    return (ty.value,) if isinstance(ty, RelayRefType) else ()


def _with_parts(ty: Type, change: Callable[[Type], Type]) -> Type:
    """The type with other parts, called for in the order of `_parts`."""
    parts = [change(part) for part in _parts(ty)]
    if all(new is old for new, old in zip(parts, _parts(ty), strict=True)):
        return ty
    if isinstance(ty, FuncType):
        return FuncType(tuple(parts[:-1]), parts[-1], ty.type_params)
    if isinstance(ty, TypeCall):
        return TypeCall(ty.func, tuple(parts))
    return TupleType(tuple(parts)) if isinstance(ty, TupleType) else RelayRefType(parts[0])


def _one_by_one(values: Sequence[Type]) -> Callable[[Type], Type]:
    left = iter(values)
    return lambda _: next(left)


def _replaced(ty: Type, values: Mapping[int, Type]) -> Type:
    """The type with other types for type variables."""
    if isinstance(ty, TypeVar):
        return values.get(id(ty), ty)
    return _with_parts(ty, lambda part: _replaced(part, values))


def _holes(ty: Type) -> list[Type]:
    if isinstance(ty, IncompleteType):
        return [ty]
    return [hole for part in _parts(ty) for hole in _holes(part)]


@register_func("relay.analysis._test_type_solver")
def type_solver() -> Callable[[str], Callable[..., Any]]:
    """A solver, whose functions are had by their classic names."""
    solver = TypeSolver()
    functions: dict[str, Callable[..., Any]] = {
        "Solve": solver.solve,
        "Unify": solver.unify,
        "Resolve": solver.resolve,
        "AddConstraint": solver.add_constraint,
    }

    def function(name: str) -> Callable[..., Any]:
        found = functions.get(name)
        if found is None:
            raise TVMError(f"a type solver has no function {name!r}, there are {[*functions]}")
        return found

    return function
