"""Passes that follow what is stored and read: programs drawn at random, and those that they are for."""

from __future__ import annotations

import random
from typing import Any

import pytest

import tvm
from tvm import tir
from tvm.ir.transform import Pass, PassContext
from tvm.script import tir as T
from tvm.tir.stmt import IfThenElse, SeqStmt, Stmt
from tvm.tir.transform import ReduceBranchingThroughOvercompute, RemoveNoOp, Simplify

from .checks import apply, assert_same_results
from .programs import function, loop, store

SIZE = 12
A = tir.decl_buffer((SIZE,), "int32", name="A")
B = tir.decl_buffer((SIZE,), "int32", name="B")

OPTIONS: dict[str, tuple[Pass, dict[str, Any]]] = {
    "tir.Simplify": (
        Simplify(),
        {
            "propagate_knowns_to_prove_conditional": True,
            "propagate_knowns_to_simplify_expressions": True,
        },
    ),
    "tir.RemoveNoOp": (RemoveNoOp(), {"use_dataflow_analysis": True}),
    "tir.ReduceBranchingThroughOvercompute": (
        ReduceBranchingThroughOvercompute(),
        {"use_dataflow_analysis": True},
    ),
}


def run(name: str, func: tir.PrimFunc) -> tir.PrimFunc:
    transform, options = OPTIONS[name]
    with PassContext(config={name: options}):
        return apply(transform, func)


class Programs:
    """Loops over two buffers: copies, constants and sums, guarded or not, in any order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def program(self) -> tir.PrimFunc:
        return function([A, B], self.block([], 3))

    def block(self, variables: list[tir.Var], depth: int) -> Stmt:
        count = self.random.randint(1, 3)
        stmts = [self.statement(variables, depth) for _ in range(count)]
        return stmts[0] if count == 1 else SeqStmt(stmts)

    def statement(self, variables: list[tir.Var], depth: int) -> Stmt:
        kind = self.random.choice(["loop", "loop", "if", "store", "store"])
        if kind == "loop" and depth and len(variables) < 2:
            start, extent = self.random.choice([(0, SIZE), (0, 6), (3, 5), (0, 1)])
            var = tir.Var("i", "int32")
            return tir.For(var, start, extent, 0, self.block([*variables, var], depth - 1))
        if kind == "if" and depth:
            other = self.block(variables, 0) if self.random.random() < 0.3 else None
            return IfThenElse(self.condition(variables), self.block(variables, depth - 1), other)
        return store(self.random.choice([A, B]), self.index(variables), self.value(variables))

    def index(self, variables: list[tir.Var]) -> Any:
        if not variables or self.random.random() < 0.15:
            return self.random.randrange(SIZE)
        var = self.random.choice(variables)
        form = self.random.choice(["i", "i", "i", "shift", "reverse", "double", "sum"])
        index = {
            "i": var,
            "shift": var + self.random.randint(1, 3),
            "reverse": SIZE - 1 - var,
            "double": var * 2,
            "sum": variables[0] * 4 + variables[-1],
        }[form]
        return index if form in ("i", "reverse") else index % SIZE

    def value(self, variables: list[tir.Var]) -> Any:
        form = self.random.choice(["constant", "constant", "variable", "load", "sum"])
        if form == "variable" and variables:
            return variables[-1]
        if form in ("load", "sum"):
            load = self.random.choice([A, B])[self.index(variables)]
            return load if form == "load" else load + self.random.randint(0, 1)
        return tir.const(self.random.randint(0, 2), "int32")

    def condition(self, variables: list[tir.Var]) -> Any:
        limit = self.random.randint(0, 8)
        if not variables or self.random.random() < 0.4:
            load = self.random.choice([A, B])[self.index(variables)]
            return load.equal(limit % 3) if self.random.random() < 0.6 else load < limit
        var = self.random.choice(variables)
        return self.random.choice([var < limit, var >= limit, var.equal(limit)])


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("name", OPTIONS)
def test_random_programs_compute_the_same(name: str, seed: int) -> None:
    before = Programs(seed).program()
    assert_same_results(before, run(name, before), SIZE, SIZE)


def test_a_value_is_known_until_its_cell_is_written() -> None:
    @T.prim_func
    def before(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            A[i] = i * 2
        A[3] = B[3]
        for i in range(16):
            B[i] = T.if_then_else(A[i] == i * 2, 1, 0)
        if A[4] == 8:
            B[4] = 7

    found = run("tir.Simplify", before).body
    assert isinstance(found.seq[-1], tir.BufferStore)  # A[4] is known
    assert isinstance(found.seq[2].body.value, tir.Call)  # A[3] is not


def test_what_a_condition_says_of_memory_holds_in_its_branch() -> None:
    @T.prim_func
    def before(A: T.Buffer((1,), "int32"), n: T.int32):
        if A[0] == n:
            A[0] = A[0] + 2
            if A[0] == n:
                A[0] = 5

    @T.prim_func
    def after(A: T.Buffer((1,), "int32"), n: T.int32):
        if A[0] == n:
            A[0] = n + 2

    removed = run("tir.RemoveNoOp", run("tir.Simplify", before))
    tvm.ir.assert_structural_equal(removed.body, after.body, map_free_vars=True)


def test_stores_over_a_larger_region_hide_earlier_ones() -> None:
    def filled(buffer: tir.Buffer, start: int, extent: int, value: int) -> Stmt:
        var = tir.Var("i", "int32")
        return tir.For(var, start, extent, 0, store(buffer, var, value))

    before = function(
        [A, B], SeqStmt([filled(A, 2, 6, 1), filled(B, 0, 4, 3), filled(A, 0, 10, 2)])
    )
    after = function([A, B], SeqStmt([filled(B, 0, 4, 3), filled(A, 0, 10, 2)]))
    tvm.ir.assert_structural_equal(run("tir.RemoveNoOp", before), after)
    kept = function([A, B], SeqStmt([filled(A, 0, 10, 1), filled(A, 2, 6, 2)]))
    assert run("tir.RemoveNoOp", kept) is kept


def test_a_branch_goes_if_its_statement_does_nothing_elsewhere() -> None:
    def summed(limit: int) -> tir.PrimFunc:
        step = lambda i: IfThenElse(i < limit, store(B, 0, B[0] + A[i]))  # noqa: E731
        zeros = loop(SIZE, lambda i: IfThenElse(i >= 8, store(A, i, 0)))
        return function([A, B], SeqStmt([zeros, loop(SIZE, step)]))

    name = "tir.ReduceBranchingThroughOvercompute"
    found = run(name, summed(8))
    assert isinstance(found.body.seq[1].body, tir.BufferStore)
    assert_same_results(summed(8), found, SIZE, SIZE)
    assert isinstance(run(name, summed(6)).body.seq[1].body, IfThenElse)


def test_a_branch_that_guards_an_access_stays() -> None:
    step = loop(SIZE + 2, lambda i: IfThenElse(i < SIZE, store(A, i, 1)))
    rest = loop(SIZE + 2, lambda i: IfThenElse(i < SIZE, store(A, i, 2)))
    before = function([A], SeqStmt([step, rest]))
    assert run("tir.ReduceBranchingThroughOvercompute", before) is before
