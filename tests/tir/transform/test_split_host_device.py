from __future__ import annotations

import pytest

import tvm
from tvm import te, tir
from tvm.error import LoweringError
from tvm.ir import IRModule
from tvm.ir.transform import Sequential
from tvm.target import Target
from tvm.tir.stmt import Evaluate
from tvm.tir.transform import (
    AnnotateDeviceRegions,
    BindTarget,
    LowerDeviceKernelLaunch,
    MakePackedAPI,
    MakeUnpackedAPI,
    MergeSharedMemoryAllocations,
    SplitHostDevice,
)

from .checks import apply, assert_unchanged
from .programs import function, store

CUDA = Target("cuda", host="llvm")


def bound() -> IRModule:
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="b")
    s = te.create_schedule(b.op)
    block, thread = s[b].split(b.op.axis[0], 64)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    return tvm.lower(s, [a, b], name="plus")


def split(mod: IRModule, target: Target = CUDA) -> IRModule:
    return Sequential([BindTarget(target), AnnotateDeviceRegions(), SplitHostDevice()])(mod)


def test_regions_of_threads_become_functions_of_the_device() -> None:
    mod = split(bound())
    assert sorted(g.name_hint for g in mod.functions) == ["plus", "plus_kernel"]
    kernel = mod["plus_kernel"]
    assert kernel.get_attr("target").kind.name == "cuda" and kernel.get_attr("target").host is None
    assert [p.dtype.is_handle for p in kernel.params][:2] == [True, True]
    assert "thread" not in str(mod["plus"].body) and "threadIdx.x" in str(kernel)


def test_kernels_are_launched_with_their_extents() -> None:
    mod = Sequential([MakePackedAPI(), LowerDeviceKernelLaunch()])(split(bound()))
    kernel, host = mod["plus_kernel"], mod["plus"]
    assert list(kernel.get_attr("tir.kernel_launch_params")) == ["blockIdx.x", "threadIdx.x"]
    assert int(kernel.get_attr("calling_conv")) == 2
    assert kernel.get_attr("global_symbol") == "plus_kernel"
    assert 'T.call_packed("plus_kernel", ' in str(host) and "(n + 63) // 64, 64)" in str(host)


def test_threads_on_a_cpu_are_rejected() -> None:
    with pytest.raises(LoweringError, match="thread binding needs a device target, got llvm"):
        split(bound(), Target("llvm"))


def test_functions_without_threads_are_not_split() -> None:
    b = tir.decl_buffer((8,), name="b")
    mod = BindTarget(Target("llvm"))(IRModule({"main": function([b], store(b, 0, 1.0))}))
    assert split(mod) is mod


def test_a_function_of_another_cpu_is_called_by_its_name() -> None:
    callee = tir.PrimFunc([tir.Var("x")], Evaluate(0)).with_attrs(
        {"target": Target("llvm -mcpu=skylake"), "global_symbol": "there"}
    )
    mod = IRModule({"callee": callee})
    gvar = mod.get_global_var("callee")
    caller = function([], Evaluate(tir.Call("void", gvar, [7])))
    mod["main"] = caller.with_attr("target", Target("llvm"))
    assert 'T.call_extern("void", "there", 7)' in str(LowerDeviceKernelLaunch()(mod)["main"])


def shared(name: str, scope: str) -> tuple[tir.Var, tir.Buffer]:
    pointer = tir.Var(name, tir.expr.pointer_type("float32", scope))
    return pointer, tir.decl_buffer((6,), name=name, data=pointer)


def test_dynamic_shared_memory_is_one_allocation() -> None:
    (p, s), (q, t) = shared("s", "shared.dyn"), shared("t", "shared.dyn")
    axis = tir.IterVar((0, 8), "tx", tir.IterVar.ThreadIndex, "threadIdx.x")
    body = tir.SeqStmt([store(s, 0, 1.0), store(t, 1, s[0])])
    for pointer in (q, p):
        body = tir.Allocate(pointer, "float32", [6], True, body)
    func = function([], tir.AttrStmt(axis, "thread_extent", 8, body))
    result = apply(MergeSharedMemoryAllocations(), func)
    merged = result.body.body
    assert merged.buffer_var.name == "buf_dyn_shmem" and int(merged.extents[0]) == 64
    stores = merged.body.seq
    assert [int(store.indices[0]) for store in stores] == [0, 9]
    assert_unchanged(MergeSharedMemoryAllocations(), result)


def kernel(*body: tir.Stmt, around: list[tir.Var], outside: bool = False) -> tir.PrimFunc:
    """A kernel of 8 threads, with shared memory of 6 numbers for each pointer."""
    axis = tir.IterVar((0, 8), "tx", tir.IterVar.ThreadIndex, "threadIdx.x")
    stmt: tir.Stmt = tir.SeqStmt(body)
    if outside:
        stmt = tir.AttrStmt(axis, "thread_extent", 8, stmt)
    for pointer in reversed(around):
        stmt = tir.Allocate(pointer, "float32", [6], True, stmt)
    return function([A], stmt if outside else tir.AttrStmt(axis, "thread_extent", 8, stmt))


A = tir.decl_buffer((8,), name="A")


def test_shared_memory_is_used_for_one_thing_after_another() -> None:
    (p, s), (q, t), (r, u) = [shared(name, "shared.dyn") for name in "stu"]
    first = [store(s, 0, 1.0), store(A, 0, s[0])]
    second = [store(t, 1, 2.0), store(u, 2, 3.0), store(A, 1, t[1] + u[2])]
    result = apply(MergeSharedMemoryAllocations(), kernel(*first, *second, around=[p, q, r]))
    merged = result.body.body
    assert int(merged.extents[0]) == 64
    assert [int(stmt.indices[0]) for stmt in merged.body.seq] == [0, 0, 1, 10, 1]


def test_one_buffer_may_lie_over_several() -> None:
    (p, s), (q, t) = [shared(name, "shared.dyn") for name in "st"]
    r = tir.Var("u", tir.expr.pointer_type("float32", "shared.dyn"))
    u = tir.decl_buffer((16,), name="u", data=r)
    body = [store(s, 0, 1.0), store(t, 0, 2.0), store(A, 0, s[0] + t[0]), store(u, 15, 3.0)]
    func = kernel(tir.Allocate(r, "float32", [16], True, tir.SeqStmt([*body, store(A, 1, u[15])])),
                  around=[p, q])  # fmt: skip
    merged = apply(MergeSharedMemoryAllocations(), func).body.body
    assert int(merged.extents[0]) == 64
    stores: list[tir.BufferStore] = []
    tir.stmt_functor.post_order_visit(
        merged.body, lambda n: stores.append(n) if isinstance(n, tir.BufferStore) else None
    )
    starts = [int(stmt.indices[0]) for stmt in stores]
    assert sorted(starts[:2]) == [0, 8] and starts[3] == 15


def test_addresses_of_copies_move_with_the_memory() -> None:
    (p, _), (q, _) = [shared(name, "shared.dyn") for name in "st"]
    copies = [
        Evaluate(tir.ptx_cp_async("float32", pointer, 2, A.data, 0, 16)) for pointer in (p, q)
    ]
    result = apply(MergeSharedMemoryAllocations(), kernel(*copies, around=[p, q], outside=True))
    merged = result.body.body
    assert merged.buffer_var.name == "buf_dyn_shmem" and int(merged.extents[0]) == 64
    calls = [stmt.value for stmt in merged.body.seq]
    assert [call.args[0] for call in calls] == [merged.buffer_var] * 2
    assert [int(call.args[1]) for call in calls] == [8, 40]


def test_unpacked_functions_call_each_other_for_their_status() -> None:
    target = {"target": Target("llvm", host="llvm"), "global_symbol": "there"}
    callee = function([A], store(A, 0, 1.0)).with_attrs(target)
    mod = IRModule({"callee": callee})
    gvar = mod.get_global_var("callee")
    array = tir.tvm_stack_make_array(A.data, tir.tvm_stack_make_shape(8), 0, 1, "float32", 0)
    caller = function([A], Evaluate(tir.Call("void", gvar, [array])))
    mod["main"] = caller.with_attrs({**target, "global_symbol": "main"})
    result = MakeUnpackedAPI()(mod)
    assert "cls.callee(A)" in result.script()
    assert result["main"].attrs["target"].host is None
    calls: list[tir.Call] = []
    tir.stmt_functor.post_order_visit(
        result["main"].body, lambda n: calls.append(n) if isinstance(n, tir.Call) else None
    )
    assert [call.dtype for call in calls if call.op is gvar] == ["int32"]
    assert MakeUnpackedAPI()(result) is result
