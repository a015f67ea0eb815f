import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError

from ..outline import expect, lowered
from ..programs import chain, check_chain, check_matmul, matmul


def test_kinds_of_loops() -> None:
    a, b, c = matmul(8, 6, 4)
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    outer, inner = s[c].split(i, 4)
    s[c].reorder(outer, c.op.reduce_axis[0], inner, j)
    s[c].parallel(outer)
    s[c].unroll(inner)
    s[c].vectorize(j)
    assert lowered(s, [a, b, c]) == expect("""
        for i.outer in parallel(2)
          for i.inner.init in unrolled(4)
            for j.init in vectorized(6)
              store C
          for k in serial(4)
            for i.inner in unrolled(4)
              for j in vectorized(6)
                store C
    """)
    check_matmul(s, a, b, c)


def test_pragmas_stand_around_their_loop() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    i = c.op.axis[0]
    s[c].pragma(i, "auto_unroll_max_step", 16)
    s[c].pragma(i, "unroll_explicit", True)
    assert lowered(s, [a, c]) == expect("""
        attr i pragma_auto_unroll_max_step = 16
          attr i pragma_unroll_explicit = 1
            for i in serial(10)
              store C
    """)


def test_pragma_may_name_a_kind_of_loop() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    s[c].pragma(c.op.axis[0], "vectorize")
    assert "vectorized(10)" in lowered(s, [a, c])


def test_bind_runs_iterations_on_threads() -> None:
    a, b, c = chain(64)
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=16)
    s[b].compute_at(s[c], outer)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    s[c].bind(inner, te.thread_axis("threadIdx.x"))
    assert lowered(s, [a, c]) == expect("""
        attr blockIdx.x thread_extent = 4
          realize B[16] in shared
            for i in serial(16)
              store B
            attr threadIdx.x thread_extent = 16
              store C
    """)
    check_chain(s, a, c)


def test_threads_share_the_work_of_a_shared_stage() -> None:
    a, b, c = chain(64)
    s = te.create_schedule(c.op)
    thread = te.thread_axis((0, 8), "threadIdx.x")
    outer, inner = s[c].split(c.op.axis[0], factor=16)
    over, each = s[c].split(inner, factor=8)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    s[c].bind(each, thread)
    s[b].set_scope("shared")
    s[b].compute_at(s[c], over)
    _, part = s[b].split(b.op.axis[0], factor=8)
    s[b].bind(part, thread)
    text = lowered(s, [a, c])
    assert text.count("threadIdx.x thread_extent = 8") == 2 and "realize B[8] in shared" in text


def test_a_thread_opens_once_for_nested_stages() -> None:
    a, b, c = chain(64)
    s = te.create_schedule(c.op)
    thread = te.thread_axis("threadIdx.x")
    outer, inner = s[c].split(c.op.axis[0], factor=16)
    s[c].bind(outer, thread)
    s[b].compute_at(s[c], inner)
    s[b].set_scope("local")
    assert lowered(s, [a, c]) == expect("""
        attr threadIdx.x thread_extent = 4
          for i.inner in serial(16)
            realize B[1] in local
              store B
              store C
    """)
    check_chain(s, a, c)


def test_thread_extents_have_to_agree() -> None:
    a, b, c = chain(64)
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    outer, inner = s[c].split(c.op.axis[0], factor=16)
    thread = te.thread_axis((0, 8), "threadIdx.x")
    s[c].bind(inner, thread)
    with pytest.raises(ScheduleError, match="requires one extent everywhere, got 8 and 16"):
        te.schedule.lower_schedule(s, [a, c])
    assert outer.var.name == "i.outer"


def test_storage_align() -> None:
    a = te.placeholder((4, 6), name="A")
    b = te.compute((4, 6), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((4, 6), lambda i, j: b[i, j] + 1, name="C")
    s = te.create_schedule(c.op)
    s[b].storage_align(b.op.axis[0], 8, 1)
    func = te.schedule.lower_schedule(s, [a, c])
    assert func.body.attr_key == "buffer_dim_align"
    assert func.body.node is func.body.body.buffer
    assert [arg.value for arg in func.body.value.args] == [0, 8, 1]


def _errors() -> list:
    return [
        (lambda st, i, k: st.parallel(k), "parallel requires a loop whose iterations are independent, got k"),
        (lambda st, i, k: st.bind(i, k), "bind requires a thread axis"),
        (lambda st, i, k: st.vectorize(te.reduce_axis((0, 2), "z")), "vectorize requires a loop of stage C, got z"),
        (lambda st, i, k: st.storage_align(te.reduce_axis((0, 2), "z"), 8, 0), "storage_align requires an axis of operation C"),
        (lambda st, i, k: st.storage_align(i, 0, 0), "storage_align requires a positive factor, got 0"),
        (lambda st, i, k: st.pragma("i", "x"), "pragma requires an axis of stage C"),
    ]  # fmt: skip


@pytest.mark.parametrize(("misuse", "message"), _errors())
def test_misuse_is_rejected(misuse, message) -> None:
    _, _, c = matmul()
    s = te.create_schedule(c.op)
    with pytest.raises(ScheduleError) as error:
        misuse(s[c], c.op.axis[0], c.op.reduce_axis[0])
    assert message in str(error.value) and "stage C" in str(error.value)


def test_double_buffers_are_read_under_the_masks_of_vectors() -> None:
    a = te.placeholder((4, 6), name="A")
    b = te.compute((4, 6), lambda i, j: a[i, j] * 2, name="B")
    inside = lambda j: te.all(j >= 1, j < 7)  # noqa: E731
    c = te.compute((4, 8), lambda i, j: te.if_then_else(inside(j), b[i, j - 1], 0.0), name="C")
    s = te.create_schedule(c.op)
    s[b].set_scope("local")
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].double_buffer()
    s[c].vectorize(c.op.axis[1])
    x = np.random.default_rng(0).random((4, 6), "float32")
    out = tvm.nd.empty((4, 8))
    tvm.build(s, [a, c], "llvm")(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), np.pad(x * 2, ((0, 0), (1, 1))))
    text = str(tvm.lower(s, [a, c]))
    assert "vload" in text and "predicate=" in text
