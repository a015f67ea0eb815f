"""Visitors and mutators that programs write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm.tir.expr as expressions
import tvm.tir.stmt as statements
from tests.tir.schedule.programs import matmul_relu, softmax
from tests.tir.schedule.random_traces import run
from tvm import tir
from tvm.ir.expr import PrimExpr
from tvm.script import tir as T
from tvm.tir.functor import PyStmtExprMutator, PyStmtExprVisitor, mutator, visitor


@visitor
class Counter(PyStmtExprVisitor):
    def __init__(self) -> None:
        self.loops: list[str] = []
        self.loads = 0

    def visit_for_(self, op: tir.For) -> None:
        self.loops.append(op.loop_var.name)
        super().visit_for_(op)

    def visit_buffer_load_(self, op: tir.BufferLoad) -> None:
        self.loads += 1
        for index in op.indices:
            self.visit_expr(index)


def test_a_visitor_sees_statements_and_expressions() -> None:
    counter = Counter()
    counter.visit_stmt(matmul_relu.body)
    found: list[Any] = []
    tir.stmt_functor.post_order_visit(matmul_relu.body, found.append)
    assert counter.loops == ["i", "j", "k", "i", "j"]
    assert counter.loads == len([node for node in found if isinstance(node, tir.BufferLoad)])


@mutator
class Doubler(PyStmtExprMutator):
    def visit_buffer_store_(self, op: tir.BufferStore) -> tir.Stmt:
        op = super().visit_buffer_store_(op)
        return tir.BufferStore(op.buffer, self.visit_expr(op.value) * 2.0, op.indices)


@mutator
class Same(PyStmtExprMutator):
    pass


def test_a_mutator_rewrites_programs() -> None:
    @T.prim_func
    def double(A: T.Buffer((4,), "float32")) -> None:
        for i in range(4):
            A[i] = A[i] + T.float32(1)

    doubled = double.with_body(Doubler().visit_stmt(double.body))
    [before], [after] = run(double), run(doubled)
    np.testing.assert_allclose(after, 2 * before)


def test_what_is_not_changed_is_returned_itself() -> None:
    assert Same().visit_stmt(softmax.body) is softmax.body


def test_each_class_of_nodes_has_a_method() -> None:
    for module, family in ((statements, tir.Stmt), (expressions, PrimExpr)):
        for cls in vars(module).values():
            if isinstance(cls, type) and issubclass(cls, family) and "Expr" not in cls.__name__:
                if cls is not family and cls.__module__ == module.__name__:
                    assert hasattr(PyStmtExprVisitor, f"{cls.visit_name}_"), cls


def test_what_visitors_require() -> None:
    with pytest.raises(TypeError, match="visit_expr requires a PrimExpr, got a For"):
        Counter().visit_expr(tir.For(tir.Var("i", "int32"), 0, 1, 0, tir.Evaluate(0)))
    with pytest.raises(TypeError, match="mutator requires a class derived from PyStmtExprMutator"):
        mutator(Counter)
