"""Walks over programs: substitution with buffers, orders of visits, free variables, renewal, depth."""

from __future__ import annotations

from typing import Any

import pytest

from tvm import tir
from tvm.ir import assert_structural_equal, structural_equal, structural_hash
from tvm.script import tir as T
from tvm.support import deep
from tvm.tir import stmt_functor
from tvm.tir.stmt_functor import (
    free_vars,
    ir_transform,
    post_order_visit,
    pre_order_visit,
    renew_defs,
    substitute,
)


@T.prim_func
def program(a: T.handle, k: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "int32")
    p = T.allocate([8], "int32")
    B = T.decl_buffer((8,), "int32", data=p)
    for i in range(n):
        with T.block("B"):
            v = T.axis.spatial(n, i)
            C = T.alloc_buffer((4,), "int32")
            C[0] = A[v, k]
            B[v] = C[0]


def test_substitute_replaces_variables() -> None:
    x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
    assert structural_equal(substitute(x * 2 + y, {x: y}), y * 2 + y)
    assert substitute(x, {x: 3}).value == 3
    assert [type(e) for e in substitute([x, y], {x: y + 1})] == [tir.Add, tir.Var]


def test_substitute_returns_what_it_does_not_change() -> None:
    x = tir.Var("x", "int32")
    body = program.body
    assert substitute(body, {x: 3}) is body


def test_substitute_changes_buffers_wherever_they_are_named() -> None:
    A = program.buffer_map[program.params[0]]
    n = A.shape[0]
    body = substitute(program.body, {n: 16})
    buffers: dict[str, set[int]] = {}

    def collect(node: Any) -> None:
        if isinstance(node, tir.BufferLoad):
            buffers.setdefault(node.buffer.name, set()).add(id(node.buffer))

    post_order_visit(body, collect)
    new = next(b for b in _buffers_of(body) if b.name == "A")
    assert new is not A
    assert new.shape[0].value == 16
    assert all(len(ids) == 1 for ids in buffers.values())


def _buffers_of(stmt: Any) -> list[tir.Buffer]:
    found: dict[tir.Buffer, None] = {}
    post_order_visit(
        stmt, lambda n: found.setdefault(n.buffer) if isinstance(n, tir.BufferLoad) else None
    )
    return list(found)


def test_substitute_renames_pointers_at_their_allocation() -> None:
    pointer = _allocate(program.body).buffer_var
    new = pointer.replace(name="q")
    body = substitute(program.body, {pointer: new})
    assert _allocate(body).buffer_var is new
    assert pointer not in free_vars(body)


def _allocate(stmt: Any) -> Any:
    found = []
    post_order_visit(stmt, lambda n: found.append(n) if isinstance(n, tir.Allocate) else None)
    return found[0]


def test_orders_of_visits() -> None:
    x = tir.Var("x", "int32")
    expr = (x + 1) * (x + 1 + 2)
    after: list[str] = []
    post_order_visit(expr, lambda n: after.append(type(n).__name__))
    assert after == ["Var", "IntImm", "Add", "Add", "IntImm", "Add", "Mul"]
    before: list[str] = []
    pre_order_visit(expr, lambda n: before.append(type(n).__name__))
    assert before[0] == "Mul"


def test_pre_order_visit_leaves_out_children() -> None:
    x = tir.Var("x", "int32")
    seen: list[Any] = []
    pre_order_visit(tir.Evaluate(x + 1), lambda n: seen.append(n) or not isinstance(n, tir.Add))
    assert [type(n).__name__ for n in seen] == ["Evaluate", "Add"]


def test_ir_transform() -> None:
    before = tir.SeqStmt([tir.Evaluate(1), tir.Evaluate(2)])

    def replace(node: Any) -> Any:
        return tir.Evaluate(5) if node.value.value == 2 else None

    after = ir_transform(before, None, replace, ["tir.Evaluate"])
    assert [int(stmt.value) for stmt in after.seq] == [1, 5]
    assert after.seq[0] is before.seq[0]
    stopped = ir_transform(before, lambda n: n, lambda n: tir.Evaluate(0), None)
    assert stopped is before


def test_free_variables() -> None:
    x, y, z = (tir.Var(n, "int32") for n in "xyz")
    loop = tir.For(x, 0, y, 0, tir.Evaluate(x + z))
    assert free_vars(loop) == [y, z]
    assert free_vars(loop, [z]) == [y]
    assert free_vars(tir.Let(x, y, x + 1)) == [y]
    A = tir.decl_buffer((y,), "int32", "A")
    assert free_vars(tir.BufferStore(A, 1, [0])) == [A.data, y]
    assert free_vars(program) == []
    # a later argument says what an earlier one's extent is computed from
    a, b = tir.decl_buffer((y + 1, z), name="a"), tir.decl_buffer((y,), name="b")
    func = tir.PrimFunc([a.data, b.data], tir.Evaluate(0), buffer_map={a.data: a, b.data: b})
    assert free_vars(func) == []


def test_free_variables_of_launched_threads() -> None:
    axis = tir.IterVar((0, 8), "threadIdx.x", tir.IterVar.ThreadIndex, "threadIdx.x")
    stmt = tir.AttrStmt(axis, "thread_extent", 8, tir.Evaluate(axis.var + 1))
    assert free_vars(stmt) == []


def test_renewed_definitions_are_all_new() -> None:
    renewed = renew_defs(program)
    assert_structural_equal(program, renewed)
    assert structural_hash(program) == structural_hash(renewed)
    old, new = _variables_of(program), _variables_of(renewed)
    assert len(old) == len(new)
    assert not old & new


def _variables_of(func: tir.PrimFunc) -> set[int]:
    found: set[int] = {id(p) for p in func.params}
    post_order_visit(func.body, lambda n: found.add(id(n)) if isinstance(n, tir.Var) else None)
    return found


DEPTH = 50_000


def deep_sum() -> tuple[tir.Var, Any]:
    x = tir.Var("x", "int32")
    expr: Any = x
    for _ in range(DEPTH):
        expr = expr + 1
    return x, expr


def deep_block(innermost: tir.Stmt) -> tir.Stmt:
    stmt = innermost
    for _ in range(DEPTH):
        stmt = tir.LetStmt(tir.Var("t", "int32"), 1, stmt)
    return stmt


@pytest.mark.parametrize(
    "walk",
    [
        lambda x, node: substitute(node, {x: tir.Var("y", "int32")}),
        lambda x, node: substitute(node, {}),
        lambda x, node: post_order_visit(node, lambda n: None),
        lambda x, node: pre_order_visit(node, lambda n: None),
        lambda x, node: ir_transform(node, None, lambda n: None),
        lambda x, node: free_vars(node),
        lambda x, node: node.script(),
    ],
    ids=["substitute", "identity", "post_order", "pre_order", "transform", "free_vars", "script"],
)
def test_deep_programs(walk: Any) -> None:
    x, expr = deep_sum()
    walk(x, tir.Evaluate(expr))
    walk(x, deep_block(tir.Evaluate(x)))


def test_deep_functions_are_renewed() -> None:
    x, expr = deep_sum()
    func = tir.PrimFunc([x], deep_block(tir.Evaluate(expr)))
    assert stmt_functor.renew_defs(func).params[0] is not x


def test_deep_reducers() -> None:
    x, expr = deep_sum()
    one = tir.const(1)
    reducer = tir.CommReducer((x,), (tir.Var("y", "int32"),), (expr,), (one,))
    assert deep(reducer)((one,), (one,))[0].dtype == "int32"


def test_a_statement_that_becomes_several_joins_those_beside_it() -> None:
    one, two, three = [tir.Evaluate(tir.call_extern("int32", name)) for name in "abc"]
    nested = tir.SeqStmt([one, tir.SeqStmt([two, three])])
    assert list(nested.seq) == [one, two, three]

    def doubled(node: Any) -> Any:
        return tir.SeqStmt([three, two]) if node is one else None

    rewritten = tir.stmt_functor.ir_transform(tir.SeqStmt([one, two]), doubled, None)
    assert list(rewritten.seq) == [three, two, two]
