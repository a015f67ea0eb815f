from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError, TVMError

from ..outline import expect, lowered
from ..programs import run

X = np.random.default_rng(0).random((6, 10), "float32")


def cumulative(m: Any = 6, n: Any = 10) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """S[t, i] = X[0, i] + ... + X[t, i]."""
    x = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    return x, update, te.scan(init, update, state, inputs=[x], name="S")


def built(s: te.Schedule, args: list[Any], *inputs: Any) -> np.ndarray:
    out = tvm.nd.empty([int(d) for d in args[-1].shape])
    tvm.build(s, args, "llvm")(*[tvm.nd.array(value) for value in inputs], out)
    return out.numpy()


def test_scan_keeps_its_states_in_its_result() -> None:
    x, _, total = cumulative()
    s = te.create_schedule(total.op)
    assert lowered(s, [x, total]) == expect("""
        for i in serial(10)
          store S
        for S.idx in serial(5)
          for i in serial(10)
            store S
    """)
    np.testing.assert_allclose(run(s, [x, total], X)[0], np.cumsum(X, 0), rtol=1e-6)
    np.testing.assert_allclose(built(s, [x, total], X), np.cumsum(X, 0), rtol=1e-6)


def test_loops_of_a_step_are_scheduled() -> None:
    x, update, total = cumulative()
    s = te.create_schedule(total.op)
    _, inner = s[update].split(update.op.axis[1], factor=4)
    s[update].vectorize(inner)
    s[total.op.init[0]].parallel(total.op.init[0].op.axis[1])
    assert "vectorized(4)" in lowered(s, [x, total])
    np.testing.assert_allclose(run(s, [x, total], X)[0], np.cumsum(X, 0), rtol=1e-6)
    np.testing.assert_allclose(built(s, [x, total], X), np.cumsum(X, 0), rtol=1e-6)


def test_caches_inside_a_step() -> None:
    x, update, total = cumulative()
    s = te.create_schedule(total.op)
    state = total.op.state_placeholder[0]
    copy = s.cache_read(state, "global", [update])
    read = s.cache_read(x, "global", [update])
    partial = s.cache_write(update, "global")
    outer, _ = s[update].split(update.op.axis[1], factor=5)
    for one in (copy, read, partial):
        s[one].compute_at(s[update], outer)
    np.testing.assert_allclose(run(s, [x, total], X)[0], np.cumsum(X, 0), rtol=1e-6)


def test_a_step_of_several_stages() -> None:
    x = te.placeholder((6, 10), name="X")
    state = te.placeholder((6, 10), name="state")
    init = te.compute((1, 10), lambda _, i: x[0, i], name="init")
    twice = te.compute((6, 10), lambda t, i: state[t - 1, i] * 2, name="twice")
    update = te.compute((6, 10), lambda t, i: twice[t, i] + x[t, i], name="update")
    total = te.scan(init, update, state, inputs=[x], name="S")
    assert [op.name for op in te.schedule.ScanGetBody(total.op)] == ["twice", "update"]
    expected = [X[0]]
    for row in X[1:]:
        expected.append(expected[-1] * 2 + row)
    s = te.create_schedule(total.op)
    assert "realize twice[1, 10]" in lowered(s, [x, total])
    np.testing.assert_allclose(run(s, [x, total], X)[0], np.stack(expected), rtol=1e-6)
    s = te.create_schedule(total.op)
    s[twice].compute_inline()
    np.testing.assert_allclose(run(s, [x, total], X)[0], np.stack(expected), rtol=1e-6)


def test_several_states_and_a_longer_start() -> None:
    a, b = te.placeholder((8, 3), name="a"), te.placeholder((8, 3), name="b")
    init_a = te.compute((2, 3), lambda t, i: te.const(1, "float32"), name="init_a")
    init_b = te.compute((2, 3), lambda t, i: te.const(2, "float32"), name="init_b")
    new_a = te.compute((8, 3), lambda t, i: a[t - 1, i] + a[t - 2, i] + b[t - 1, i], name="new_a")
    new_b = te.compute((8, 3), lambda t, i: new_a[t, i] - b[t - 2, i], name="new_b")
    first, second = te.scan([init_a, init_b], [new_a, new_b], [a, b], name="S")
    s = te.create_schedule([first.op])
    u, v = [1.0, 1.0], [2.0, 2.0]
    for _ in range(6):
        u.append(u[-1] + u[-2] + v[-1])
        v.append(u[-1] - v[-2])
    results = run(s, [first, second])
    for result, values in zip(results, (u, v), strict=True):
        np.testing.assert_allclose(result, np.repeat(np.array(values)[:, None], 3, 1))


def recurrent(m: int, n: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """h[t] = W h[t-1] + x[t]."""
    x, w = te.placeholder((m, n), name="x"), te.placeholder((n, n), name="w")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    k = te.reduce_axis((0, n), name="k")
    dense = te.compute((m, n), lambda t, i: te.sum(w[i, k] * state[t - 1, k], axis=k), name="dense")
    update = te.compute((m, n), lambda t, i: dense[t, i] + x[t, i], name="update")
    return x, w, te.scan(init, update, state, inputs=[x, w], name="h")


def test_a_reader_of_a_scan_needs_what_its_steps_mix() -> None:
    x, w, h = recurrent(5, 4)
    out = te.compute((2,), lambda i: h[3, i + 1] * 2, name="out")
    s = te.create_schedule(out.op)
    text = lowered(s, [x, w, out])
    assert "realize h[4, 4]" in text and "for h.idx in serial(3)" in text
    source = np.random.default_rng(1)
    p, q = source.random((5, 4), "float32"), source.random((4, 4), "float32")
    value = p[0]
    for step in range(1, 4):
        value = q @ value + p[step]
    np.testing.assert_allclose(run(s, [x, w, out], p, q)[0], value[1:3] * 2, rtol=1e-5)
    np.testing.assert_allclose(built(s, [x, w, out], p, q), value[1:3] * 2, rtol=1e-5)


def test_a_reader_of_a_scan_along_its_own_positions_needs_a_part() -> None:
    x, _, total = cumulative()
    out = te.compute((6, 3), lambda t, i: total[t, i + 2] * 2, name="out")
    s = te.create_schedule(out.op)
    assert "realize S[6, 3]" in lowered(s, [x, out])
    np.testing.assert_allclose(run(s, [x, out], X)[0], np.cumsum(X, 0)[:, 2:5] * 2, rtol=1e-6)


def test_fix_points() -> None:
    _, _, total = cumulative()
    fixed = te.schedule.ScanFixPointAnalysis(total.op)
    assert [int(fixed[axis]) for axis in total.op.spatial_axis] == [1]
    _, _, h = recurrent(5, 4)
    fixed = te.schedule.ScanFixPointAnalysis(h.op)
    assert [int(fixed[axis]) for axis in h.op.spatial_axis] == [0]


def test_symbolic_sizes() -> None:
    m, n = te.var("m"), te.var("n")
    x, _, total = cumulative(m, n)
    s = te.create_schedule(total.op)
    out = tvm.nd.empty((6, 10))
    tvm.build(s, [x, total], "llvm")(tvm.nd.array(X), out)
    np.testing.assert_allclose(out.numpy(), np.cumsum(X, 0), rtol=1e-6)


def test_threads_around_a_scan() -> None:
    x, update, total = cumulative()
    s = te.create_schedule(total.op)
    thread = te.thread_axis((0, 10), "threadIdx.x")
    s[total].env_threads([thread])
    s[total.op.init[0]].bind(total.op.init[0].op.axis[1], thread)
    s[update].bind(update.op.axis[1], thread)
    assert lowered(s, [x, total]) == expect("""
        attr threadIdx.x thread_extent = 10
          store S
          for S.idx in serial(5)
            store S
    """)
    np.testing.assert_allclose(run(s, [x, total], X)[0], np.cumsum(X, 0), rtol=1e-6)


def test_misuse_is_rejected() -> None:
    x, update, total = cumulative()
    s = te.create_schedule(total.op)
    with pytest.raises(ScheduleError, match="env_threads requires a scan, got update"):
        s[update].env_threads([])
    with pytest.raises(ScheduleError, match="env_threads requires thread axes with extents"):
        s[total].env_threads([te.thread_axis("threadIdx.x")])
    with pytest.raises(ScheduleError, match="compute_at requires a stage of the group that"):
        s[update].compute_at(s[total], total.op.scan_axis)
    a, b = te.placeholder((4, 3), name="a"), te.placeholder((4, 2), name="b")
    with pytest.raises(ValueError, match="init, update, state_placeholder must have same length"):
        te.scan([update, update], update, x)
    with pytest.raises(TVMError, match="requires placeholders as states, got update"):
        te.scan(update, update, update)
    with pytest.raises(TVMError, match="also of its update"):
        te.scan(a, a, b)
    with pytest.raises(TVMError, match="scan s requires tensors, got a value of int"):
        te.scan(1, 2, 3, name="s")
    init = te.compute((1, 3), lambda _, i: a[0, i], name="init")
    plain = te.compute((4, 3), lambda t, i: a[t, i], name="plain")
    other = te.placeholder((4, 3), name="other")
    with pytest.raises(ScheduleError, match="requires an update that reads a state, got plain"):
        te.create_schedule(te.scan(init, plain, other).op)


def test_the_state_of_a_scan_can_be_prefetched() -> None:
    m, n = 6, 10
    x = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    total = te.scan(init, update, state, inputs=[x], name="S")
    s = te.create_schedule(total.op)
    s[update].prefetch(state, update.op.axis[1], 1)
    (result,) = run(s, [x, total], X)
    np.testing.assert_allclose(result, X.cumsum(0), rtol=1e-5)


@pytest.mark.parametrize("primitive", ["double_buffer", "compute_inline", "set_scope"])
def test_parts_of_a_scan_have_no_memory_of_their_own(primitive: str) -> None:
    _, update, total = cumulative()
    s = te.create_schedule(total.op)
    with pytest.raises(ScheduleError, match="requires a stage with memory of its own, got update"):
        getattr(s[update], primitive)(*(["local"] if primitive == "set_scope" else []))


def test_a_copy_of_the_state_is_made_in_each_step() -> None:
    m, n = 6, 10
    x = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, n - 1 - i] + x[t, i], name="update")
    total = te.scan(init, update, state, inputs=[x], name="S")
    s = te.create_schedule(total.op)
    s.cache_read(state, "local", [update])
    (result,) = run(s, [x, total], X)
    expected = X.copy()
    for t in range(1, m):
        expected[t] += expected[t - 1][::-1]
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_a_part_of_several_steps_reads_nothing_before_the_first() -> None:
    x = te.placeholder((6, 10), name="X")
    state = te.placeholder((6, 10), name="state")
    init = te.compute((1, 10), lambda _, i: x[0, i], name="init")
    same = te.compute((6, 10), lambda t, i: state[t - 1, i] * 1, name="same")
    update = te.compute((6, 10), lambda t, i: same[t, i] + x[t, i], name="update")
    total = te.scan(init, update, state, inputs=[x], name="S")
    for size in (2, 4):  # steps that these divide, and do not
        s = te.create_schedule(total.op)
        copy = s.cache_read(same, "global", [update])
        s[same].split(same.op.axis[0], factor=size)
        s.cache_write(same, "global")
        outer, _ = s[copy].split(copy.op.axis[0], factor=4)
        _, thread = s[copy].split(outer, factor=3)
        s[copy].bind(thread, te.thread_axis("vthread"))
        s[same].compute_at(s[copy], thread)
        np.testing.assert_allclose(run(s, [x, total], X)[0], np.cumsum(X, 0), rtol=1e-6)
