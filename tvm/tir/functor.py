"""Visitors and mutators of loop-level programs as programs write them in Python.

@visitor
class LoopCounter(PyStmtExprVisitor):
    def visit_for_(self, op):
        self.count += 1
        self.visit_stmt(op.body)

Methods are named after classes of nodes, with an underscore behind. The compiler's own are `tvm.ir.visitor`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node

from .stmt import Stmt

C = TypeVar("C", bound=type)


class _Functor(ABC):
    """What visitors and mutators share: the way from a node to the method of its class."""

    def _dispatch(self, node: Any, family: Any, what: str) -> Any:
        if not isinstance(node, family):
            raise TypeError(f"{what} requires a {family.__name__}, got a {type(node).__name__}")
        method: Callable[[Any], Any] = getattr(self, f"{node.visit_name}_")
        return method(node)

    @abstractmethod
    def _children(self, op: Any) -> Any:
        """What becomes of a node of which a program says nothing."""

    def _any(self, node: Any) -> Any:
        """A child: a statement, an expression, or a part such as a range or a region."""
        if isinstance(node, Stmt):
            return self.visit_stmt(node)
        if isinstance(node, PrimExpr):
            return self.visit_expr(node)
        return self._children(node) if isinstance(node, Node) else node

    def visit_stmt(self, stmt: Stmt) -> Any:
        """Visit a statement by the method of its class.

        Parameters
        ----------
        stmt : Stmt

        Raises
        ------
        TypeError
            If it is no statement.
        """
        return self._dispatch(stmt, Stmt, "visit_stmt")

    def visit_expr(self, expr: PrimExpr) -> Any:
        """Visit an expression by the method of its class.

        Parameters
        ----------
        expr : PrimExpr

        Raises
        ------
        TypeError
            If it is no expression.
        """
        return self._dispatch(expr, PrimExpr, "visit_expr")

    def _default(self, op: Any) -> Any:
        """The method of each class, unless a program writes another one."""
        return self._children(op)

    visit_let_stmt_ = visit_attr_stmt_ = visit_assert_stmt_ = visit_for_ = visit_while_ = _default
    visit_if_then_else_ = visit_buffer_store_ = visit_buffer_realize_ = visit_allocate_ = _default
    visit_allocate_const_ = visit_decl_buffer_ = visit_seq_stmt_ = visit_evaluate_ = _default
    visit_block_ = visit_block_realize_ = visit_prefetch_ = visit_producer_store_ = _default
    visit_producer_realize_ = _default

    visit_var_ = visit_size_var_ = visit_int_imm_ = visit_float_imm_ = visit_string_imm_ = _default
    visit_add_ = visit_sub_ = visit_mul_ = visit_div_ = visit_mod_ = visit_floor_div_ = _default
    visit_floor_mod_ = visit_min_ = visit_max_ = visit_eq_ = visit_ne_ = visit_lt_ = _default
    visit_le_ = visit_gt_ = visit_ge_ = visit_and_ = visit_or_ = visit_not_ = visit_cast_ = _default
    visit_select_ = visit_ramp_ = visit_broadcast_ = visit_shuffle_ = visit_let_ = _default
    visit_call_ = visit_buffer_load_ = visit_producer_load_ = visit_reduce_ = _default
    visit_iter_var_ = visit_any_ = _default


class PyStmtExprVisitor(_Functor):
    """The base of visitors; a method without more to do visits the children."""

    def _children(self, op: Any) -> None:
        for child in op.children():
            self._any(child)


class PyStmtExprMutator(_Functor):
    """The base of mutators; a method without more to do gives the node with its children rewritten.

    What has not changed is returned itself.
    """

    def _children(self, op: Any) -> Any:
        return op.map_children(self._any)


def visitor(cls: C) -> C:
    """Marks a visitor.

    Parameters
    ----------
    cls : type
        A class derived from `PyStmtExprVisitor`.

    Raises
    ------
    TypeError
        If it is another class.
    """
    return _marked("visitor", cls, PyStmtExprVisitor)


def mutator(cls: C) -> C:
    """Marks a mutator.

    Parameters
    ----------
    cls : type
        A class derived from `PyStmtExprMutator`.

    Raises
    ------
    TypeError
        If it is another class.
    """
    return _marked("mutator", cls, PyStmtExprMutator)


def _marked(name: str, cls: C, base: type) -> C:
    if not issubclass(cls, base):
        raise TypeError(f"{name} requires a class derived from {base.__name__}, got {cls.__name__}")
    return cls
