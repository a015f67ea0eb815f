"""Rewriting a function to one whose tensors are other values, such as pairs with something more.

The structure of the program stays: tuples of tensors become tuples of those values, functions take
and return them. What a tensor becomes, and what an operator does with it, a subclass says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import tvm.relay.expr as nodes
from tvm.error import TVMError
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.type import FuncType, RelayRefType, TensorType, TupleType, Type, TypeCall
from tvm.ir.visitor import ContextVisitor
from tvm.relay.adt import Clause, Match
from tvm.relay.analysis.infer import function_type_of, infer_type_of
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.let_list import LetList
from tvm.relay.transform.normal_form import name_results
from tvm.relay.traverse import split_lets, with_pattern_vars


def map_tensors(
    value: RelayExpr, ty: Type, rewrite: Callable[[RelayExpr, Type], RelayExpr]
) -> RelayExpr:
    """A value of that type, or a tuple of what `rewrite` makes of its fields, nested ones included."""
    if type(ty) is not TupleType:
        return rewrite(value, ty)
    fields = enumerate(ty.fields)
    return nodes.Tuple([map_tensors(nodes.field_of(value, i), t, rewrite) for i, t in fields])


def tensors_in(value: RelayExpr, ty: Type) -> list[tuple[RelayExpr, Type]]:
    """The fields of a value of that type, nested ones included, with their types."""
    if type(ty) is not TupleType:
        return [(value, ty)]
    return [
        part for i, t in enumerate(ty.fields) for part in tensors_in(nodes.field_of(value, i), t)
    ]


class TensorLifter(ContextVisitor, ABC):
    """Rewrites functions of one module to functions on other values than tensors."""

    def __init__(self, mod: IRModule | None) -> None:
        self.mod = mod
        self.new: dict[int, RelayExpr] = {}  # by the old variable

    @abstractmethod
    def lifted_tensor(self, ty: TensorType) -> Type:
        """The type of what a tensor becomes."""

    @abstractmethod
    def constant(self, node: nodes.Constant) -> RelayExpr:
        """What a constant becomes."""

    @abstractmethod
    def condition(self, value: RelayExpr) -> RelayExpr:
        """The tensor that a condition's value stands for."""

    @abstractmethod
    def operator(self, call: nodes.Call, args: list[nodes.Var], lets: LetList) -> RelayExpr:
        """What a call of an operator becomes, over its new arguments."""

    @abstractmethod
    def global_call(self, call: nodes.Call, args: list[RelayExpr], lets: LetList) -> RelayExpr:
        """What a call of a global function becomes."""

    @abstractmethod
    def global_value(self, gvar: GlobalVar) -> RelayExpr:
        """What a global function becomes that is used as a value."""

    def lifted_type(self, ty: Type) -> Type:
        """The type with its tensors replaced."""
        if type(ty) is TensorType:
            return self.lifted_tensor(ty)
        if isinstance(ty, (TupleType, FuncType, RelayRefType)):
            return ty.map_children(self.lifted_type)
        if type(ty) is TypeCall:
            return TypeCall(ty.func, [self.lifted_type(a) for a in ty.args])
        return ty

    def function(self, func: Function) -> Function:
        """The function on the new values."""
        named = name_results(func)
        assert isinstance(named, Function)
        infer_type_of(named, self.mod)
        params = [self._variable(p) for p in named.params]
        ty = self.lifted_type(infer_type_of(named.body, self.mod))
        return Function(params, self._block(named.body), ty, named.type_params)

    def _variable(self, old: nodes.Var) -> nodes.Var:
        new = nodes.Var(old.name_hint, self.lifted_type(infer_type_of(old, self.mod)))
        self.new[id(old)] = new
        return new

    def _block(self, body: RelayExpr) -> RelayExpr:
        lets = LetList()
        old_lets, result = split_lets(body)
        for let in old_lets:
            lets.bind(self._variable(let.var), self.visit(let.value, lets))
        return lets.get(self.visit(result, lets))

    def visit_relay_expr(self, node: RelayExpr, lets: LetList) -> RelayExpr:
        raise TVMError(f"{type(node).__name__} is not known here", at=node)

    def visit_var(self, node: nodes.Var, lets: LetList) -> RelayExpr:
        return self.new[id(node)]

    def visit_constant(self, node: nodes.Constant, lets: LetList) -> RelayExpr:
        return self.constant(node)

    def visit_tuple(self, node: nodes.Tuple, lets: LetList) -> RelayExpr:
        return nodes.Tuple([self.visit(f, lets) for f in node.fields])

    def visit_tuple_get_item(self, node: nodes.TupleGetItem, lets: LetList) -> RelayExpr:
        return nodes.TupleGetItem(self.visit(node.tuple_value, lets), node.index)

    def visit_if(self, node: nodes.If, lets: LetList) -> RelayExpr:
        cond = self.condition(self.visit(node.cond, lets))
        return nodes.If(cond, self._block(node.true_branch), self._block(node.false_branch))

    def visit_ref_create(self, node: nodes.RefCreate, lets: LetList) -> RelayExpr:
        return nodes.RefCreate(self.visit(node.value, lets))

    def visit_ref_read(self, node: nodes.RefRead, lets: LetList) -> RelayExpr:
        return nodes.RefRead(self.visit(node.ref, lets))

    def visit_ref_write(self, node: nodes.RefWrite, lets: LetList) -> RelayExpr:
        return nodes.RefWrite(self.visit(node.ref, lets), self.visit(node.value, lets))

    def visit_global_var(self, node: GlobalVar, lets: LetList) -> RelayExpr:
        return self.global_value(node)

    def visit_constructor(self, node: Constructor, lets: LetList) -> RelayExpr:
        return node

    def visit_function(self, func: Function, lets: LetList) -> RelayExpr:
        if is_primitive(func):
            raise TVMError("a program before fusion is required", hint="run DefuseOps first")
        params = [self._variable(p) for p in func.params]
        ty = self.lifted_type(function_type_of(func, self.mod).ret_type)
        return Function(params, self._block(func.body), ty, func.type_params)

    def visit_match(self, node: Match, lets: LetList) -> RelayExpr:
        clauses = []
        for clause in node.clauses:
            pattern = with_pattern_vars(clause.lhs, self._variable)
            clauses.append(Clause(pattern, self._block(clause.rhs)))
        return Match(self.visit(node.data, lets), clauses, node.complete)

    def visit_call(self, call: nodes.Call, lets: LetList) -> RelayExpr:
        args = [self.visit(a, lets) for a in call.args]
        if type(call.op) is Op:
            return self.operator(call, [lets.push(a, None, "a") for a in args], lets)
        if type(call.op) is GlobalVar:
            return self.global_call(call, args, lets)
        return nodes.Call(self.visit(call.op, lets), args)
