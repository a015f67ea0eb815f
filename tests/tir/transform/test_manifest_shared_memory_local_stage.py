from __future__ import annotations

import numpy as np
import pytest

from tvm.error import LoweringError
from tvm.script import tir as T
from tvm.tir.stmt import Block
from tvm.tir.stmt_functor import post_order_visit
from tvm.tir.transform import ManifestSharedMemoryLocalStage

from .checks import apply, assert_unchanged
from .lockstep import run_block


@T.prim_func
def turned(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.func_attr({"global_symbol": "main"})
    with T.block("root"):
        S = T.alloc_buffer((32,), "float32", scope="shared")
        for t in T.thread_binding(8, thread="threadIdx.x"):
            for j in range(4):
                with T.block("S"):
                    v = T.axis.spatial(32, t * 4 + j)
                    T.block_attr({"tir.manifest_shared_memory_local_stage": 1})
                    S[v] = A[v] * T.float32(2)
        T.evaluate(T.tvm_storage_sync("shared"))
        for t in T.thread_binding(8, thread="threadIdx.x"):
            for j in range(4):
                with T.block("B"):
                    v = T.axis.spatial(32, t * 4 + j)
                    B[v] = S[31 - v]


@T.prim_func
def to_global(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            T.block_attr({"tir.manifest_shared_memory_local_stage": 1})
            A[v] = T.float32(1)


def test_values_reach_shared_memory_by_way_of_registers() -> None:
    after = apply(ManifestSharedMemoryLocalStage(), turned)
    blocks: list[Block] = []
    post_order_visit(after.body, lambda n: blocks.append(n) if isinstance(n, Block) else None)
    assert [b.name_hint for b in blocks] == ["S_local", "S", "", "B", "root"]
    (local,) = blocks[2].alloc_buffers
    assert local.scope() == "local" and [int(d) for d in local.shape] == [4]
    assert "manifest" not in str(after)
    assert_unchanged(ManifestSharedMemoryLocalStage(), after)


def test_staged_values_are_the_same() -> None:
    a = np.random.default_rng(0).random(32, "float32")
    results = []
    for func in (turned, apply(ManifestSharedMemoryLocalStage(), turned)):
        b = np.zeros(32, "float32")
        run_block(func, {"threadIdx.x": 8}, a.copy(), b)
        results.append(b)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[1], a[::-1] * 2)


def test_other_memory_is_rejected() -> None:
    with pytest.raises(LoweringError, match="stores an element to shared memory, got A"):
        apply(ManifestSharedMemoryLocalStage(), to_global)
