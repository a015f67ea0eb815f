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
