"""The classic visitors: one method a kind of expression, results memoised by identity.

Passes of this package walk with `traverse`, which no depth can overflow; these classes are
what programs derive from.
"""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.op import Op
from tvm.relay.adt import Clause, Match
from tvm.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relay.function import Function
from tvm.relay.traverse import post_order, with_operands
from tvm.support import deep

_METHODS = {
    Function: "visit_function",
    Call: "visit_call",
    Let: "visit_let",
    Var: "visit_var",
    GlobalVar: "visit_global_var",
    If: "visit_if",
    Tuple: "visit_tuple",
    TupleGetItem: "visit_tuple_getitem",
    Constant: "visit_constant",
    Op: "visit_op",
    RefCreate: "visit_ref_create",
    RefRead: "visit_ref_read",
    RefWrite: "visit_ref_write",
    Constructor: "visit_constructor",
    Match: "visit_match",
}


def _method_of(kind: type) -> str:
    for base in kind.__mro__:
        if base in _METHODS:
            return _METHODS[base]
    raise TVMError(f"ExprFunctor requires a relay expression, got {kind.__name__}")


class ExprFunctor:
    """Calls the method for the kind of an expression, once an expression."""

    def __init__(self) -> None:
        self.memo_map: dict[RelayExpr, Any] = {}

    def visit(self, expr: RelayExpr) -> Any:
        """The result for `expr`; computed at the first visit."""
        if expr in self.memo_map:
            return self.memo_map[expr]
        if not self.memo_map:
            result = deep(getattr(self, _method_of(type(expr))))(expr)
        else:
            result = getattr(self, _method_of(type(expr)))(expr)
        self.memo_map[expr] = result
        return result

    def visit_function(self, _: Function) -> Any:
        raise NotImplementedError

    def visit_let(self, _: Let) -> Any:
        raise NotImplementedError

    def visit_call(self, _: Call) -> Any:
        raise NotImplementedError

    def visit_var(self, _: Var) -> Any:
        raise NotImplementedError

    def visit_type(self, typ: Any) -> Any:
        return typ

    def visit_if(self, _: If) -> Any:
        raise NotImplementedError

    def visit_tuple(self, _: Tuple) -> Any:
        raise NotImplementedError

    def visit_tuple_getitem(self, _: TupleGetItem) -> Any:
        raise NotImplementedError

    def visit_global_var(self, _: GlobalVar) -> Any:
        raise NotImplementedError

    def visit_op(self, _: Op) -> Any:
        raise NotImplementedError

    def visit_constant(self, _: Constant) -> Any:
        raise NotImplementedError

    def visit_ref_create(self, _: RefCreate) -> Any:
        raise NotImplementedError

    def visit_ref_write(self, _: RefWrite) -> Any:
        raise NotImplementedError

    def visit_ref_read(self, _: RefRead) -> Any:
        raise NotImplementedError

    def visit_constructor(self, _: Constructor) -> Any:
        raise NotImplementedError

    def visit_match(self, _: Match) -> Any:
        raise NotImplementedError


class ExprVisitor(ExprFunctor):
    """Visits everything below an expression; override what interests you."""

    def visit_tuple(self, tup: Tuple) -> None:
        for field in tup.fields:
            self.visit(field)

    def visit_call(self, call: Call) -> None:
        self.visit(call.op)
        for arg in call.args:
            self.visit(arg)

    def visit_var(self, var: Var) -> None:
        del var

    def visit_let(self, let: Let) -> None:
        self.visit(let.var)
        self.visit(let.value)
        self.visit(let.body)

    def visit_function(self, fn: Function) -> None:
        for param in fn.params:
            self.visit(param)
        self.visit(fn.body)

    def visit_if(self, i: If) -> None:
        self.visit(i.cond)
        self.visit(i.true_branch)
        self.visit(i.false_branch)

    def visit_global_var(self, gv: GlobalVar) -> None:
        del gv

    def visit_constructor(self, c: Constructor) -> None:
        del c

    def visit_op(self, op: Op) -> None:
        del op

    def visit_constant(self, const: Constant) -> None:
        del const

    def visit_ref_create(self, r: RefCreate) -> None:
        self.visit(r.value)

    def visit_ref_read(self, r: RefRead) -> None:
        self.visit(r.ref)

    def visit_ref_write(self, r: RefWrite) -> None:
        self.visit(r.ref)
        self.visit(r.value)

    def visit_tuple_getitem(self, t: TupleGetItem) -> None:
        self.visit(t.tuple_value)

    def visit_match(self, m: Match) -> None:
        self.visit(m.data)
        for clause in m.clauses:
            self.visit(clause.rhs)


class ExprMutator(ExprFunctor):
    """Rebuilds an expression; a node none of whose operands changed is returned itself."""

    def visit_function(self, fn: Function) -> RelayExpr:
        return with_operands(fn, [self.visit(p) for p in fn.params] + [self.visit(fn.body)])

    def visit_let(self, let: Let) -> RelayExpr:
        return with_operands(
            let, [self.visit(let.var), self.visit(let.value), self.visit(let.body)]
        )

    def visit_call(self, call: Call) -> RelayExpr:
        return with_operands(call, [self.visit(call.op)] + [self.visit(arg) for arg in call.args])

    def visit_var(self, var: Var) -> RelayExpr:
        return var

    def visit_global_id(self, global_var: GlobalVar) -> RelayExpr:
        return global_var

    def visit_if(self, ite: If) -> RelayExpr:
        return with_operands(
            ite,
            [self.visit(ite.cond), self.visit(ite.true_branch), self.visit(ite.false_branch)],
        )

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        return with_operands(tup, [self.visit(field) for field in tup.fields])

    def visit_tuple_getitem(self, op: TupleGetItem) -> RelayExpr:
        tuple_value = self.visit(op.tuple_value)
        if tuple_value is op.tuple_value:
            return op
        return TupleGetItem(tuple_value, op.index, op.span)

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        return gvar

    def visit_op(self, op: Op) -> RelayExpr:
        return op

    def visit_constant(self, const: Constant) -> RelayExpr:
        return const

    def visit_constructor(self, con: Constructor) -> RelayExpr:
        return con

    def visit_match(self, m: Match) -> RelayExpr:
        clauses = tuple([Clause(clause.lhs, self.visit(clause.rhs)) for clause in m.clauses])
        return Match(self.visit(m.data), clauses, m.complete, m.span)

    def visit_ref_create(self, r: RefCreate) -> RelayExpr:
        return with_operands(r, [self.visit(r.value)])

    def visit_ref_write(self, r: RefWrite) -> RelayExpr:
        return with_operands(r, [self.visit(r.ref), self.visit(r.value)])

    def visit_ref_read(self, r: RefRead) -> RelayExpr:
        return with_operands(r, [self.visit(r.ref)])


__all__ = ["ExprFunctor", "ExprMutator", "ExprVisitor", "post_order"]
