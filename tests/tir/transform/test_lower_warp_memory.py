from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import LoweringError
from tvm.target import Target
from tvm.tir.stmt import Allocate, AttrStmt, BufferStore, Evaluate, IfThenElse, SeqStmt
from tvm.tir.transform import InjectPTXAsyncCopy, LowerWarpMemory

from .checks import apply, assert_unchanged
from .lockstep import run_block
from .programs import function, loop, store

GPU = Target("cuda -thread_warp_size=32", host="llvm")
A = tir.decl_buffer((128,), name="A")
B = tir.decl_buffer((128,), name="B")


def warp_function(
    size: int, body: Callable[[tir.Buffer, tir.Var], tir.Stmt], width: int = 32
) -> tir.PrimFunc:
    memory = tir.Var("W", tir.expr.pointer_type("float32", "warp"))
    view = tir.decl_buffer((size,), name="W", data=memory, scope="warp")
    axis = tir.IterVar((0, width), "tx", tir.IterVar.ThreadIndex, "threadIdx.x")
    inside = Allocate(memory, "float32", [size], True, body(view, axis.var))
    func = function([A, B], AttrStmt(axis, "thread_extent", width, inside))
    return func.with_attr("target", GPU)


def check(func: tir.PrimFunc, expected: Callable[[np.ndarray], np.ndarray], width: int = 32) -> str:
    lowered = apply(LowerWarpMemory(), func)
    a = np.arange(128, dtype="float32")
    b = np.zeros(128, "float32")
    run_block(lowered, {"threadIdx.x": width}, a, b)
    wanted = expected(a)
    np.testing.assert_array_equal(b[: len(wanted)], wanted)
    assert '"warp"' not in str(lowered)
    return str(lowered)


def test_threads_ask_each_other_for_elements() -> None:
    func = warp_function(32, lambda w, tx: SeqStmt([store(w, tx, A[tx]), store(B, tx, w[31 - tx])]))
    text = check(func, lambda a: a[31::-1])
    assert "tvm_warp_shuffle" in text and "(1,)" in text


def test_own_elements_need_no_shuffle() -> None:
    func = warp_function(
        32, lambda w, tx: SeqStmt([store(w, tx, A[tx]), store(B, tx, w[tx] + 1.0)])
    )
    assert "shuffle" not in check(func, lambda a: a[:32] + 1)


def test_threads_hold_runs_of_elements_and_several_of_them() -> None:
    def body(w: tir.Buffer, tx: tir.Var) -> tir.Stmt:
        fill = loop(
            2, lambda g: loop(2, lambda r: store(w, g * 32 + tx * 2 + r, A[g * 32 + tx * 2 + r]))
        )
        read = loop(4, lambda k: store(B, k * 16 + tx, w[k * 16 + 3]))
        return SeqStmt([fill, read])

    text = check(warp_function(64, body, 16), lambda a: np.repeat(a[3:64:16], 16), 16)
    assert "(4,)" in text


def test_the_width_may_be_a_part_of_a_warp() -> None:
    func = warp_function(
        8, lambda w, tx: SeqStmt([store(w, tx, A[tx]), store(B, tx, w[(tx + 1) % 8])]), 8
    )
    assert ", 8, 32)" in check(func, lambda a: np.roll(a[:8], -1), 8)


@pytest.mark.parametrize("size, width, body, message", [
    (32, 32, lambda w, tx: SeqStmt([store(w, tx, 1.0), store(w, tx * 2, 1.0)]), "one distance"),
    (48, 32, lambda w, tx: store(w, tx, 1.0), "a multiple of 32"),
    (32, 24, lambda w, tx: store(w, tx, 1.0), "that divides 32, got 24"),
    (32, 32, lambda w, tx: store(w, tx * tx, 1.0), "multiples of tx"),
    (32, 32, lambda w, tx: store(w, (tx + 1) , 1.0), "its own part"),
])  # fmt: skip
def test_what_cannot_be_divided_is_rejected(size: int, width: int, body: Any, message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        apply(LowerWarpMemory(), warp_function(size, body, width))


def test_the_size_of_a_warp_is_the_targets() -> None:
    func = warp_function(32, lambda w, tx: store(w, tx, 1.0)).without_attr("target")
    with pytest.raises(LoweringError, match="needs the function's target"):
        apply(LowerWarpMemory(), func)
    assert_unchanged(LowerWarpMemory(), function([B], store(B, 0, 1.0)))


def test_caches_of_schedules_become_shuffles() -> None:
    m = 64
    a = te.placeholder((m,), name="A")
    b = te.compute((m,), lambda i: a[i // 32 * 32 + (i + 1) % 32], name="B")
    s = te.create_schedule(b.op)
    cache = s.cache_read(a, "warp", [b])
    block, thread = s[b].split(b.op.axis[0], 32)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    s[cache].compute_at(s[b], block)
    _, inner = s[cache].split(cache.op.axis[0], 32)
    s[cache].bind(inner, te.thread_axis("threadIdx.x"))
    mod = tvm.lower(s, [a, b])
    func = tir.transform.Apply(lambda f: f.with_attr("target", GPU))(mod)["main"]
    text = str(apply(LowerWarpMemory(), func))
    assert "tvm_warp_shuffle" in text and '"warp"' not in text


# ---- asynchronous copies

S = tir.decl_buffer((64,), name="S", scope="shared")


def copied(stmt: tir.Stmt) -> tir.PrimFunc:
    scope = AttrStmt(tir.IntImm("int32", 0), "async_scope", 1, stmt)
    return apply(InjectPTXAsyncCopy(), function([A, S], scope))


def arguments(stmt: tir.Stmt) -> list[str]:
    """Those of the one instruction that copies."""
    calls: list[tir.Call] = []

    def note(node: Any) -> None:
        if isinstance(node, tir.Call) and node.op.name == "tir.ptx_cp_async":
            calls.append(node)

    tir.stmt_functor.post_order_visit(copied(stmt).body, note)
    (call,) = calls
    assert call.args[0] is S.data and call.args[2] is A.data
    return [str(call.args[k]) for k in range(len(call.args)) if k not in (0, 2)]


def test_copies_become_instructions() -> None:
    dense = BufferStore(S, A[tir.Ramp(8, 1, 4)], [tir.Ramp(4, 1, 4)])
    assert arguments(dense) == ["4", "8", "16"]
    assert arguments(loop(8, lambda i: store(S, i, A[i * 2]))) == ["i", "i * 2", "4"]


def test_copies_under_conditions_pass_them_on() -> None:
    stmt = loop(8, lambda i: store(S, i, tir.if_then_else(i < 4, A[i], 0.0)))
    assert arguments(stmt) == ["i", "i", "4", "i < 4"]


@pytest.mark.parametrize("stmt", [
    BufferStore(S, A[tir.Ramp(8, 2, 4)], [tir.Ramp(4, 1, 4)]),
    BufferStore(S, A[tir.Ramp(8, 1, 8)], [tir.Ramp(4, 1, 8)]),
    store(S, 0, tir.if_then_else(A[0] > 0.0, A[1], 1.0)),
    store(A, 0, S[0]),
    store(S, 0, A[0] + 1.0),
])  # fmt: skip
def test_other_stores_stay(stmt: tir.Stmt) -> None:
    assert not any(text in str(copied(stmt)) for text in ("ptx_cp_async", "async_scope"))


def test_outside_of_asynchronous_scopes_nothing_changes() -> None:
    func = function([A, S], SeqStmt([store(S, 0, A[0]), IfThenElse(A[0] > 0.0, Evaluate(1))]))
    assert_unchanged(InjectPTXAsyncCopy(), func)
