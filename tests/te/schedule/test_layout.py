import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError

from ..outline import expect, lowered
from ..programs import chain, check_chain, check_matmul, matmul, run


def plane(rows: int = 8, cols: int = 6) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A -> B = A * 2 -> C = B + 1."""
    a = te.placeholder((rows, cols), name="A")
    b = te.compute((rows, cols), lambda i, j: a[i, j] * 2, name="B")
    return a, b, te.compute((rows, cols), lambda i, j: b[i, j] + 1, name="C")


def check(s: te.Schedule, a: te.Tensor, c: te.Tensor) -> None:
    x = np.random.default_rng(0).random([int(d) for d in a.shape], "float32")
    func = te.schedule.lower_schedule(s, [a, c])
    out = np.zeros([int(d) for d in c.shape], "float32")
    tvm.tir.interp.interpret(func, x, out)
    np.testing.assert_allclose(out, x * 2 + 1)
    result = tvm.nd.empty(out.shape)
    tvm.build(s, [a, c], "llvm")(tvm.nd.array(x), result)
    np.testing.assert_allclose(result.numpy(), x * 2 + 1)


def test_loops_follow_the_layout() -> None:
    a, b, c = plane()
    s = te.create_schedule(c.op)
    loops = s[b].transform_layout(lambda i, j: [i // 4, j, i % 4])
    assert loops is not None
    s[b].vectorize(loops[-1])
    assert lowered(s, [a, c]) == expect("""
        realize B[2, 6, 4]
          for axis0 in serial(2)
            for axis1 in serial(6)
              for axis2 in vectorized(4)
                store B
          for i in serial(8)
            for j in serial(6)
              store C
    """)
    check(s, a, c)


def test_padding_is_guarded() -> None:
    a, b, c = plane(7, 5)
    s = te.create_schedule(c.op)
    s[b].transform_layout(lambda i, j: [i // 4, j, i % 4])
    text = lowered(s, [a, c])
    assert "realize B[2, 5, 4]" in text and "if likely" in text
    check(s, a, c)


def test_layouts_of_stages_inside_loops() -> None:
    a, b, c = plane()
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    s[b].transform_layout(lambda i, j: [j, i])
    assert "realize B[6, 4]" in lowered(s, [a, c])
    check(s, a, c)


def test_layouts_of_arguments_change_their_shape() -> None:
    a, b, c = plane()
    s = te.create_schedule(c.op)
    s[a].transform_layout(lambda i, j: [j, i])
    s[c].transform_layout(lambda i, j: [i // 2, j, i % 2])
    func = te.schedule.lower_schedule(s, [a, c])
    shapes = [[int(d) for d in func.buffer_map[p].shape] for p in func.params]
    assert shapes == [[6, 8], [4, 6, 2]] and b is not c
    x = np.random.default_rng(0).random((8, 6), "float32")
    out = tvm.nd.empty((4, 6, 2))
    tvm.build(s, [a, c], "llvm")(tvm.nd.array(np.ascontiguousarray(x.T)), out)
    expected = (x * 2 + 1).reshape(4, 2, 6).transpose(0, 2, 1)
    np.testing.assert_allclose(out.numpy(), expected)


def test_separators_reach_the_buffer() -> None:
    a, b, c = plane()
    s = te.create_schedule(c.op)
    s[c].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])
    func = te.schedule.lower_schedule(s, [a, c])
    buffer = func.buffer_map[func.params[1]]
    assert [int(position) for position in buffer.axis_separators] == [1] and b is not a


def test_transformed_loops_leave_the_memory_to_the_layout() -> None:
    a, b, c = matmul(8, 6, 10)
    s = te.create_schedule(c.op)
    copy = s.cache_read(b, "global", [c])
    assert s[copy].transform_layout(lambda k, j: [j // 2, k, j % 2]) is not None
    s[copy].transform_layout(lambda jo, k, ji: [jo, ji, k])
    check_matmul(s, a, b, c)
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].split(b.op.axis[0], factor=4)
    assert s[b].transform_layout(lambda i: [i // 5, i % 5]) is None
    check_chain(s, a, c)
    a, b, c = plane()
    s = te.create_schedule(c.op)
    s[b].reorder(*reversed(b.op.axis))
    assert s[b].transform_layout(lambda i, j: [j, i]) is None
    check(s, a, c)


def test_symbolic_sizes_keep_their_loops() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2, name="B")
    c = te.compute((n,), lambda i: b[i] + 1, name="C")
    s = te.create_schedule(c.op)
    assert s[b].transform_layout(lambda i: [i // 4, i % 4]) is None
    x, out = np.arange(11, dtype="float32"), tvm.nd.empty((11,))
    tvm.build(s, [a, c], "llvm")(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), x * 2 + 1)


def test_misuse_is_rejected() -> None:
    a, b, c = plane()
    s = te.create_schedule(c.op)

    for mapping, text in (
        (lambda i: [i], "an index map of 2 dimensions is required, got 1"),
        (
            lambda i, j: [i // 2, j],
            r"requires a place of its own for each element, got \[i // 2, j",
        ),
        (lambda i, j: [i + 1, j], "requires indices that begin with 0, got i . 1 for B"),
        (None, "requires a function of 2 indices"),
    ):
        with pytest.raises(ScheduleError, match=text):
            s[b].transform_layout(mapping)
    out = te.extern((8, 6), [b], lambda ins, outs: tvm.tir.Evaluate(0), name="E")
    s = te.create_schedule(out.op)
    with pytest.raises(ScheduleError, match="transform_layout requires a compute or placeholder"):
        s[out].transform_layout(lambda i, j: [j, i])
    assert a is not c


def test_loops_of_a_layout_count_from_the_part_that_is_needed() -> None:
    a = te.placeholder((8, 3), name="A")
    b = te.compute((8, 3), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((4, 3), lambda i, j: b[i + 3, j] + 1, name="C")
    s = te.create_schedule(c.op)
    copy = s.cache_read(a, "global", [b])
    _, last = s[b].transform_layout(lambda i, j: [j, i])
    s[copy].compute_at(s[b], last)
    data = np.arange(24, dtype="float32").reshape(8, 3)
    (result,) = run(s, [a, c], data)
    np.testing.assert_array_equal(result, data[3:7] * 2 + 1)


def test_a_layout_in_blocks_of_a_part_that_begins_inside_a_block() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] * 2, name="B")
    c = te.compute((4,), lambda i: b[i + 3] + 1, name="C")
    s = te.create_schedule(c.op)
    s[b].transform_layout(lambda i: [i // 4, i % 4])
    data = np.arange(8, dtype="float32")
    (result,) = run(s, [a, c], data)
    np.testing.assert_array_equal(result, data[3:7] * 2 + 1)


def test_a_layout_of_a_part_of_an_array_with_wide_indices() -> None:
    rows = tvm.tir.const(8, "int64")
    a = te.placeholder((rows,), name="A")
    b = te.compute((rows,), lambda i: a[i] * 2, name="B")
    c = te.compute((tvm.tir.const(4, "int64"),), lambda i: b[i + 3] + 1, name="C")
    s = te.create_schedule(c.op)
    for axis in s[b].transform_layout(lambda i: [i // 4, i % 4]):
        assert axis.var.dtype == "int64"
    out = tvm.nd.empty((4,))
    tvm.build(s, [a, c], "llvm")(tvm.nd.array(np.arange(8, dtype="float32")), out)
    np.testing.assert_array_equal(out.numpy(), np.arange(3, 7) * 2 + 1)


def test_a_layout_of_a_part_in_front_of_the_first_element() -> None:
    a = te.placeholder((1,), name="A")
    c = te.compute((1,), lambda i: te.if_then_else(i > 0, a[i - 1], 5.0), name="C")
    s = te.create_schedule(c.op)
    copy = s.cache_read(a, "global", [c])
    s[copy].compute_at(s[c], c.op.axis[0])
    s[copy].transform_layout(lambda i: [i // 2, i % 2])
    (result,) = run(s, [a, c], np.ones(1, "float32"))
    np.testing.assert_array_equal(result, [5])


def test_loops_longer_than_a_layout_repeat_nothing() -> None:
    a, b, c = matmul(1, 1, 5)
    s = te.create_schedule(c.op)
    _, last = s[c].transform_layout(lambda i, j: [j, i])
    _, inner = s[c].split(last, factor=2)
    s[c].bind(inner, te.thread_axis((0, 2), "vthread"))
    s[c].reorder(c.op.reduce_axis[0], inner)
    check_matmul(s, a, b, c)


def test_threads_over_a_layout_whose_extent_turns_out_constant() -> None:
    rows = tvm.tir.const(6, "int64")
    a = te.placeholder((rows,), name="A")
    b = te.compute((rows,), lambda i: a[i] * 2, name="B")
    c = te.compute((tvm.tir.const(4, "int64"),), lambda i: b[i] + b[i + 2], name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    block, _ = s[b].transform_layout(lambda i: [i // 8, i % 8])
    s[b].bind(block, te.thread_axis("vthread"))
    data = np.arange(6, dtype="float32")
    (result,) = run(s, [a, c], data)
    np.testing.assert_array_equal(result, data[:4] * 2 + data[2:] * 2)


def test_a_layout_of_one_element_and_what_is_needed_in_front_of_it() -> None:
    a = te.placeholder((1, 3), name="A")
    k = te.reduce_axis((0, 3), name="k")
    b = te.compute((1,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((1,), lambda i: te.if_then_else(i > 0, b[i - 1], b[i] * 2), name="C")
    s = te.create_schedule(c.op)
    (loop,) = s[b].transform_layout(lambda i: [i])
    s[b].reorder(k, loop)
    (result,) = run(s, [a, c], np.ones((1, 3), "float32"))
    np.testing.assert_array_equal(result, [6])
