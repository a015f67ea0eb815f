"""Programs whose functions are data: first-order, without type parameters.

    let %f = fn (%y: float32) -> float32 { add(%x, %y) };
    @twice(%f)
    ->
    type fn0 { closure0(float32), }
    def @apply_fn0(%f: fn0, %y: float32) -> float32 {
      match (%f) { closure0(%x) => add(%x, %y), }
    }
    let %f = closure0(%x);
    @twice_1(%f)

A data type stands for each type of functions, with a constructor for each function of that type,
which holds what the function captured. Polymorphic functions are copied for the types they are
used at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from tvm.error import TVMError
from tvm.ir.adt import Constructor, TypeData
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.type import FuncType, GlobalTypeVar, RelayRefType, TupleType, Type, TypeCall
from tvm.ir.visitor import ContextVisitor
from tvm.relay.adt import Clause, Match, PatternConstructor, PatternVar
from tvm.relay.analysis.infer import function_type_of, infer_type_of
from tvm.relay.analysis.unify import (
    Binding,
    fresh_variables,
    instantiate,
    instantiate_function,
    is_incomplete,
    unify,
)
from tvm.relay.expr import Call, Let, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.eta_expand import eta_expand
from tvm.relay.transform.normal_form import name_results
from tvm.relay.traverse import free_vars, operands, with_operands, with_pattern_vars
from tvm.support import UniqueNames, deep


@deep
def Defunctionalization(func: Function, mod: IRModule) -> Function:
    """The first-order form of a function.

    Parameters
    ----------
    func : a function that neither is polymorphic nor takes or returns functions.
    mod : the module of the functions it calls; it gets the copies, the data types that stand for
        functions, and the functions that apply them.
    """
    ty = function_type_of(func, mod)
    if func.type_params or any([_has_functions(t) for t in (*ty.arg_types, ty.ret_type)]):
        raise TVMError(
            "Defunctionalization requires a function that neither is polymorphic nor takes or "
            f"returns functions, got one of type {ty}"
        )
    maker = _FirstOrder(mod)
    result = maker.function(func, {})
    maker.finish()
    return result


def _has_functions(ty: Type) -> bool:
    if isinstance(ty, FuncType):
        return True
    return any([_has_functions(part) for part in ty.children() if isinstance(part, Type)])


@dataclass
class _Encoding:
    """The data type that stands for a type of functions."""

    ty: FuncType
    header: GlobalTypeVar
    apply: GlobalVar
    value: Var
    params: list[Var]
    constructors: list[Constructor] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)


@dataclass
class _Scope:
    """What variables and type variables of the old program are in a new function."""

    types: Binding
    values: dict[int, RelayExpr] = field(default_factory=dict)
    polymorphic: dict[int, Function] = field(default_factory=dict)  # of variables bound to them


class _FirstOrder(ContextVisitor):
    """Rewrites functions; the module gets what they need."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.source = IRModule(mod.functions, mod.type_definitions)
        self.names = UniqueNames()
        for name in (*mod.functions, *mod.type_definitions):
            self.names.reserve(name.name_hint)
        self.encodings: list[_Encoding] = []
        self.copies: list[tuple[str, Type, GlobalVar]] = []

    def function(self, func: Function, types: Binding) -> Function:
        """A global function at the types that its type parameters have."""
        expanded = eta_expand(func, self.source, (Constructor,))
        named = name_results(expanded)
        infer_type_of(named, self.source)
        assert isinstance(named, Function)
        scope = _Scope(types)
        params = [self._variable(p, scope) for p in named.params]
        body = self._block(named.body, scope)
        ret_type = self._encoded(instantiate(function_type_of(named).ret_type, types))
        return Function(params, body, ret_type, (), func.attrs)

    def finish(self) -> None:
        """Define the data types and the functions that apply their values."""
        for encoding in self.encodings:
            self.mod[encoding.header] = TypeData(encoding.header, (), encoding.constructors)
            ret_type = self._encoded(encoding.ty.ret_type)
            body = Match(encoding.value, encoding.clauses)
            self.mod[encoding.apply] = Function([encoding.value, *encoding.params], body, ret_type)

    # -- types

    def _encoded(self, ty: Type) -> Type:
        if isinstance(ty, FuncType):
            return TypeCall(self._encoding(ty).header, ())
        if isinstance(ty, (TupleType, RelayRefType)):
            return ty.map_children(self._encoded)
        if isinstance(ty, TypeCall):
            return TypeCall(ty.func, [self._encoded(a) for a in ty.args])
        return ty

    def _encoding(self, ty: FuncType) -> _Encoding:
        for known in self.encodings:
            if known.ty == ty:
                return known
        if ty.type_params:
            raise _not_of_one_type(ty)
        if is_incomplete(ty):
            raise TVMError(f"Defunctionalization requires the types of all functions, got {ty}")
        name = self.names.fresh(f"fn{len(self.encodings)}")
        header = GlobalTypeVar(name)
        made = _Encoding(
            ty,
            header,
            GlobalVar(self.names.fresh(f"apply_{name}")),
            Var("f", TypeCall(header, ())),
            [],
        )
        self.encodings.append(made)
        made.params = [Var(f"x{i}", self._encoded(a)) for i, a in enumerate(ty.arg_types)]
        return made

    def _type_of(self, node: RelayExpr, scope: _Scope) -> Type:
        return instantiate(infer_type_of(node, self.source), scope.types)

    # -- expressions

    def _variable(self, old: Var, scope: _Scope) -> Var:
        new = Var(old.name_hint, self._encoded(self._type_of(old, scope)))
        scope.values[id(old)] = new
        return new

    def _block(self, body: RelayExpr, scope: _Scope) -> RelayExpr:
        bindings: list[tuple[Var, RelayExpr]] = []
        while isinstance(body, Let):
            if isinstance(body.value, Function) and body.value.type_params:
                scope.polymorphic[id(body.var)] = body.value
                body = body.body
                continue
            if isinstance(body.value, Function) and not is_primitive(body.value):
                value = self._closure(body.value, scope, body.var)
            else:
                value = self.visit(body.value, scope)
            bindings.append((self._variable(body.var, scope), value))
            body = body.body
        result: RelayExpr = self.visit(body, scope)
        for variable, value in reversed(bindings):
            result = Let(variable, value, result)
        return result

    def visit_relay_expr(self, node: RelayExpr, scope: _Scope) -> RelayExpr:
        below = operands(node)
        return with_operands(node, [self.visit(o, scope) for o in below]) if below else node

    def visit_var(self, node: Var, scope: _Scope) -> RelayExpr:
        if id(node) in scope.polymorphic:
            raise _not_of_one_type(self._type_of(node, scope))
        return scope.values.get(id(node), node)

    def visit_function(self, node: Function, scope: _Scope) -> RelayExpr:
        return node if is_primitive(node) else self._closure(node, scope, None)

    def visit_let(self, node: Let, scope: _Scope) -> RelayExpr:
        return self._block(node, scope)

    def visit_match(self, node: Match, scope: _Scope) -> RelayExpr:
        rename = partial(self._variable, scope=scope)
        clauses = [
            Clause(with_pattern_vars(c.lhs, rename), self._block(c.rhs, scope))
            for c in node.clauses
        ]
        return Match(self.visit(node.data, scope), clauses, node.complete)

    def visit_call(self, call: Call, scope: _Scope) -> RelayExpr:
        if isinstance(call.op, (Op, Constructor)) or is_primitive(call.op):
            args = [self.visit(a, scope) for a in call.args]
            return call.replace(args=tuple(args), type_args=())
        found = self._argument_types(call, scope)
        args = [self._as_type(a, ty, scope) for a, ty in zip(call.args, found, strict=True)]
        if isinstance(call.op, GlobalVar):
            return Call(self._copy(call.op, FuncType(found, self._type_of(call, scope))), args)
        ty = self._type_of(call.op, scope)
        assert isinstance(ty, FuncType)
        if id(call.op) in scope.polymorphic:
            ty = FuncType(found, self._type_of(call, scope))
        return Call(self._encoding(ty).apply, [self._as_type(call.op, ty, scope), *args])

    def _argument_types(self, call: Call, scope: _Scope) -> list[Type]:
        """The types of a call's arguments; a polymorphic one is used at the callee's type for it."""
        types = [self._type_of(a, scope) for a in call.args]
        is_polymorphic = [self._is_polymorphic(a, scope) for a in call.args]
        if not any(is_polymorphic):
            return types
        callee = self._type_of(call.op, scope)
        assert isinstance(callee, FuncType)
        callee, binding = fresh_variables(callee)
        unify(callee.ret_type, self._type_of(call, scope), binding)
        for ty, own, polymorphic in zip(callee.arg_types, types, is_polymorphic, strict=True):
            if not polymorphic:
                unify(ty, own, binding)
        return [
            instantiate(ty, binding) if polymorphic else own
            for ty, own, polymorphic in zip(callee.arg_types, types, is_polymorphic, strict=True)
        ]

    def _is_polymorphic(self, value: RelayExpr, scope: _Scope) -> bool:
        if isinstance(value, GlobalVar):
            return bool(self.source[value].type_params)
        return id(value) in scope.polymorphic

    def _as_type(self, arg: RelayExpr, ty: Type, scope: _Scope) -> RelayExpr:
        """The argument; a polymorphic function as the one of that type."""
        if isinstance(arg, GlobalVar):
            return self._global_value(arg, ty)
        func = scope.polymorphic.get(id(arg))
        if func is None:
            value: RelayExpr = self.visit(arg, scope)
            return value
        own = FuncType([p.checked_type for p in func.params], infer_type_of(func.body))
        types: Binding = {**scope.types, **{id(p): None for p in func.type_params}}
        unify(own, ty, types)
        return self._closure(func, _Scope(types, scope.values, scope.polymorphic), None)

    # -- functions

    def _copy(self, gvar: GlobalVar, used_as: FuncType) -> GlobalVar:
        """The copy of a global function for the types it is used at."""
        func = self.source[gvar]
        declared = function_type_of(gvar, self.source)
        types: Binding = {id(p): None for p in func.type_params}
        unify(FuncType(declared.arg_types, declared.ret_type), used_as, types)
        exact = instantiate(FuncType(declared.arg_types, declared.ret_type), types)
        for name, ty, known in self.copies:
            if name == gvar.name_hint and ty == exact:
                return known
        new = GlobalVar(self.names.fresh(gvar.name_hint))
        self.copies.append((gvar.name_hint, exact, new))
        self.mod[new] = self.function(func, types)
        return new

    def visit_global_var(self, gvar: GlobalVar, scope: _Scope) -> RelayExpr:
        return self._global_value(gvar, self._type_of(gvar, scope))

    def _global_value(self, gvar: GlobalVar, ty: Type) -> RelayExpr:
        """The value that stands for a global function used at a type."""
        assert isinstance(ty, FuncType)
        encoding = self._encoding(ty)
        copy = self._copy(gvar, ty)
        constructor = Constructor(self.names.fresh("closure"), (), encoding.header)
        encoding.constructors.append(constructor)
        body = Call(copy, encoding.params)
        encoding.clauses.append(Clause(PatternConstructor(constructor), body))
        return Call(constructor, [])

    def _closure(self, func: Function, scope: _Scope, name: Var | None) -> RelayExpr:
        """The value that stands for a local function, at the types of the scope."""
        declared = function_type_of(func, self.source)
        bare = FuncType(declared.arg_types, declared.ret_type)
        ty = instantiate_function(bare, scope.types)
        encoding = self._encoding(ty)
        captured = [v for v in free_vars(func) if v is not name]
        inner = _Scope(scope.types)
        fields = [self._variable(v, inner) for v in captured]
        constructor = Constructor(
            self.names.fresh("closure"), tuple([infer_type_of(f) for f in fields]), encoding.header
        )
        encoding.constructors.append(constructor)
        for param, variable in zip(func.params, encoding.params, strict=True):
            inner.values[id(param)] = variable
        if name is not None:
            inner.values[id(name)] = Call(constructor, fields)
        pattern = PatternConstructor(constructor, [PatternVar(f) for f in fields])
        encoding.clauses.append(Clause(pattern, self._block(func.body, inner)))
        return Call(constructor, [self.visit(v, scope) for v in captured])


def _not_of_one_type(ty: Type) -> TVMError:
    return TVMError(f"Defunctionalization requires functions of one type as values, got {ty}")
