"""Small programs of blocks that schedules are tried on."""

from __future__ import annotations

from tvm.script import tir as T
from tvm.tir import PrimFunc


@T.prim_func
def matmul(
    A: T.Buffer((12, 8), "float32"),
    B: T.Buffer((8, 10), "float32"),
    C: T.Buffer((12, 10), "float32"),
):
    for i, j, k in T.grid(12, 10, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def matmul_relu(
    A: T.Buffer((8, 6), "float32"), B: T.Buffer((6, 9), "float32"), D: T.Buffer((8, 9), "float32")
):
    C = T.alloc_buffer((8, 9), "float32")
    for i, j, k in T.grid(8, 9, 6):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(8, 9):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))


@T.prim_func
def elementwise_chain(A: T.Buffer((7, 12), "float32"), D: T.Buffer((7, 12), "float32")):
    B = T.alloc_buffer((7, 12), "float32")
    C = T.alloc_buffer((7, 12), "float32")
    for i, j in T.grid(7, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(7, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(7, 12):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] * B[vi, vj]


@T.prim_func
def padded_conv1d(
    X: T.Buffer((14,), "float32"), W: T.Buffer((3,), "float32"), Y: T.Buffer((14,), "float32")
):
    P = T.alloc_buffer((16,), "float32")
    for i in T.serial(16):
        with T.block("P"):
            vi = T.axis.remap("S", [i])
            P[vi] = T.if_then_else(vi >= 1 and vi < 15, X[vi - 1], T.float32(0), dtype="float32")
    for i, r in T.grid(14, 3):
        with T.block("Y"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                Y[vi] = T.float32(0)
            Y[vi] = Y[vi] + P[vi + vr] * W[vr]


@T.prim_func
def transpose_and_add(A: T.Buffer((6, 10), "float32"), C: T.Buffer((10, 6), "float32")):
    B = T.alloc_buffer((10, 6), "float32")
    for i, j in T.grid(10, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
    for i, j in T.grid(10, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + A[vj, vi]


@T.prim_func
def softmax(A: T.Buffer((5, 8), "float32"), D: T.Buffer((5, 8), "float32")):
    M = T.alloc_buffer((5,), "float32")
    E = T.alloc_buffer((5, 8), "float32")
    S = T.alloc_buffer((5,), "float32")
    for i, k in T.grid(5, 8):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(-1000)
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, j in T.grid(5, 8):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.exp(A[vi, vj] - M[vi])
    for i, k in T.grid(5, 8):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, j in T.grid(5, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = E[vi, vj] / S[vi]


@T.prim_func
def decomposed_matmul(
    A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")
):
    for i, j in T.grid(8, 8):
        with T.block("init"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0)
    for i, j, k in T.grid(8, 8, 8):
        with T.block("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def two_producers(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T1 = T.alloc_buffer((16,), "float32")
    for i in T.serial(8):
        with T.block("low"):
            vi = T.axis.S(8, i)
            T1[vi] = A[vi] + T.float32(1)
    for i in T.serial(8):
        with T.block("high"):
            vi = T.axis.S(16, i + 8)
            T1[vi] = A[vi] * T.float32(3)
    for i in T.serial(16):
        with T.block("B"):
            vi = T.axis.S(16, i)
            B[vi] = T1[vi] - T.float32(2)


@T.prim_func
def square_sum(A: T.Buffer((4, 6, 5), "float32"), D: T.Buffer((4,), "float32")):
    C = T.alloc_buffer((4,), "float32")
    for b, i, j in T.grid(4, 6, 5):
        with T.block("C"):
            vb, vi, vj = T.axis.remap("SRR", [b, i, j])
            with T.init():
                C[vb] = T.float32(0)
            C[vb] = C[vb] + A[vb, vi, vj] * A[vb, vi, vj]
    for b in T.serial(4):
        with T.block("D"):
            vb = T.axis.remap("S", [b])
            D[vb] = T.sqrt(C[vb])


@T.prim_func
def strided_reads(A: T.Buffer((18, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    B = T.alloc_buffer((18, 4), "float32")
    for i, j in T.grid(18, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(8, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi * 2 + 1, vj] + B[vi * 2, vj]


@T.prim_func
def two_stencils(A: T.Buffer((14, 11), "float32"), D: T.Buffer((10, 9), "float32")):
    B = T.alloc_buffer((12, 11), "float32")
    C = T.alloc_buffer((10, 11), "float32")
    for i, j in T.grid(12, 11):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + A[vi + 2, vj] * T.float32(2)
    for i, j, r in T.grid(10, 11, 3):
        with T.block("C"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + B[vi + vr, vj] * T.float32(0.5)
    for i, j, r in T.grid(10, 9, 3):
        with T.block("D"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                D[vi, vj] = T.float32(-100)
            D[vi, vj] = T.max(D[vi, vj], C[vi, vj + vr])


PROGRAMS: tuple[PrimFunc, ...] = (
    matmul, matmul_relu, elementwise_chain, padded_conv1d, transpose_and_add, softmax,
    decomposed_matmul, two_producers, square_sum, strided_reads, two_stencils,
)  # fmt: skip
