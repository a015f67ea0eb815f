import numpy as np
import pytest

from tvm import te
from tvm.error import ScheduleError

from ..outline import expect, lowered
from ..programs import chain, check_chain, check_matmul, matmul, run


def test_cache_read_copies_for_the_readers() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    copy = s.cache_read(b, "local", [c])
    assert copy.op.name == "B.local"
    s[copy].compute_at(s[c], c.op.axis[0])
    assert lowered(s, [a, c]) == expect("""
        realize B[10]
          for i in serial(10)
            store B
          for i in serial(10)
            realize B.local[1] in local
              store B.local
              store C
    """)
    check_chain(s, a, c)


def test_cache_read_for_readers_that_read_each_other() -> None:
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: a[i] * 1, name="B")
    c = te.compute((10,), lambda i: b[i] + a[i] + 1, name="C")
    s = te.create_schedule(c.op)
    s.cache_read(a, "global", [b, c])
    check_chain(s, a, c)


def test_cache_read_after_the_source_was_replaced() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s.cache_write(b, "local")
    s.cache_read(b, "shared", [c])
    check_chain(s, a, c)


def test_cache_write_computes_in_the_cache() -> None:
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    cache = s.cache_write(c, "local")
    assert [iv.var.name for iv in cache.op.axis] == ["i.c", "j.c"]
    assert lowered(s, [a, b, c]) == expect("""
        realize C.local[8, 6] in local
          for i.c in serial(8)
            for j.c in serial(6)
              store C.local
              for k in serial(10)
                store C.local
          for i in serial(8)
            for j in serial(6)
              store C
    """)
    check_matmul(s, a, b, c)


def test_cache_write_has_the_layout_of_the_loops() -> None:
    a, b, c = matmul(7, 6)
    s = te.create_schedule(c.op)
    _, _ = s[c].split(c.op.axis[0], factor=4)
    cache = s.cache_write(c, "global")
    assert [int(d) for d in cache.shape] == [2, 4, 6]
    assert [iv.var.name for iv in s[c].leaf_iter_vars] == ["i", "j"]
    check_matmul(s, a, b, c)


def test_cache_write_of_a_padded_layout_reads_nothing_beyond() -> None:
    a, _, c = chain(10)
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], factor=4)
    s.cache_write(c, "global")
    check_chain(s, a, c)


def test_cache_write_of_all_outputs() -> None:
    a = te.placeholder((5,), name="A")
    b, c = te.compute((5,), lambda i: (a[i] + 1, a[i] * 2), name="T")
    s = te.create_schedule(b.op)
    first, second = s.cache_write([b, c], "local")
    assert first.op is second.op and first.op.name == "T.local"
    x = np.arange(5, dtype="float32")
    got = run(s, [a, b, c], x)
    np.testing.assert_array_equal(got, [x + 1, x * 2])


def test_old_handles_find_their_stage() -> None:
    _, _, c = matmul()
    s = te.create_schedule(c.op)
    stage = s[c]
    s.cache_write(c, "local")
    assert s[c] is stage and s[c].op is not c.op and s.outputs == [s[c].op]


def _errors() -> list:
    return [
        (lambda s, a, b, c: s.cache_read(a, "local", [c]), "cache_read requires readers of A, got C, which reads B"),
        (lambda s, a, b, c: s.cache_write(a, "local"), "cache_write requires a compute, got A"),
        (lambda s, a, b, c: s.cache_write([b, c], "local"), "cache_write requires outputs of one operation"),
        (lambda s, a, b, c: s.cache_write([], "local"), "cache_write requires at least one tensor"),
    ]  # fmt: skip


@pytest.mark.parametrize(("misuse", "message"), _errors())
def test_misuse_is_rejected(misuse, message) -> None:
    a, b, c = chain()
    with pytest.raises(ScheduleError) as error:
        misuse(te.create_schedule(c.op), a, b, c)
    assert message in str(error.value)


def test_cache_write_of_some_outputs_is_rejected() -> None:
    b, c = te.compute((5,), lambda i: (i, i * 2), name="T")
    with pytest.raises(ScheduleError, match="cache_write requires all 2 outputs of T, got 1"):
        te.create_schedule(b.op).cache_write(c, "local")


def test_cache_write_after_the_reduction_was_split_is_rejected() -> None:
    _, _, c = matmul()
    s = te.create_schedule(c.op)
    s[c].split(c.op.reduce_axis[0], 2)
    with pytest.raises(ScheduleError, match="cache_write requires untouched reduction axes"):
        s.cache_write(c, "local")


def test_the_tail_of_a_cache_begins_with_nothing() -> None:
    a, bias = te.placeholder((5, 3), name="A"), te.placeholder((5,), name="bias")
    k = te.reduce_axis((0, 3), name="k")
    c = te.compute((5,), lambda i: te.sum(a[i, k], axis=k, init=bias[i]), name="C")
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], factor=3)
    s.cache_write(c, "global")
    data, first = np.ones((5, 3), "float32"), np.arange(5, dtype="float32")
    np.testing.assert_array_equal(run(s, [a, bias, c], data, first)[0], first + 3)


def test_cache_write_of_a_reduction_whose_combiner_knows_the_position() -> None:
    x = te.placeholder((6,), name="X")

    def largest_above(n):
        k = te.reduce_axis((0, n + 1), name="k")
        reducer = te.comm_reducer(
            lambda p, q: te.max(te.max(p, q), n.astype("float32")), lambda dtype: te.const(0, dtype)
        )
        return reducer(x[k], axis=k)

    y = te.compute((6,), largest_above, name="Y")
    value = np.array([3, 0, 0, 0, 9, 0], "float32")
    expected = np.maximum(np.maximum.accumulate(value), np.arange(6))
    s = te.create_schedule(y.op)
    np.testing.assert_array_equal(run(s, [x, y], value)[0], expected)
    s.cache_write(y, "local")
    np.testing.assert_array_equal(run(s, [x, y], value)[0], expected)


def test_copies_for_other_readers_have_names_of_their_own() -> None:
    a = te.placeholder((8,), name="A")
    b, c, d = [te.compute((8,), lambda i: a[i] + 1.0, name=name) for name in "BCD"]
    s = te.create_schedule([b.op, c.op, d.op])
    copies = [s.cache_read(a, "shared", [op]) for op in (b.op, c.op, d.op)]
    assert [copy.op.name for copy in copies] == ["A.shared", "A.d.shared", "A.d.d.shared"]
