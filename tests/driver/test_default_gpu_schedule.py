"""Blocks that no schedule was written for, bound to the threads of a GPU."""

# mypy: disable-error-code="valid-type,no-untyped-def,name-defined,untyped-decorator"

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import LoweringError
from tvm.ir import IRModule
from tvm.script import tir as T
from tvm.target import Target
from tvm.tir.interp import interpret
from tvm.tir.transform import DefaultGPUSchedule

GPU = Target({"kind": "cuda", "max_num_threads": 64})


@T.prim_func
def row_sums(A: T.Buffer((6, 5), "int32"), B: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    for k, i in T.grid(5, 6):
        with T.block("B"):
            vk, vi = T.axis.remap("RS", [k, i])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = B[vi] * 2


@T.prim_func
def total(A: T.Buffer((7,), "int32"), B: T.Buffer((), "int32")):
    for k in range(7):
        with T.block("B"):
            vk = T.axis.reduce(7, k)
            with T.init():
                B[()] = 0
            B[()] = B[()] + A[vk]


@T.prim_func
def doubled(A: T.Buffer((300, 100), "int32"), B: T.Buffer((300, 100), "int32")):
    for i, j in T.grid(300, 100):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2


def scheduled(func: tir.PrimFunc, target: Target | None = GPU) -> tir.PrimFunc:
    named = func if target is None else func.with_attr("target", target)
    result = DefaultGPUSchedule()(IRModule({"main": named}))["main"]
    assert isinstance(result, tir.PrimFunc)
    return result


def bindings(func: tir.PrimFunc) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []

    def note(node: object) -> None:
        if isinstance(node, tir.For) and node.thread_binding is not None:
            found.append((node.thread_binding.thread_tag, int(node.extent.value)))  # type: ignore[attr-defined]

    tir.stmt_functor.post_order_visit(func.body, note)
    return found


def assert_computes_the_same(func: tir.PrimFunc, *shapes: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    arrays = [random.integers(-9, 9, shape).astype("int32") for shape in shapes]
    copies = [array.copy() for array in arrays]
    interpret(func, *arrays)
    interpret(scheduled(func), *copies)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_data_parallel_loops_become_threads_and_reductions_stay_inside() -> None:
    threads = bindings(scheduled(row_sums))
    assert threads == [("threadIdx.x", 6), ("blockIdx.x", 1)] * 2
    assert_computes_the_same(row_sums, (6, 5), (6,), (6,))


def test_a_block_of_reductions_alone_runs_in_one_thread() -> None:
    assert bindings(scheduled(total)) == [("threadIdx.x", 1), ("blockIdx.x", 1)]
    assert_computes_the_same(total, (7,), ())


def test_threads_loop_where_there_are_more_elements_than_threads() -> None:
    assert bindings(scheduled(doubled)) == [("threadIdx.x", 64), ("blockIdx.x", 256)]
    assert_computes_the_same(doubled, (300, 100), (300, 100))


def test_functions_are_scheduled_once() -> None:
    once = scheduled(row_sums)
    assert once.attrs["tir.is_scheduled"]
    assert DefaultGPUSchedule()(IRModule({"main": once}))["main"] is once


def test_functions_for_a_cpu_keep_their_loops() -> None:
    func = scheduled(row_sums, Target("llvm"))
    assert tvm.ir.structural_equal(func.body, row_sums.body)


def test_the_current_target_counts_where_a_function_has_none() -> None:
    with GPU:
        assert bindings(scheduled(doubled, None)) == bindings(scheduled(doubled))
    with pytest.raises(LoweringError, match="requires a target with max_num_threads, got None"):
        scheduled(doubled, None)


def test_loops_without_blocks_are_rejected() -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    func = tvm.lower(te.create_schedule(B.op), [A, B])["main"]
    with pytest.raises(LoweringError, match="requires a function of blocks"):
        scheduled(func)
