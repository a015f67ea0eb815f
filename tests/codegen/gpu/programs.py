"""Small schedules with thread bindings, as functions of nothing that return (schedule, arguments, reference).

The reference computes the outputs, which are the last arguments, from the inputs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tvm
from tvm import te
from tvm.script import tir as T

BX, BY = "blockIdx.x", "blockIdx.y"
TX, TY = "threadIdx.x", "threadIdx.y"


@dataclass
class Program:
    """A schedule, its arguments, the arrays to call it with, and what the last one must be."""

    schedule: te.Schedule
    args: list[te.Tensor]
    inputs: list[np.ndarray]
    expected: np.ndarray


def _random(*shape: int, dtype: str = "float32") -> np.ndarray:
    rng = np.random.default_rng(0)
    if dtype.startswith(("int", "uint")):
        return rng.integers(0 if dtype[0] == "u" else -100, 100, shape).astype(dtype)
    return rng.uniform(-1, 1, shape).astype(dtype)


def _bind(s: te.Schedule, stage: Any, axis: Any, factor: int, x: str = "x") -> None:
    outer, inner = s[stage].split(axis, factor=factor)
    s[stage].bind(outer, te.thread_axis(f"blockIdx.{x}"))
    s[stage].bind(inner, te.thread_axis(f"threadIdx.{x}"))


def vector_add(dtype: str = "float32", open_shape: bool = True) -> Program:
    """One element a thread; the last block is not full."""
    n = te.var("n") if open_shape else 1000
    A = te.placeholder((n,), dtype, name="A")
    B = te.placeholder((n,), dtype, name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    _bind(s, C, C.op.axis[0], 64)
    a, b = _random(1000, dtype=dtype), _random(1000, dtype=dtype)
    return Program(s, [A, B, C], [a, b], a + b)


def vectorized(dtype: str = "float32", lanes: int = 4) -> Program:
    """Neighbouring elements by one thread."""
    A = te.placeholder((1024,), dtype, name="A")
    two = tvm.tir.const(2, dtype)
    C = te.compute((1024,), lambda i: A[i] * two + tvm.tir.const(1, dtype), name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=lanes)
    s[C].vectorize(inner)
    _bind(s, C, outer, 32)
    a = _random(1024, dtype=dtype)
    return Program(s, [A, C], [a], a * np.asarray(2, dtype) + np.asarray(1, dtype))


def matmul(n: int = 64, dynamic: bool = False) -> Program:
    """Tiles in shared memory, a part of the result in each thread's registers, virtual threads."""
    A = te.placeholder((n, n), name="A")
    B = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    scope = "shared.dyn" if dynamic else "shared"
    AA, BB = s.cache_read(A, scope, [C]), s.cache_read(B, scope, [C])
    CL = s.cache_write(C, "local")
    i, j = s[C].op.axis
    by, i = s[C].split(i, factor=32)
    bx, j = s[C].split(j, factor=32)
    vy, i = s[C].split(i, nparts=2)
    vx, j = s[C].split(j, nparts=2)
    ty, i = s[C].split(i, nparts=8)
    tx, j = s[C].split(j, nparts=8)
    s[C].reorder(by, bx, vy, vx, ty, tx, i, j)
    s[C].bind(by, te.thread_axis(BY))
    s[C].bind(bx, te.thread_axis(BX))
    s[C].bind(vy, te.thread_axis("vthread", name="vy"))
    s[C].bind(vx, te.thread_axis("vthread", name="vx"))
    thread_y, thread_x = te.thread_axis((0, 8), TY), te.thread_axis((0, 8), TX)
    s[C].bind(ty, thread_y)
    s[C].bind(tx, thread_x)
    s[CL].compute_at(s[C], tx)
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], factor=8)
    s[CL].reorder(ko, ki, *s[CL].op.axis)
    for stage in (AA, BB):
        s[stage].compute_at(s[CL], ko)
        fused = s[stage].fuse(*s[stage].op.axis)
        ty, fused = s[stage].split(fused, nparts=8)
        tx, fused = s[stage].split(fused, nparts=8)
        s[stage].bind(ty, thread_y)
        s[stage].bind(tx, thread_x)
        s[stage].vectorize(fused)
    a, b = _random(n, n), _random(n, n)
    return Program(s, [A, B, C], [a, b], a @ b)


def rfactor_sum() -> Program:
    """A reduction in parts by all threads of a block, which then combine them."""
    n, m = 24, 300
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    xo, xi = s[B].split(s[B].op.axis[0], factor=32)
    s[B].bind(xo, te.thread_axis(BX))
    s[B].bind(xi, te.thread_axis(TY))
    tx = te.thread_axis(TX)
    s[B].bind(s[B].op.reduce_axis[0], tx)
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(tx.var.equal(0))
    a = _random(n, m)
    return Program(s, [A, B], [a], a.sum(axis=1))


def cross_thread_max() -> Program:
    """All threads of a block reduce one row."""
    n, m = 20, 64
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis(BX))
    s[B].bind(B.op.reduce_axis[0], te.thread_axis(TX))
    a = _random(n, m)
    return Program(s, [A, B], [a], a.max(axis=1))


def sums_of_threads(rows: int, count: int, per_thread: int, dtype: str = "float32") -> Program:
    """Each row is summed up by ``count`` threads, 8 rows by a block."""
    A = te.placeholder((rows, count * per_thread), dtype, name="A")
    k = te.reduce_axis((0, count * per_thread), "k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(k, factor=count)
    thread = te.thread_axis((0, count), TX)
    s[B].bind(inner, thread)
    block, row = s[B].split(B.op.axis[0], factor=min(rows, 8))
    s[B].bind(block, te.thread_axis(BX))
    s[B].bind(row, te.thread_axis(TY))
    s[B].set_store_predicate(thread.var.equal(0))
    a = np.random.default_rng(0).integers(-50, 50, (rows, count * per_thread)).astype(dtype)
    return Program(s, [A, B], [a], a.sum(1))


def unary(name: str, dtype: str = "float32") -> Program:
    """A function of each element."""
    A = te.placeholder((256,), dtype, name="A")
    B = te.compute((256,), lambda i: getattr(te, name)(A[i]), name="B")
    s = te.create_schedule(B.op)
    _bind(s, B, B.op.axis[0], 64)
    a = np.abs(_random(256, dtype="float32")).astype(dtype) * np.asarray(0.9, dtype)
    reference = REFERENCES[name](a.astype("float64"))
    return Program(s, [A, B], [a], reference.astype(dtype))


def stencil() -> Program:
    """Neighbours from shared memory, with selects at the border and division of indices."""
    n = 100
    A = te.placeholder((n,), "int32", name="A")
    B = te.compute(
        (n,),
        lambda i: te.if_then_else(
            te.all(i > 0, i < n - 1),
            A[i - 1] + A[i + 1] * (i // 3) - tvm.tir.floormod(A[i], 7),
            A[i],
        ),
        name="B",
    )
    s = te.create_schedule(B.op)
    AA = s.cache_read(A, "shared", [B])
    outer, inner = s[B].split(B.op.axis[0], factor=25)
    s[B].bind(outer, te.thread_axis(BX))
    tx = te.thread_axis((0, 25), TX)
    s[B].bind(inner, tx)
    s[AA].compute_at(s[B], outer)
    _, inner = s[AA].split(s[AA].op.axis[0], factor=25)
    s[AA].bind(inner, tx)
    a = _random(n, dtype="int32")
    expected = a.copy()
    middle = np.arange(1, n - 1)
    expected[1:-1] = a[:-2] + a[2:] * (middle // 3) - a[1:-1] % 7
    return Program(s, [A, B], [a], expected)


def drawn(seed: int) -> Program:
    """A product of matrices and what follows it, under a schedule drawn at random."""
    rng = random.Random(seed)
    n, m, depth = rng.choice([8, 12, 17, 32]), rng.choice([8, 15, 24]), rng.choice([1, 6, 16])
    A = te.placeholder((n, depth), name="A")
    B = te.placeholder((m, depth), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    D = te.compute((n, m), lambda i, j: te.max(C[i, j], 0.0) + A[i, 0], name="D")
    s = te.create_schedule(D.op)
    read = [s.cache_read(tensor, "shared", [C]) for tensor in (A, B) if rng.random() < 0.6]
    s[C].set_scope("local")
    threads = {"x": rng.choice([2, 4, 8]), "y": rng.choice([1, 2, 4])}
    axes = {x: te.thread_axis((0, extent), f"threadIdx.{x}") for x, extent in threads.items()}
    blocks, virtual, real, rest = [], [], [], []
    for axis, (x, extent) in zip(reversed(D.op.axis), threads.items(), strict=True):
        block, part = s[D].split(axis, factor=extent * rng.choice([1, 2, 3]))
        s[D].bind(block, te.thread_axis(f"blockIdx.{x}"))
        blocks.append(block)
        if rng.random() < 0.5:
            several, part = s[D].split(part, nparts=rng.choice([1, 2, 3]))
            s[D].bind(several, te.thread_axis("vthread", name=f"v{x}"))
            virtual.append(several)
        thread, part = s[D].split(part, nparts=extent)
        s[D].bind(thread, axes[x])
        real.append(thread)
        rest.append(part)
    s[D].reorder(*blocks, *virtual, *real, *rest)
    s[C].compute_at(s[D], real[-1])
    ko, _ = s[C].split(s[C].op.reduce_axis[0], factor=rng.choice([1, 2, 4]))
    for stage in read:
        s[stage].compute_at(*rng.choice([(s[C], ko), (s[D], blocks[-1])]))
        fused = s[stage].fuse(*s[stage].op.axis)
        for axis in axes.values():
            fused, mine = s[stage].split(fused, factor=axis.dom.extent.value)
            s[stage].bind(mine, axis)
    if rng.random() < 0.3:
        s[D].unroll(rest[0])
    a, b = _random(n, depth), _random(m, depth)
    return Program(s, [A, B, D], [a, b], np.maximum(a @ b.T, 0) + a[:, :1])


REFERENCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "floor": np.floor, "ceil": np.ceil, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": lambda x: _erf(x),
    "rsqrt": lambda x: 1 / np.sqrt(x), "round": np.round, "log2": np.log2, "atan": np.arctan,
}  # fmt: skip


def _erf(x: np.ndarray) -> np.ndarray:
    from math import erf

    return np.vectorize(erf)(x)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "vector_add": vector_add,
    "vector_add_closed": lambda: vector_add(open_shape=False),
    **{
        f"vector_add_{dtype}": lambda dtype=dtype: vector_add(dtype)
        for dtype in ("float64", "float16", "int8", "uint8", "int16", "int64")
    },
    **{
        f"vectorized_{dtype}x{lanes}": lambda dtype=dtype, lanes=lanes: vectorized(dtype, lanes)
        for dtype, lanes in (("float32", 4), ("float32", 8), ("float16", 8), ("int8", 16), ("int32", 2),
                             ("float64", 2), ("int64", 4), ("float32", 3))
    },
    "matmul": matmul,
    "matmul_dynamic": lambda: matmul(dynamic=True),
    "rfactor_sum": rfactor_sum,
    "cross_thread_max": cross_thread_max,
    "sums_of_a_warp": lambda: sums_of_threads(3, 32, 3),
    "sums_of_a_part_of_a_warp": lambda: sums_of_threads(8, 8, 2),
    "sums_of_parts_of_warps": lambda: sums_of_threads(16, 16, 1, "float64"),
    "sums_of_warps": lambda: sums_of_threads(2, 64, 2, "int64"),
    "sums_of_five_threads": lambda: sums_of_threads(1, 5, 3),
    "sums_through_memory": lambda: sums_of_threads(6, 48, 1),
    "stencil": stencil,
    **{f"unary_{name}": lambda name=name: unary(name) for name in REFERENCES},
    "unary_exp_float64": lambda: unary("exp", "float64"),
    "unary_tanh_float16": lambda: unary("tanh", "float16"),
}  # fmt: skip


@T.prim_func
def words_of_a_warp(a: T.handle, b: T.handle, c: T.handle) -> None:
    """Products of bytes, which a warp shuffles and adds to one element."""
    A = T.match_buffer(a, (128,), "int8")
    B = T.match_buffer(b, (32,), "int32")
    C = T.match_buffer(c, (1,), "int32")
    tx = T.launch_thread("threadIdx.x", 32)
    mine = T.decl_buffer((1,), "int32", scope="local")
    mine[0] = T.call_intrin("int32", "tir.dp4a", A[tx * 4 : tx * 4 + 4], A[tx * 4 : tx * 4 + 4], 0)
    mine[0] = mine[0] + T.tvm_warp_shuffle_down(
        T.tvm_warp_activemask(), mine[0], 16, 32, 32, dtype="int32"
    )
    B[tx] = mine[0]
    T.evaluate(T.call_intrin("int32", "tir.atomic_add", T.address_of(C[0]), mine[0]))
