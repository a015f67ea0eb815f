"""What this machine can do at most: multiplications and additions a second, bytes a second."""

from __future__ import annotations

import numpy as np

import tvm
from benchmarks.timing import seconds_of
from tvm import te
from tvm.target.cpu import cpu_info

TARGET = "llvm"
STEPS = 2048
BYTES = 128 << 20  # of an array that no cache holds
REPEAT = 15


def peak_flops(threads: int) -> float:
    """Operations a second of fused multiply-adds whose operands are in registers or L1."""
    info = cpu_info(tvm.target.Target(TARGET))
    lanes, vectors, tasks = info.fp32_lanes, (info.vector_registers - 3) // 3, 200 * threads
    x, y = te.placeholder((STEPS, 2), name="x"), te.placeholder((vectors * lanes,), name="y")
    k = te.reduce_axis((0, STEPS), name="k")
    out = te.compute((tasks, 2, vectors * lanes), lambda t, h, v: te.sum(x[k, h] * y[v], axis=k))
    s = te.create_schedule(out.op)
    sums = s.cache_write(out, "global")
    task, _, v = s[out].op.axis
    s[out].parallel(task)
    s[sums].compute_at(s[out], task)
    _, h, v = s[sums].op.axis
    v, lane = s[sums].split(v, factor=lanes)
    s[sums].reorder(s[sums].op.reduce_axis[0], h, v, lane)
    s[sums].unroll(h)
    s[sums].unroll(v)
    s[sums].vectorize(lane)
    func = tvm.build(s, [x, y, out], TARGET)
    arrays = [tvm.nd.array(np.ones([int(d) for d in t.shape], "float32")) for t in (x, y, out)]
    best = min([seconds_of(lambda: func(*arrays)) for _ in range(REPEAT)])
    return 2.0 * tasks * 2 * vectors * lanes * STEPS / best


def peak_bandwidth(threads: int) -> float:
    """Bytes a second, read and written, of a copy that no cache holds."""
    count = BYTES // 4
    a = te.placeholder((count,), name="a")
    out = te.compute((count,), lambda i: a[i] + 1.0, name="out")
    s = te.create_schedule(out.op)
    task, inner = s[out].split(out.op.axis[0], nparts=threads)
    _, lane = s[out].split(inner, factor=16)
    s[out].parallel(task)
    s[out].vectorize(lane)
    func = tvm.build(s, [a, out], TARGET)
    arrays = [tvm.nd.array(np.zeros(count, "float32")) for _ in range(2)]
    return 2.0 * BYTES / min([seconds_of(lambda: func(*arrays)) for _ in range(REPEAT)])
