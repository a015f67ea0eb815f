"""More programs to schedule: operators of networks, and what hand-written loops have beside them."""

from __future__ import annotations

from tests.tir.schedule.programs import PROGRAMS
from tvm import te, tir, topi
from tvm.script import tir as T
from tvm.testing import te_workload
from tvm.tir import PrimFunc


@T.prim_func
def row_argmax(
    A: T.Buffer((4, 9), "float32"), at: T.Buffer((4,), "int32"), top: T.Buffer((4,), "float32")
):
    for i, k in T.grid(4, 9):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                at[vi] = -1
                top[vi] = T.float32(-100)
            index: T.int32 = T.Select(top[vi] >= A[vi, vk], at[vi], vk)
            value: T.float32 = T.Select(top[vi] >= A[vi, vk], top[vi], A[vi, vk])
            at[vi] = index
            top[vi] = value


@T.prim_func
def gather(
    A: T.Buffer((6, 5), "float32"), at: T.Buffer((7,), "int32"), C: T.Buffer((7, 5), "float32")
):
    B = T.alloc_buffer((6, 5), "float32")
    for i, j in T.grid(6, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(7, 5):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[at[vi], vj] + T.float32(1)


@T.prim_func
def running_sums(A: T.Buffer((3, 8), "float32"), B: T.Buffer((3, 8), "float32")):
    for i, t in T.grid(3, 8):
        with T.block("B"):
            vi, vt = T.axis.remap("SS", [i, t])
            B[vi, vt] = T.if_then_else(vt == 0, T.float32(0), B[vi, vt - 1]) + A[vi, vt]


@T.prim_func
def split_with_predicate(A: T.Buffer((13, 4), "float32"), C: T.Buffer((13, 4), "float32")):
    B = T.alloc_buffer((13, 4), "float32")
    for i0, i1, j in T.grid(4, 4, 4):
        with T.block("B"):
            T.where(i0 * 4 + i1 < 13)
            vi = T.axis.S(13, i0 * 4 + i1)
            vj = T.axis.S(4, j)
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(13, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[12 - vi, vj] * T.float32(3)


@T.prim_func
def blocks_in_blocks(A: T.Buffer((8, 12), "float32"), C: T.Buffer((8, 12), "float32")):
    B = T.alloc_buffer((8, 12), "float32")
    for i, j in T.grid(2, 3):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            for x, y in T.grid(4, 4):
                with T.block("B"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    B[vi * 4 + vx, vj * 4 + vy] = A[vi * 4 + vx, vj * 4 + vy] - T.float32(1)
    for i, j in T.grid(8, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, 11 - vj]


@T.prim_func
def integer_matmul(
    A: T.Buffer((5, 12), "uint8"), B: T.Buffer((12, 7), "int8"), C: T.Buffer((5, 7), "int32")
):
    for i, j, k in T.grid(5, 7, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj])


@T.prim_func
def scalar_total(A: T.Buffer((6, 5), "float32"), B: T.Buffer((6, 5), "float32")):
    total = T.alloc_buffer((), "float32")
    for i, j in T.grid(6, 5):
        with T.block("total"):
            vi, vj = T.axis.remap("RR", [i, j])
            with T.init():
                total[()] = T.float32(1)
            total[()] = total[()] + A[vi, vj] * A[vi, vj]
    for i, j in T.grid(6, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] / total[()]


@T.prim_func
def concatenated(
    A: T.Buffer((3, 5), "float32"), B: T.Buffer((4, 5), "float32"), D: T.Buffer((7, 5), "float32")
):
    C = T.alloc_buffer((7, 5), "float32")
    for i, j in T.grid(3, 5):
        with T.block("top"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
    for i, j in T.grid(4, 5):
        with T.block("bottom"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi + 3, vj] = B[vi, vj]
    for i, j in T.grid(7, 5):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.exp(C[vi, vj])


@T.prim_func
def in_place_updates(A: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(6, 8):
        with T.block("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] + T.float32(1)


@T.prim_func
def wide_indices(
    A: T.Buffer((T.int64(6), T.int64(10)), "float32"), B: T.Buffer((T.int64(6),), "float32")
):
    C = T.alloc_buffer((T.int64(6), T.int64(10)), "float32")
    for i, j in T.grid(T.int64(6), T.int64(10)):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + T.Cast("float32", vj)
    for i, j in T.grid(T.int64(6), T.int64(10)):
        with T.block("B"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + C[vi, vj]


def layer_norm() -> PrimFunc:
    data = te.placeholder((3, 10), name="data")
    scale, offset = [te.placeholder((10,), name=name) for name in ("scale", "offset")]
    return te.create_prim_func(
        [data, scale, offset, topi.nn.layer_norm(data, scale, offset, [1], 1e-5)]
    )


def upsampled() -> PrimFunc:
    data = te.placeholder((2, 4, 5), name="data")
    twice = te.compute((2, 8, 10), lambda c, i, j: data[c, i // 2, j // 2], name="twice")
    return te.create_prim_func(
        [data, te.compute(twice.shape, lambda c, i, j: tir.exp(twice[c, i, j]), name="exp")]
    )


ZOO: tuple[PrimFunc, ...] = (
    *PROGRAMS,
    row_argmax, gather, running_sums, split_with_predicate, blocks_in_blocks, integer_matmul,
    scalar_total, concatenated, in_place_updates, wide_indices, layer_norm(), upsampled(),
    *[
        te.create_prim_func(tensors)
        for tensors in (
            te_workload.conv2d_nhwc(1, 6, 5, 3, 4, 3, 1, 1),
            te_workload.conv2d_nhwc(1, 5, 5, 4, 4, 3, 2, 1, groups=2),
            te_workload.depthwise_conv2d_nhwc(1, 5, 6, 4, 3, 1, 1),
            te_workload.conv2d_transpose_nhwc(1, 3, 3, 2, 4, 4, 2, 1),
            te_workload.conv2d_nhwc_bn_relu(1, 5, 5, 2, 4, 3, 1, 1),
            te_workload.transpose_batch_matmul(1, 5, 2, 4),
            te_workload.max_pool2d_nchw(1, 6, 6, 2, 1),
            te_workload.norm_bmn(2, 4, 6),
            te_workload.batch_matmul_nkkm(2, 4, 5, 6),
        )
    ],
)  # fmt: skip
