import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError

from ..programs import chain, check_chain, matmul


def test_prefetch_names_what_a_later_iteration_reads() -> None:
    a, b, c = matmul(8, 16, 10)
    s = te.create_schedule(c.op)
    s[c].reorder(*c.op.axis[:1], c.op.reduce_axis[0], c.op.axis[1])
    s[c].prefetch(b, c.op.reduce_axis[0], 2)
    text = str(te.schedule.lower_schedule(s, [a, b, c]))
    assert "T.prefetch" in text or "prefetch" in text.lower()
    x, y = np.random.default_rng(0).random((8, 10), "float32"), np.ones((10, 16), "float32")
    out = tvm.nd.empty((8, 16))
    built = tvm.build(s, [a, b, c], "llvm")
    built(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), x @ y, rtol=1e-5)
    assert "llvm.prefetch" in built.get_source("ll") or "@llvm.prefetch" in built.get_source()


def test_prefetch_of_a_stage_kept_inside() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=5)
    s[c].prefetch(b, outer, 1)
    check_chain(s, a, c)


def test_prefetch_outside_of_virtual_threads() -> None:
    a, _, c = chain()
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].bind(inner, te.thread_axis("vthread"))
    s[c].prefetch(s[c].op.input_tensors[0], outer, 1)
    check_chain(s, a, c)


def test_misuse_is_rejected() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    with pytest.raises(ScheduleError, match="prefetch requires a tensor, got a value of int"):
        s[c].prefetch(3, c.op.axis[0], 1)
    s[c].prefetch(a, c.op.axis[0], 1)
    with pytest.raises(ScheduleError, match="prefetch requires a loop in which A is read, got i"):
        te.schedule.lower_schedule(s, [a, c])
    assert b is not c


def test_a_tensor_that_is_computed_inside_the_loop_cannot_be_prefetched() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[c].prefetch(b, c.op.axis[0], 1)
    with pytest.raises(ScheduleError, match="requires a tensor from outside the loop, got B"):
        tvm.lower(s, [a, c])


def test_prefetch_follows_tensors_that_inlining_replaces() -> None:
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: a[i] * 2, name="B")
    c = te.compute((10,), lambda i: b[i] + 1, name="C")
    d = te.compute((10,), lambda i: c[i] + 1, name="D")
    s = te.create_schedule(d.op)
    s[b].compute_inline()
    s[d].prefetch(c, d.op.axis[0], 1)
    assert "prefetch" in str(te.schedule.lower_schedule(s, [a, d]))


def shared_prefetch(rows: int, steps: int) -> tuple[te.Schedule, list[te.Tensor], tvm.tir.IterVar]:
    a, b, c = matmul(rows, 64, steps)
    s = te.create_schedule(c.op)
    row, column = c.op.axis
    panel, lane = s[c].split(column, factor=16)
    s[c].reorder(panel, row, c.op.reduce_axis[0], lane)
    return s, [a, b, c], panel


def test_a_prefetch_over_a_loop_is_shared_among_its_iterations() -> None:
    a = te.placeholder((8, 32), name="A")
    w = te.placeholder((4, 32, 16), name="W")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute((4, 8, 16), lambda p, y, x: te.sum(a[y, k] * w[p, k, x], axis=k), name="C")
    s = te.create_schedule(c.op)
    panel, row, lane = c.op.axis
    far, near = s[c].split(k, factor=8)
    s[c].reorder(panel, row, far, near, lane)
    s[c].prefetch(w, panel, 1, over=far)
    body = str(tvm.lower(s, [a, w, c]))
    # 32 lines of the next panel among 8 x 4 iterations
    assert body.count("prefetch") == 1
    built = tvm.build(s, [a, w, c], "llvm")
    x, y = np.random.default_rng(0).random((8, 32), "float32"), np.ones((4, 32, 16), "float32")
    out = tvm.nd.empty((4, 8, 16))
    built(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), (x @ y).astype("float32"), rtol=1e-5)


def test_a_prefetch_over_a_loop_requires_that_loop_inside() -> None:
    s, args, panel = shared_prefetch(8, 10)
    s[args[2]].prefetch(args[0], panel, 1, over=panel)
    with pytest.raises(ScheduleError, match="prefetch requires a loop inside"):
        te.schedule.lower_schedule(s, args)


def test_a_prefetch_over_a_loop_requires_one_piece() -> None:
    s, args, panel = shared_prefetch(8, 10)
    s[args[2]].prefetch(args[1], panel, 1, over=args[2].op.reduce_axis[0])
    with pytest.raises(ScheduleError, match="requires a region in one piece"):
        te.schedule.lower_schedule(s, args)
