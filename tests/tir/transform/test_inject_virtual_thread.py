"""Virtual threads become loops."""

from __future__ import annotations

import tvm
from tests.codegen.gpu.programs import matmul
from tvm import te, tir
from tvm.tir.stmt import AttrStmt
from tvm.tir.transform import InjectVirtualThread

from .checks import apply, assert_transforms
from .programs import UNROLLED, function, loop, store

A = tir.decl_buffer((8,), name="A")


def threads(var: tir.Var, first: int) -> AttrStmt:
    axis = tir.IterVar(None, var, tir.IterVar.ThreadIndex, "vthread")
    return AttrStmt(axis, "virtual_thread", 2, store(A, var + first, 1.0))


def test_virtual_threads_run_one_after_the_other() -> None:
    before = function([A], threads(tir.Var("v", "int32"), 0))
    after = function([A], loop(2, lambda v: store(A, v, 1.0), UNROLLED, "v"))
    assert_transforms(InjectVirtualThread(), before, after)


def test_threads_in_two_regions_get_a_variable_each() -> None:
    var = tir.Var("v", "int32")
    func = function([A], tir.SeqStmt([threads(var, 0), threads(var, 2)]))
    assert tir.analysis.verify_ssa(apply(InjectVirtualThread(), func))


def test_threads_in_both_parts_of_a_loop_are_lowered() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=4)
    _, threads = s[b].split(inner, factor=2)
    s[b].bind(threads, te.thread_axis("vthread"))
    module = tvm.lower(s, [a, b])
    assert tir.analysis.verify_ssa(module["main"])
    assert outer.var.name == "i.outer"


def test_only_what_depends_on_the_thread_is_repeated() -> None:
    """Shared memory is filled once; each virtual thread has a part of the local memory of its own."""
    program = matmul()
    text = str(tvm.lower(program.schedule, program.args))
    assert text.count("A_shared_1[") == 1 + 4 and text.count("B_shared_1[") == 1 + 4
    assert 'C_local = T.decl_buffer((16,), scope="local")' in text
