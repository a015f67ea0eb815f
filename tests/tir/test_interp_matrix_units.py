"""Matrix units in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.tir.schedule.test_matrix_units import index_map, product
from tests.tir.schedule.wmma_programs import wmma_schedule
from tvm import tir
from tvm.error import TVMError
from tvm.script import tir as T
from tvm.testing.tir import mma_schedule
from tvm.tir.interp import interpret
from tvm.tir.pipeline import THREADS
from tvm.tir.tensor_intrin import cuda as intrin


def for_threads(mod: tvm.IRModule, *more: tvm.transform.Pass) -> tir.PrimFunc:
    """The function as its kernels run, before they are apart."""
    target = tir.transform.BindTarget(tvm.target.Target("cuda", host="llvm"))
    return tvm.transform.Sequential([target, *THREADS, *more])(tvm.lower(mod))["main"]


def require_product(
    func: tir.PrimFunc, size: int, in_dtype: str, out_dtype: str, b_transposed: bool = False
) -> None:
    rng = np.random.default_rng(0)
    a, b = [rng.integers(-8, 8, (size, size)).astype(in_dtype) for _ in range(2)]
    result = np.zeros((size, size), out_dtype)
    interpret(func, a, b, result)
    right = b.T if b_transposed else b
    # sums of small integers are exact in all types
    np.testing.assert_array_equal(result, a.astype("int64") @ right.astype("int64"))


@pytest.mark.parametrize("b_transposed", [False, True])
@pytest.mark.parametrize("types", [("float16", "float32"), ("int8", "int32")])
def test_products_of_fragments(types: tuple[str, str], b_transposed: bool) -> None:
    sch = wmma_schedule(32, *types, b_transposed)
    require_product(for_threads(sch.mod), 32, *types, b_transposed)


def test_fragments_are_stored_in_shared_memory() -> None:
    sch = wmma_schedule(store_scope="shared")
    require_product(for_threads(sch.mod), 32, "float16", "float32")


@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
@pytest.mark.parametrize("in_registers", [False, True])
def test_products_of_registers(scope: str, in_registers: bool) -> None:
    dynamic = scope == "shared.dyn"
    loads = (
        (intrin.LDMATRIX_f16_A_DYN_INTRIN, intrin.LDMATRIX_f16_B_DYN_INTRIN)
        if dynamic
        else (intrin.LDMATRIX_f16_A_INTRIN, intrin.LDMATRIX_f16_B_INTRIN)
    )
    sch = mma_schedule(
        product(32), 16, "float16", False, [1, 1, 1, 1, 2], [1, 1, 1, 2, 1], [1, 2, 1],
        index_map, index_map, index_map, *loads, intrin.MMA_f16f16f32_INTRIN,
        intrin.MMA_fill_16x16_f32_INTRIN, intrin.MMA_store_16x16_f32_global_INTRIN, scope,
    )  # fmt: skip
    more = [tir.transform.LowerWarpMemory()] if in_registers else []
    require_product(for_threads(sch.mod, *more), 32, "float16", "float32")


def test_memory_of_a_warp_is_its_own() -> None:
    @T.prim_func
    def func(A: T.Buffer((64,), "int32")) -> None:
        ty = T.launch_thread("threadIdx.y", 2)
        tx = T.launch_thread("threadIdx.x", 32)
        W = T.decl_buffer((32,), "int32", scope="warp")
        W[tx] = ty
        A[ty * 32 + tx] = W[tx]

    array = np.zeros(64, "int32")
    interpret(func, array)
    np.testing.assert_array_equal(array, np.repeat([0, 1], 32))


def filled(threads: int, fragments: int) -> tir.PrimFunc:
    @T.prim_func
    def func(A: T.Buffer((16, 16), "float32")) -> None:
        tx = T.launch_thread("threadIdx.x", threads)
        c = T.allocate([256], "float32", "wmma.accumulator")
        T.evaluate(T.tvm_fill_fragment(c, 16, 16, 16, fragments - 1, T.float32(tx * 0 + 1)))
        T.evaluate(T.tvm_store_matrix_sync(c, 16, 16, 16, 0, A.access_ptr("w"), 16, "row_major"))

    return func


@pytest.mark.parametrize(
    ("threads", "fragments", "reason"),
    [
        (16, 1, "needs the 32 threads of a warp, got 16"),
        (32, 2, "c has 1 fragments, got fragment 1"),
    ],
)
def test_what_fragments_need(threads: int, fragments: int, reason: str) -> None:
    with pytest.raises(TVMError, match=reason):
        interpret(filled(threads, fragments), np.zeros((16, 16), "float32"))
