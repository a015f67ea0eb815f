"""The analyses with short answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tir.transform.programs import function, loop, store
from tvm import te, tir
from tvm.error import LoweringError
from tvm.ir import IRModule
from tvm.script import tir as T
from tvm.tir import analysis
from tvm.tir.expr import CallEffectKind, IterVar, Range
from tvm.tir.stmt import (
    Allocate,
    Block,
    BlockRealize,
    DeclBuffer,
    Evaluate,
    IfThenElse,
    SeqStmt,
    Stmt,
)

A = tir.decl_buffer((8, 8), name="A")
B = tir.decl_buffer((8, 8), name="B")


def test_effects_are_ordered() -> None:
    x = tir.Var("x", "float32")
    assert analysis.side_effect(tir.exp(x) + 1.0) == CallEffectKind.Pure
    assert analysis.side_effect(A[0, 0] + x) == CallEffectKind.ReadState
    assert analysis.side_effect(tir.call_extern("float32", "rand")) == CallEffectKind.UpdateState


def test_expressions_are_compared_by_their_variables() -> None:
    x, y = tir.Var("x"), tir.Var("x")
    assert analysis.expr_deep_equal(x + 1, x + 1)
    assert not analysis.expr_deep_equal(x + 1, y + 1)


def test_flops_count_values_and_not_indices() -> None:
    body = loop(8, lambda i: loop(8, lambda j: store(B, [i, j], A[i, j * 1] * 2.0 + 1.0)))
    assert analysis.estimate_tir_flops(body) == 128
    assert analysis.estimate_tir_flops(IRModule({"main": function([A, B], body)})) == 128


def test_flops_take_the_larger_branch() -> None:
    x = tir.Var("x", "bool")
    branches = IfThenElse(x, store(B, [0, 0], A[0, 0] + 1.0), store(B, [0, 0], A[0, 0]))
    assert analysis.estimate_tir_flops(branches) == 1


def test_flops_of_loops_whose_extent_is_not_known_count_once() -> None:
    n = tir.Var("n")
    body = loop(n, lambda i: loop(4, lambda j: store(B, [i, j], A[i, j] + 1.0)))
    assert analysis.estimate_tir_flops(body) == 4


def test_flops_are_neither_conditions_nor_intrinsics() -> None:
    def value(i: tir.PrimExpr) -> tir.PrimExpr:
        return tir.if_then_else(i % 2 == 0, tir.exp(A[i, 0] - 1.0), tir.const(0, "float32"))

    body = loop(8, lambda i: IfThenElse(i % 3 == 1, store(B, [i, 0], value(i))))
    assert analysis.estimate_tir_flops(body) == 8


def test_functions_may_tell_their_flops() -> None:
    body = loop(8, lambda i: store(B, [i, 0], A[i, 0] + 1.0))
    func = function([A, B], body).with_attr("estimated_flops", 32)
    assert analysis.estimate_tir_flops(IRModule({"main": func})) == 32


def temporary(size: int, *inner: Stmt) -> Stmt:
    t = tir.decl_buffer((size,), name="t")
    body = SeqStmt([store(t, 0, A[0, 0]), *inner])
    return Allocate(t.data, "float32", [size], True, DeclBuffer(t, body))


def test_allocated_bytes_are_those_in_use_at_once() -> None:
    func = function([A], SeqStmt([temporary(100), temporary(10, temporary(50))]))
    assert analysis.calculate_allocated_bytes(func) == {"global": 400}
    assert analysis.calculate_allocated_bytes(IRModule({"f": func})) == {"f": {"global": 400}}
    assert analysis.calculate_workspace_bytes(func, 256) == 512


def test_a_pure_function_writes_only_its_own_memory() -> None:
    n = tir.Var("n")
    pure = tir.PrimFunc([n], Evaluate(tir.ret(n + 1)))
    assert analysis.is_pure_function(pure) and analysis.assert_pure_function(pure)
    writes = function([A, B], store(B, [0, 0], A[0, 0]))
    assert not analysis.is_pure_function(writes)
    with pytest.raises(LoweringError, match="main is not pure: it writes buffer B"):
        analysis.assert_pure_function(writes)
    assert analysis.is_pure_function(function([A], temporary(4)))


def blocks() -> tuple[tir.PrimFunc, Block]:
    def at(i: tir.Var) -> Stmt:
        v = IterVar(Range(0, 4), "v", IterVar.DataPar)
        inner = loop(3, lambda j: store(B, [v.var, j + 2], A[v.var * 2, j] + A[v.var * 2 + 1, j]))
        found.append(Block([v], [], [], "work", inner))
        return BlockRealize([i], True, found[0])

    found: list[Block] = []
    func = function([A, B], loop(4, at))
    return func, found[0]


def test_access_regions_are_boxes_over_inner_loops() -> None:
    _, block = blocks()
    reads, writes, opaque = analysis.get_block_access_region(block, {A.data: A, B.data: B})
    v = block.iter_vars[0].var
    (read,), (write,) = reads, writes
    assert opaque == []
    assert_region(read, A, [(v * 2, 2), (0, 3)])
    assert_region(write, B, [(v, 1), (2, 3)])


def assert_region(region: Any, buffer: tir.Buffer, expected: list[Any]) -> None:
    assert region.buffer is buffer
    for found, (start, extent) in zip(region.region, expected, strict=True):
        assert analysis.expr_deep_equal(found.min, tir.expr.as_expr(start)), found
        assert int(found.extent) == extent


def test_opaque_accesses_cover_the_whole_buffer() -> None:
    body = Evaluate(tir.call_extern("int32", "f", B.data))
    block = Block([], [], [], "opaque", body)
    reads, writes = analysis.get_block_read_write_region(block, {B.data: B})
    assert_region(reads[0], B, [(0, 8), (0, 8)])
    assert_region(writes[0], B, [(0, 8), (0, 8)])


def test_common_ancestor_of_accesses() -> None:
    n = 8
    a = te.placeholder((n, n), name="a")
    b = te.compute((n, n), lambda i, j: a[i, j] + 1.0, name="b")
    c = te.compute((n, n), lambda i, j: b[i, j] * 2.0, name="c")
    func = te.create_prim_func([a, c])
    places = {
        buffer.name: place for buffer, place in analysis.detect_buffer_access_lca(func).items()
    }
    assert isinstance(places["b"], Block) and places["b"].name_hint == "root"
    assert isinstance(places["a"], Block) and places["a"].name_hint == "b"


def test_global_memory_is_accessed_by_all_blocks_of_a_kernel() -> None:
    @T.prim_func
    def func(A: T.Buffer((4, 8), "float32")):
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                with T.block("A"):
                    i, j = T.axis.remap("SS", [bx, tx])
                    A[i, j] = T.float32(1)

    place = analysis.detect_buffer_access_lca(func)[func.buffer_map[func.params[0]]]
    assert place is func.body.block.body
