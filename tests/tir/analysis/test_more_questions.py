from __future__ import annotations

import pytest

import tvm
from tvm import te, tir
from tvm.error import LoweringError, TVMError
from tvm.ir import IRModule
from tvm.ir.type import FuncType, PrimType, TupleType
from tvm.tir import analysis
from tvm.tir.stmt import IfThenElse

from ..transform.programs import function, loop, store

A = tir.decl_buffer((2, 3), name="A")
B = tir.decl_buffer((8,), name="B")


def kernel(threads: int, vthreads: int = 1) -> tir.PrimFunc:
    a = te.placeholder((1024,), name="a")
    b = te.compute((1024,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], threads)
    outer, virtual = s[b].split(outer, vthreads)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(virtual, te.thread_axis("vthread"))
    s[b].bind(inner, te.thread_axis("threadIdx.x"))
    cached = s.cache_read(a, "shared", [b])
    s[cached].compute_at(s[b], outer)
    mod = tvm.driver.schedule_to_module(s, [a, b])
    return tir.transform.StorageFlatten(64)(mod)["main"]


@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        ({"max_threads_per_block": 64}, True),
        ({"max_threads_per_block": 63}, False),
        ({"max_thread_x": 63}, False),
        ({"max_thread_y": 1}, True),
        ({"max_shared_memory_per_block": 64 * 4}, True),
        ({"max_shared_memory_per_block": 64 * 4 - 1}, False),
        ({"max_kernels": 1, "max_vector_bytes": 16}, True),
    ],
)
def test_kernels_are_compared_with_limits(limits: dict[str, int], fits: bool) -> None:
    assert analysis.verify_gpu_code(kernel(64), limits) is fits


def test_virtual_threads_are_limited_too() -> None:
    assert not analysis.verify_gpu_code(kernel(64, 4), {"max_vthread": 2})
    with pytest.raises(TVMError, match="got 'max_thread'"):
        analysis.verify_gpu_code(kernel(64), {"max_thread": 2})


def test_accesses_out_of_bounds_are_rejected() -> None:
    good = function([A, B], loop(2, lambda i: store(B, i, A[i, 2])))
    assert analysis.OOBChecker()(IRModule({"f": good})) is not None
    for bad in (
        loop(3, lambda i: store(B, i, A[i, 2])),
        store(B, 8, 1.0),
        loop(8, lambda i: store(B, i - 1, 1.0)),
    ):
        with pytest.raises(LoweringError, match="accesses are out of bounds"):
            analysis.OOBChecker()(IRModule({"f": function([A, B], bad)}))


def test_a_condition_keeps_accesses_within_bounds() -> None:
    guarded = loop(10, lambda i: IfThenElse(i < 8, store(B, i, 1.0)))
    mod = IRModule({"f": function([B], guarded)})
    assert analysis.OOBChecker()(mod) is mod


def test_the_largest_reduction_is_the_anchor() -> None:
    a = te.placeholder((16, 16), name="a")
    k, m = te.reduce_axis((0, 16), "k"), te.reduce_axis((0, 16), "m")
    product = te.compute((16, 16), lambda i, j: te.sum(a[i, k] * a[k, j], axis=k), name="product")
    total = te.compute((16,), lambda i: te.max(product[i, m], axis=m), name="total")
    func = te.create_prim_func([a, total])
    assert analysis.find_anchor_block(IRModule({"main": func})).name_hint == "product"
    plain = te.compute((16, 16), lambda i, j: a[i, j] + 1.0)
    assert analysis.find_anchor_block(IRModule({"main": te.create_prim_func([a, plain])})) is None


def test_memory_of_arguments_and_results_is_told_and_changed() -> None:
    func = function([A, B], loop(2, lambda i: store(B, i, A[i, 0])))
    kind = FuncType([PrimType("float32")], PrimType("float32"))
    scopes = analysis.get_prim_func_arg_and_result_memory_constraints(func, kind)
    assert scopes == ["global", "global"]
    apply = analysis.apply_prim_func_arg_and_result_memory_constraints
    moved = apply(func, kind, ["", "shared"])
    assert analysis.get_prim_func_arg_and_result_memory_constraints(moved, kind) == [
        "global", "shared",
    ]  # fmt: skip
    assert apply(func, kind, scopes) is func
    with pytest.raises(TVMError, match="needed for 3 arguments and results, got 2"):
        apply(func, FuncType([PrimType("float32")], TupleType([kind, kind])), ["", ""])


def test_passes_that_compact_allocations_are_listed() -> None:
    names = [item.info.name for item in analysis.get_vtcm_compaction_passes()]
    assert names[0] == "tir.LowerInitBlock" and names[-1] == "tir.StorageRewrite"
