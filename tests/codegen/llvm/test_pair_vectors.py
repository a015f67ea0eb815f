from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm.codegen.llvm.pair_vectors import VectorPairer
from tvm.script import tir as T

LOW, HIGH, BOTH = list(range(8)), list(range(8, 16)), list(range(16))


def paired(func: tvm.tir.PrimFunc, vector_bits: int = 256) -> tvm.tir.PrimFunc:
    return func.with_body(VectorPairer(vector_bits).visit(func.body))


def test_neighbouring_stores_share_a_computation() -> None:
    @T.prim_func
    def program(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        B[0:8] = T.exp(A[0:8] * T.Broadcast(T.float32(2), 8))
        B[8:16] = T.exp(A[16:24] * T.Broadcast(T.float32(2), 8))
        B[16:24] = T.exp(A[24:32])

    before = program

    @T.prim_func
    def program(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        with T.LetStmt(
            T.exp(T.Shuffle([A[0:8], A[16:24]], BOTH) * T.Broadcast(T.float32(2), 16))
        ) as pair:
            B[0:8] = T.Shuffle([pair], LOW)
            B[8:16] = T.Shuffle([pair], HIGH)
        B[16:24] = T.exp(A[24:32])

    tvm.ir.assert_structural_equal(paired(before), program, map_free_vars=True)


def test_turns_of_a_loop_are_neighbours_and_an_odd_one_is_left() -> None:
    @T.prim_func
    def program(A: T.Buffer((40,), "float32"), B: T.Buffer((40,), "float32")):
        for i in range(5):
            B[i * 8 : i * 8 + 8] = T.tanh(A[i * 8 : i * 8 + 8])

    loop, last = paired(program).body.seq
    assert loop.extent == 2
    assert [type(s) for s in loop.body.body.seq] == [tvm.tir.BufferStore] * 2
    assert loop.body.value.dtype == "float32x16"
    tvm.ir.assert_structural_equal(tvm.arith.Analyzer().simplify(last.indices[0].base), T.int32(32))


def unchanged_programs() -> list[tvm.tir.PrimFunc]:
    @T.prim_func
    def reads_what_is_stored(A: T.Buffer((24,), "float32")):
        A[8:16] = T.exp(A[0:8])
        A[16:24] = T.exp(A[8:16])

    @T.prim_func
    def reads_through_a_view(A: T.Buffer((24,), "float32"), B: T.Buffer((24,), "float32")):
        view = T.Buffer((12,), data=A.data)
        A[0:8] = T.exp(B[0:8])
        A[8:16] = T.exp(view[4:12])

    @T.prim_func
    def sums(A: T.Buffer((80,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(10):
            B[0:8] = B[0:8] + T.exp(A[i * 8 : i * 8 + 8])

    @T.prim_func
    def is_cheap(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        B[0:8] = T.fabs(A[0:8]) + A[0:8]
        B[8:16] = T.fabs(A[8:16]) + A[8:16]

    @T.prim_func
    def differs(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        B[0:8] = T.exp(A[0:8])
        B[8:16] = T.log(A[8:16])

    @T.prim_func
    def fills_two_registers(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        B[0:16] = T.exp(A[0:16])
        B[16:32] = T.exp(A[16:32])

    return [
        reads_what_is_stored,
        reads_through_a_view,
        sums,
        is_cheap,
        differs,
        fills_two_registers,
    ]


@pytest.mark.parametrize("func", unchanged_programs(), ids=lambda f: str(f.attrs["global_symbol"]))
def test_what_cannot_or_need_not_be_paired_stays(func: tvm.tir.PrimFunc) -> None:
    assert paired(func) is func or paired(func).body is func.body


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_are_those_of_single_vectors(dtype: str) -> None:
    """Arguments that may overlap are not paired."""
    lanes = 32 // np.dtype(dtype).itemsize
    n = 7 * lanes

    def build(noalias: bool) -> tvm.runtime.Module:
        @T.prim_func
        def main(a: T.handle, b: T.handle):
            T.func_attr({"tir.noalias": noalias})
            A, B = T.match_buffer(a, (n,), dtype), T.match_buffer(b, (n,), dtype)
            for i in range(7):
                for j in T.vectorized(lanes):
                    B[i * lanes + j] = T.Select(
                        j < 3,
                        A[i * lanes + j] * T.sigmoid(A[i * lanes + j]),
                        T.erf(A[i * lanes + j]),
                    ) + T.max(T.tanh(A[i * lanes + j]), T.Cast(dtype, i))

        return tvm.build(main, target="llvm -mcpu=x86-64-v3")

    a = np.random.default_rng(0).standard_normal(n).astype(dtype)
    a[:4] = [np.nan, np.inf, -np.inf, -0.0]
    found = []
    for noalias in (True, False):
        result, module = tvm.nd.empty((n,), dtype), build(noalias)
        assert (f"fma.v{2 * lanes}f" in module.get_source("ll")) == noalias
        module(tvm.nd.array(a), result)
        found.append(result.numpy())
    np.testing.assert_array_equal(*found)
