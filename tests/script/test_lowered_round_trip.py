"""Programs as the lowering pipeline leaves them after each pass survive printing and reading."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import te
from tvm.ir import IRModule, assert_structural_equal
from tvm.ir.instrument import pass_instrument
from tvm.script import from_source


@pass_instrument
class RoundTrip:
    """Reads what every pass produces."""

    def __init__(self) -> None:
        self.passes: list[str] = []

    def run_after_pass(self, mod: IRModule, info: Any) -> None:
        assert_structural_equal(mod, from_source(mod.script()))
        self.passes.append(info.name)


def check(schedule: te.Schedule, args: list[te.Tensor]) -> list[str]:
    round_trip = RoundTrip()
    with tvm.transform.PassContext(instruments=[round_trip]):
        tvm.build(schedule, args, "llvm", name="program")
    return round_trip.passes


def test_tiled_matmul() -> None:
    A = te.placeholder((64, 48), name="A")
    B = te.placeholder((48, 64), name="B")
    k = te.reduce_axis((0, 48), name="k")
    C = te.compute((64, 64), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    cached = s.cache_write(C, "local")
    i, j, ii, jj = s[C].tile(*C.op.axis, 20, 16)
    s[C].parallel(i)
    s[C].vectorize(jj)
    s[cached].compute_at(s[C], j)
    _, inner = s[cached].split(cached.op.reduce_axis[0], factor=4)
    s[cached].unroll(inner)
    s[C].pragma(ii, "auto_unroll_max_step", 4)
    assert "tir.MakePackedAPI" in check(s, [A, B, C])


def test_symbolic_shapes() -> None:
    n = te.var("n")
    A = te.placeholder((n, 4), name="A")
    B = te.compute((n, 4), lambda i, j: te.exp(A[i, j]) + i.astype("float32"), name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=8)
    s[B].parallel(outer)
    s[B].vectorize(B.op.axis[1])
    assert "tir.MakePackedAPI" in check(s, [A, B])


def test_int64_and_bool() -> None:
    A = te.placeholder((tvm.tir.const(16, "int64"),), "int64", name="A")
    B = te.compute(A.shape, lambda i: tvm.tir.all(A[i] > 3, A[i] < 9), name="B")
    check(te.create_schedule(B.op), [A, B])


def test_stages_with_threads_layouts_and_prefetches() -> None:
    A = te.placeholder((64, 8), name="A")
    B = te.compute((64, 8), lambda i, j: A[63 - i, j] + 1.0, name="B")
    C = te.compute((64, 8), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=16)
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[C].bind(inner, te.thread_axis("threadIdx.x"))
    s[B].transform_layout(lambda i, j: [j, tvm.tir.Cast("int32", i // 2), i % 2])
    s[B].prefetch(A, s[B].leaf_iter_vars[0], 1)
    stages = te.schedule.lower_schedule(s, [A, C])
    assert "launch_thread" in stages.script() and "prefetch" in stages.script()
    assert_structural_equal(stages, from_source(stages.script()))
