"""The classic visitors: one method a kind of expression, results memoised by identity.

Passes of this package walk with `traverse`, which no depth can overflow; these classes are
what programs derive from.
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.visitor import Functor
from tvm.relay.adt import Clause, Match
from tvm.relay.expr import TupleGetItem
from tvm.relay.traverse import operands, post_order, with_operands
from tvm.support import deep
from tvm.support.later import names_from_above

__getattr__ = names_from_above(__name__)


class ExprFunctor(Functor):
    """Calls the method for the kind of an expression, once an expression."""

    _nodes = "a relay expression"

    def __init__(self) -> None:
        self.memo_map: dict[RelayExpr, Any] = {}

    def visit(self, expr: RelayExpr) -> Any:
        """The result for `expr`; computed at the first visit."""
        if expr in self.memo_map:
            return self.memo_map[expr]
        method = self._dispatch[type(expr)]
        assert method is not None, "every expression has a method"
        result = (method if self.memo_map else deep(method))(self, expr)
        self.memo_map[expr] = result
        return result

    def visit_tuple_get_item(self, item: TupleGetItem) -> Any:
        """By its classic name."""
        return self.visit_tuple_getitem(item)

    def _no_method(self, node: Any) -> Any:
        raise NotImplementedError

    def visit_type(self, typ: Any) -> Any:
        return typ

    visit_call = visit_function = visit_if = visit_let = visit_match = visit_tuple = _no_method
    visit_tuple_getitem = visit_ref_create = visit_ref_read = visit_ref_write = _no_method
    visit_constant = visit_constructor = visit_global_var = visit_op = visit_var = _no_method


class ExprVisitor(ExprFunctor):
    """Visits everything below an expression; override what interests you."""

    def _visit_operands(self, node: Any) -> Any:
        for operand in operands(node):
            self.visit(operand)

    def visit_match(self, node: Any) -> Any:
        self.visit(node.data)
        for clause in node.clauses:
            self.visit(clause.rhs)

    visit_call = visit_function = visit_if = visit_let = visit_tuple = _visit_operands
    visit_tuple_getitem = visit_ref_create = visit_ref_read = visit_ref_write = _visit_operands
    visit_constant = visit_constructor = visit_global_var = visit_op = visit_var = _visit_operands


class ExprMutator(ExprFunctor):
    """Rebuilds an expression; a node none of whose operands changed is returned itself."""

    def _rewrite_operands(self, node: Any) -> Any:
        return with_operands(node, [self.visit(operand) for operand in operands(node)])

    def visit_match(self, node: Any) -> Any:
        clauses = tuple([Clause(clause.lhs, self.visit(clause.rhs)) for clause in node.clauses])
        return Match(self.visit(node.data), clauses, node.complete, node.span)

    visit_call = visit_function = visit_if = visit_let = visit_tuple = _rewrite_operands
    visit_tuple_getitem = visit_ref_create = visit_ref_read = visit_ref_write = _rewrite_operands
    visit_constant = visit_constructor = visit_global_var = visit_op = visit_var = _rewrite_operands
    visit_global_id = _rewrite_operands


__all__ = ["ExprFunctor", "ExprMutator", "ExprVisitor", "post_order"]
