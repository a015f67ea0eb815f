"""Asynchronous copies by a device's engine for them."""

# mypy: disable-error-code="valid-type,no-untyped-def,name-defined,untyped-decorator"

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.error import LoweringError
from tvm.ir.transform import PassContext
from tvm.script import tir as T
from tvm.tir.transform import InjectSoftwarePipeline, LowerAsyncDMA

from .checks import apply, assert_same_results, assert_transforms, assert_unchanged


@T.prim_func
def staged(A: T.Buffer((512,), "float32"), B: T.Buffer((4,), "float32")):
    data = T.allocate([128], "float32", "global")
    S = T.decl_buffer((128,), "float32", data=data)
    for i in range(4):
        with T.attr(0, "async_commit_queue_scope", 0), T.attr(0, "async_scope", 1):
            for j in range(128):
                S[j] = A[i * 128 + j]
        with T.attr(0, "async_wait_queue_scope", 0), T.attr(0, "async_wait_inflight_count", 0):
            B[i] = S[3] + S[127]


def test_a_copy_is_issued_and_waited_for() -> None:
    @T.prim_func
    def issued(A: T.Buffer((512,), "float32"), B: T.Buffer((4,), "float32")):
        data = T.allocate([128], "float32", "global")
        S = T.decl_buffer((128,), "float32", data=data)
        for i in range(4):
            T.call_intrin(
                "int32", "tir.dma_copy", 0, T.address_of(S[0]), T.address_of(A[i * 128]), 512,
                T.bool(False),
            )  # fmt: skip
            T.call_intrin("int32", "tir.dma_wait", 0, 0)
            B[i] = S[3] + S[127]

    assert_transforms(LowerAsyncDMA(), staged, issued.with_attr("global_symbol", "staged"))
    assert_same_results(staged, apply(LowerAsyncDMA(), staged), 512, 4)


def test_the_cache_is_left_out_where_the_option_says_so() -> None:
    with PassContext(config={"tir.experimental_dma_bypass_cache": True}):
        text = str(apply(LowerAsyncDMA(), staged))
    assert "T.address_of(A[i * 128]), 512, T.bool(True))" in text


def test_copies_of_one_commit_are_a_group() -> None:
    @T.prim_func
    def two(A: T.Buffer((64,), "int8"), B: T.Buffer((64,), "int8"), C: T.Buffer((64,), "int8")):
        with T.attr(0, "async_commit_queue_scope", 1):
            with T.attr(0, "async_scope", 1):
                for j in range(32):
                    B[j] = A[j + 32]
            with T.attr(0, "async_scope", 1):
                for j in range(64):
                    C[j] = A[j]
        with T.attr(0, "async_wait_queue_scope", 1), T.attr(0, "async_wait_inflight_count", 0):
            T.evaluate(0)

    after = apply(LowerAsyncDMA(), two)
    calls: list[tir.Call] = []

    def note(node: Any) -> None:
        if isinstance(node, tir.Call) and "dma" in node.op.name:
            calls.append(node)

    tir.stmt_functor.post_order_visit(after.body, note)
    assert [call.op.name for call in calls] == [
        "tir.dma_start_group", "tir.dma_copy", "tir.dma_copy", "tir.dma_end_group", "tir.dma_wait",
    ]  # fmt: skip
    assert [int(call.args[0]) for call in calls] == [1] * 5
    assert_same_results(two, after, 64, 64, 64)


def test_rows_of_one_commit_are_a_group() -> None:
    @T.prim_func
    def rows(A: T.Buffer((64,), "float32"), B: T.Buffer((32,), "float32")):
        with T.attr(0, "async_commit_queue_scope", 0):
            for i in range(4):
                with T.attr(0, "async_scope", 1):
                    for j in range(8):
                        B[i * 8 + j] = A[i * 16 + j]

    after = apply(LowerAsyncDMA(), rows)
    assert [type(stmt) for stmt in after.body.seq] == [tir.Evaluate, tir.For, tir.Evaluate]
    assert_same_results(rows, after, 64, 32)


def test_other_work_of_a_queue_keeps_its_attributes() -> None:
    @T.prim_func
    def mixed(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        with T.attr(0, "async_commit_queue_scope", 0):
            with T.attr(0, "async_scope", 1):
                for j in range(32):
                    B[j] = A[j]
            with T.attr(0, "async_scope", 1):
                for j in range(32):
                    B[j + 32] = A[63 - j]
        with T.attr(0, "async_wait_queue_scope", 0), T.attr(0, "async_wait_inflight_count", 0):
            T.evaluate(0)

    after = apply(LowerAsyncDMA(), mixed)
    text = str(after)
    assert text.count("dma_copy") == text.count("dma_wait") == 1
    assert text.count('"async_scope"') == text.count('"async_commit_queue_scope"') == 1
    assert text.count('"async_wait_queue_scope"') == 1
    assert_same_results(mixed, after, 64, 64)


def test_synchronous_copies_stay() -> None:
    @T.prim_func
    def plain(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for j in range(64):
            B[j] = A[j]

    assert_unchanged(LowerAsyncDMA(), plain)


def test_a_wait_without_a_count_is_rejected() -> None:
    @T.prim_func
    def bare(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        with T.attr(0, "async_commit_queue_scope", 0), T.attr(0, "async_scope", 1):
            for j in range(64):
                B[j] = A[j]
        with T.attr(0, "async_wait_queue_scope", 0):
            T.evaluate(0)

    with pytest.raises(LoweringError, match="requires async_wait_inflight_count"):
        apply(LowerAsyncDMA(), bare)


def test_a_pipeline_of_copies_computes_the_same() -> None:
    @T.prim_func
    def pipeline(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
        for i in T.serial(
            8,
            annotations={
                "software_pipeline_stage": [0, 1],
                "software_pipeline_order": [0, 1],
                "software_pipeline_async_stages": [0],
            },
        ):
            with T.block(""):
                T.reads(A[i * 32 : i * 32 + 32])
                T.writes(B[i * 32 : i * 32 + 32])
                S = T.alloc_buffer((32,), "float32")
                with T.block(""):
                    T.reads(A[i * 32 : i * 32 + 32])
                    T.writes(S[0:32])
                    for j in range(32):
                        S[j] = A[i * 32 + j]
                with T.block(""):
                    T.reads(S[0:32])
                    T.writes(B[i * 32 : i * 32 + 32])
                    for j in range(32):
                        B[i * 32 + j] = S[j] * T.float32(2)

    ready = apply(InjectSoftwarePipeline(), pipeline)
    flat = apply(tir.transform.FlattenBuffer(), apply(tir.transform.LowerOpaqueBlock(), ready))
    after = apply(LowerAsyncDMA(), flat)
    assert str(after).count("dma_copy") == 2 and "async_" not in str(after)
    assert_same_results(pipeline, after, 256, 256)


def test_calls_are_functions_of_the_devices_runtime() -> None:
    events: list[Any] = []

    def copy(queue: int, target: Any, source: Any, size: int, bypass: int) -> int:
        events.append((queue, size, bypass))
        ctypes.memmove(target.value, source.value, size)
        return 0

    tvm.register_func("device_api.cpu.dma_copy", copy, override=True)
    tvm.register_func(
        "device_api.cpu.dma_wait", lambda queue, left: events.append((queue, left)), override=True
    )
    try:
        built = tvm.build(apply(LowerAsyncDMA(), staged), target="llvm", name="staged")
        numbers = np.arange(512, dtype="float32")
        result = tvm.nd.array(np.zeros(4, "float32"))
        built["staged"](tvm.nd.array(numbers), result)
    finally:
        for name in ("dma_copy", "dma_wait"):
            tvm._ffi.registry.remove_global_func(f"device_api.cpu.{name}")
    rows = numbers.reshape(4, 128)
    np.testing.assert_array_equal(result.numpy(), rows[:, 3] + rows[:, 127])
    assert events == [(0, 512, 0), (0, 0)] * 4
