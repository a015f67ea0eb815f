"""The classic visitors of types: one method a kind of type."""

from __future__ import annotations

from typing import Any

from tvm.ir.adt import Constructor, TypeData
from tvm.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RelayRefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeRelation,
    TypeVar,
)
from tvm.ir.visitor import Functor


class TypeFunctor(Functor):
    """Calls the method for the kind of a type."""

    _nodes = "a relay type"

    def visit(self, typ: Type) -> Any:
        """The result for `typ`."""
        method = self._dispatch[type(typ)]
        assert method is not None, "every type has a method"
        return method(self, typ)

    def visit_relay_ref_type(self, ref: RelayRefType) -> Any:
        """By its classic name."""
        return self.visit_ref_type(ref)

    def visit_type_var(self, _: TypeVar) -> Any:
        raise NotImplementedError

    def visit_incomplete_type(self, _: IncompleteType) -> Any:
        raise NotImplementedError

    def visit_tensor_type(self, _: TensorType) -> Any:
        raise NotImplementedError

    def visit_func_type(self, _: FuncType) -> Any:
        raise NotImplementedError

    def visit_tuple_type(self, _: TupleType) -> Any:
        raise NotImplementedError

    def visit_type_relation(self, _: TypeRelation) -> Any:
        raise NotImplementedError

    def visit_ref_type(self, _: RelayRefType) -> Any:
        raise NotImplementedError

    def visit_global_type_var(self, _: GlobalTypeVar) -> Any:
        raise NotImplementedError

    def visit_type_call(self, _: TypeCall) -> Any:
        raise NotImplementedError

    def visit_type_data(self, _: TypeData) -> Any:
        raise NotImplementedError


class TypeVisitor(TypeFunctor):
    """Visits everything inside a type; override what interests you."""

    def visit_type_var(self, tv: TypeVar) -> None:
        del tv

    def visit_incomplete_type(self, it: IncompleteType) -> None:
        del it

    def visit_tensor_type(self, tt: TensorType) -> None:
        del tt

    def visit_func_type(self, ft: FuncType) -> None:
        for arg_type in ft.arg_types:
            self.visit(arg_type)
        self.visit(ft.ret_type)
        for param in ft.type_params:
            self.visit(param)
        for constraint in ft.type_constraints:
            self.visit(constraint)

    def visit_tuple_type(self, tt: TupleType) -> None:
        for field in tt.fields:
            self.visit(field)

    def visit_type_relation(self, tr: TypeRelation) -> None:
        for arg in tr.args:
            self.visit(arg)

    def visit_ref_type(self, rt: RelayRefType) -> None:
        self.visit(rt.value)

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> None:
        del gtv

    def visit_type_call(self, tc: TypeCall) -> None:
        self.visit(tc.func)
        for arg in tc.args:
            self.visit(arg)

    def visit_type_data(self, td: TypeData) -> None:
        self.visit(td.header)
        for variable in td.type_vars:
            self.visit(variable)
        for constructor in td.constructors:
            for ty in constructor.inputs:
                self.visit(ty)


class TypeMutator(TypeFunctor):
    """Rebuilds a type; one none of whose parts changed is returned itself."""

    def visit_type_var(self, tv: TypeVar) -> Type:
        return tv

    def visit_incomplete_type(self, it: IncompleteType) -> Type:
        return it

    def visit_tensor_type(self, tt: TensorType) -> Type:
        return tt

    def visit_func_type(self, ft: FuncType) -> Type:
        return ft.map_children(self.visit)

    def visit_tuple_type(self, tt: TupleType) -> Type:
        return tt.map_children(self.visit)

    def visit_type_relation(self, tr: TypeRelation) -> Type:
        return tr.map_children(self.visit)

    def visit_ref_type(self, rt: RelayRefType) -> Type:
        return rt.map_children(self.visit)

    def visit_global_type_var(self, gtv: GlobalTypeVar) -> Type:
        return gtv

    def visit_type_call(self, tc: TypeCall) -> Type:
        return tc.map_children(self.visit)

    def visit_type_data(self, td: TypeData) -> Type:
        header, variables = self.visit(td.header), tuple([self.visit(v) for v in td.type_vars])
        constructors = tuple([self._constructor(c) for c in td.constructors])
        return td.replace(header=header, type_vars=variables, constructors=constructors)

    def _constructor(self, constructor: Constructor) -> Constructor:
        inputs = tuple([self.visit(ty) for ty in constructor.inputs])
        if all([a is b for a, b in zip(inputs, constructor.inputs, strict=True)]):
            return constructor
        return constructor.replace(inputs=inputs)


__all__ = ["TypeFunctor", "TypeMutator", "TypeVisitor"]
