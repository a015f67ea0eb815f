"""Sums over GPUs in memory that processes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tvm
from tvm.ir import assert_structural_equal
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

NAME = "runtime.disco.cuda_ipc.custom_allreduce"


def _module(kind: int) -> tvm.IRModule:
    @I.ir_module
    class Sums:
        @R.function(pure=False)
        def main(s: R.Shape([2, 3])):
            a: R.Tensor((2, 3), "float16") = R.builtin.alloc_tensor(
                R.shape([2, 3]), R.dtype("float16"), R.prim_value(0), R.str("global")
            )
            b: R.Tensor((6,), "float16") = R.reshape(a, (6,))
            c: R.Tensor((6,), "float16") = R.builtin.alloc_tensor(
                R.shape([6]), R.dtype("float16"), R.prim_value(0), R.str("global")
            )
            _: R.Object = R.call_packed(
                "runtime.disco.allreduce", b, R.shape([kind]), R.prim_value(True), c
            )
            return c

    return Sums


@pytest.fixture
def allreduce() -> Iterator[None]:
    tvm.register_func(NAME, lambda *_: None)
    yield
    tvm._ffi.registry.remove_global_func(NAME)


def test_sums_read_shared_memory(allreduce: None) -> None:
    @I.ir_module
    class After:
        @R.function(pure=False)
        def main(s: R.Shape([2, 3])):
            a: R.Tensor((2, 3), "float16") = R.builtin.alloc_tensor(
                R.shape([2, 3]), R.dtype("float16"), R.prim_value(0), R.str("ipc_memory")
            )
            b: R.Tensor((6,), "float16") = R.reshape(a, (6,))
            c: R.Tensor((6,), "float16") = R.builtin.alloc_tensor(
                R.shape([6]), R.dtype("float16"), R.prim_value(0), R.str("global")
            )
            _: R.Object = R.call_packed(
                "runtime.disco.cuda_ipc.custom_allreduce", b, R.prim_value(2), c
            )
            return c

    assert_structural_equal(transform.IPCAllReduceRewrite(2)(_module(0)), After)


def test_other_reductions_stay(allreduce: None) -> None:
    mod = _module(1)
    assert_structural_equal(transform.IPCAllReduceRewrite(2)(mod), mod)


def test_nothing_changes_without_the_function() -> None:
    mod = _module(0)
    assert transform.IPCAllReduceRewrite(2)(mod) is mod


def test_shared_memory_is_allocated_by_its_function() -> None:
    @I.ir_module
    class Before:
        @R.function(pure=False)
        def main(s: R.Shape(["m"])):
            m = T.int64()
            storage: R.Object = R.memory.alloc_storage(
                R.shape([m]), R.prim_value(0), R.str("ipc_memory"), R.dtype("float16")
            )
            a: R.Tensor((2, 3), "float16") = R.builtin.alloc_tensor(
                R.shape([2, 3]), R.dtype("float16"), R.prim_value(0), R.str("ipc_memory")
            )
            return (storage, a)

    @I.ir_module
    class After:
        @R.function(pure=False)
        def main(s: R.Shape(["m"])):
            m = T.int64()
            storage: R.Object = R.call_packed(
                "runtime.disco.cuda_ipc.alloc_storage",
                R.shape([m]),
                R.dtype("float16"),
                sinfo_args=(R.Object,),
            )
            shared: R.Object = R.call_packed(
                "runtime.disco.cuda_ipc.alloc_storage",
                R.shape([6]),
                R.dtype("float16"),
                sinfo_args=(R.Object,),
            )
            a: R.Tensor((2, 3), "float16") = R.memory.alloc_tensor(
                shared, R.prim_value(0), R.shape([2, 3]), R.dtype("float16")
            )
            return (storage, a)

    assert_structural_equal(transform.LowerGPUIPCAllocStorage()(Before), After)
