import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import ScheduleError

from ..outline import expect, lowered
from ..programs import chain, check_chain, check_matmul, matmul, run


def _one_stage(size: int = 10) -> tuple:
    a = te.placeholder((size,), name="A")
    c = te.compute((size,), lambda i: a[i] * 2 + 1, name="C")
    return a, c, te.create_schedule(c.op)


def test_split_by_factor_guards_the_tail() -> None:
    a, c, s = _one_stage()
    s[c].split(c.op.axis[0], factor=4)
    assert lowered(s, [a, c]) == expect("""
        for i.outer in serial(3)
          for i.inner in serial(4)
            if likely
              store C
    """)
    check_chain(s, a, c)


def test_split_that_divides_needs_no_guard() -> None:
    a, c, s = _one_stage()
    s[c].split(c.op.axis[0], factor=5)
    assert lowered(s, [a, c]) == expect("""
        for i.outer in serial(2)
          for i.inner in serial(5)
            store C
    """)


def test_split_by_nparts() -> None:
    a, c, s = _one_stage()
    s[c].split(c.op.axis[0], nparts=4)
    assert lowered(s, [a, c]) == expect("""
        for i.outer in serial(4)
          for i.inner in serial(3)
            if likely
              store C
    """)
    check_chain(s, a, c)


def test_split_beyond_the_extent_makes_the_loop_no_longer() -> None:
    a, c, s = _one_stage(3)
    s[c].split(c.op.axis[0], factor=16)
    assert lowered(s, [a, c]) == expect("""
        for i.inner in serial(3)
          store C
    """)
    check_chain(s, a, c)


def test_split_of_an_inner_part_that_does_not_divide_repeats_nothing() -> None:
    a, b, c = matmul(5, 5, 10)
    s = te.create_schedule(c.op)
    _, inner = s[c].split(s[c].op.reduce_axis[0], factor=4)
    s[c].split(inner, factor=3)
    check_matmul(s, a, b, c)


def test_split_without_predication() -> None:
    a, c, s = _one_stage()
    s[c].split(c.op.axis[0], factor=4, disable_predication=True)
    assert "likely" not in lowered(s, [a, c])


def test_fuse_and_split_again() -> None:
    a, b, c = matmul(5, 3)
    s = te.create_schedule(c.op)
    fused = s[c].fuse(*c.op.axis)
    assert fused.var.name == "i.j.fused"
    s[c].split(fused, factor=4)
    assert lowered(s, [a, b, c]) == expect("""
        for i.j.fused.outer in serial(4)
          for i.j.fused.inner in serial(4)
            if likely
              store C
              for k in serial(10)
                store C
    """)
    check_matmul(s, a, b, c)


def test_guards_stand_outside_loops_that_do_not_matter() -> None:
    a, b, c = matmul(7, 6, 4)
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].reorder(outer, c.op.reduce_axis[0], inner, c.op.axis[1])
    assert lowered(s, [a, b, c]) == expect("""
        for i.outer in serial(2)
          for i.inner.init in serial(4)
            if likely
              for j.init in serial(6)
                store C
          for k in serial(4)
            for i.inner in serial(4)
              if likely
                for j in serial(6)
                  store C
    """)
    check_matmul(s, a, b, c)


def test_fuse_of_a_spatial_and_a_reduction_loop() -> None:
    a, b, c = matmul(5, 3, 4)
    s = te.create_schedule(c.op)
    s[c].fuse(c.op.axis[1], c.op.reduce_axis[0])
    check_matmul(s, a, b, c)


def test_fuse_takes_any_number_of_loops() -> None:
    a, c, s = _one_stage()
    i = c.op.axis[0]
    assert s[c].fuse(i) is i
    outer, inner = s[c].split(i, 4)
    first, second = s[c].split(inner, 2)
    assert (
        s[c].fuse(outer, first, second).var.name
        == "i.outer.i.inner.outer.fused.i.inner.inner.fused"
    )
    check_chain(s, a, c)


def test_fuse_of_nothing_makes_a_loop_of_one() -> None:
    b = te.compute((), lambda: te.const(3.0, "float32"), name="B")
    s = te.create_schedule(b.op)
    assert s[b].fuse().var.name == "singleton"
    assert lowered(s, [b]) == "store B"


def test_fused_axes_of_huge_tensors_are_int64() -> None:
    a = te.placeholder((1 << 20, 1 << 20), "int8", name="A")
    b = te.compute(a.shape, lambda i, j: a[i, j], name="B")
    s = te.create_schedule(b.op)
    assert s[b].fuse(*b.op.axis).var.dtype == "int64"
    func = te.schedule.lower_schedule(s, [a, b])
    assert func.body.extent.value == 1 << 40


def test_reorder_keeps_other_loops_in_place() -> None:
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    (i, j), (k,) = c.op.axis, c.op.reduce_axis
    s[c].reorder(k, i)
    assert [iv.var.name for iv in s[c].leaf_iter_vars] == ["k", "j", "i"]
    s[c].reorder(i, j)
    assert [iv.var.name for iv in s[c].leaf_iter_vars] == ["k", "i", "j"]
    check_matmul(s, a, b, c)


def test_reduction_loop_outside_initializes_first() -> None:
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    s[c].reorder(c.op.reduce_axis[0], *c.op.axis)
    assert lowered(s, [a, b, c]) == expect("""
        for i.init in serial(8)
          for j.init in serial(6)
            store C
        for k in serial(10)
          for i in serial(8)
            for j in serial(6)
              store C
    """)


def test_tile() -> None:
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    s[c].tile(*c.op.axis, x_factor=4, y_factor=3)
    assert lowered(s, [a, b, c]) == expect("""
        for i.outer in serial(2)
          for j.outer in serial(2)
            for i.inner in serial(4)
              for j.inner in serial(3)
                store C
                for k in serial(10)
                  store C
    """)
    check_matmul(s, a, b, c)


def _errors() -> list:
    return [
        (lambda s, st, i, k: st.split(i), "split requires either factor or nparts, got neither"),
        (lambda s, st, i, k: st.split(i, 2, 3), "split requires either factor or nparts, got both"),
        (lambda s, st, i, k: st.split(i, 0), "split requires a positive factor, got 0"),
        (lambda s, st, i, k: (st.split(i, 2), st.split(i, 2)), "got i, which was split or fused"),
        (
            lambda s, st, i, k: st.split(te.reduce_axis((0, 3), "z"), 2),
            "which is not one of its axes",
        ),
        (
            lambda s, st, i, k: st.split("i", 2),
            "split requires an axis of stage C, got a value of str",
        ),
        (
            lambda s, st, i, k: st.fuse(i, k),
            "fuse requires loops that are consecutive, got i and k",
        ),
        (lambda s, st, i, k: st.fuse(i, i), "fuse requires different loops, got i twice"),
        (lambda s, st, i, k: st.reorder(i, k, i), "reorder requires each loop once, got i twice"),
    ]


@pytest.mark.parametrize(("misuse", "message"), _errors())
def test_misuse_is_rejected(misuse, message) -> None:
    _, _, c = matmul()
    s = te.create_schedule(c.op)
    with pytest.raises(ScheduleError) as error:
        misuse(s, s[c], c.op.axis[0], c.op.reduce_axis[0])
    text = str(error.value)
    assert message in text and "stage C" in text and "tvm." not in text


def test_errors_name_the_loops_there_are() -> None:
    _, _, c = matmul()
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], 4)
    with pytest.raises(ScheduleError, match=r"hint: its loops are i.outer, i.inner, j, k"):
        s[c].split(c.op.axis[0], 4)


def test_bound_loops_cannot_be_split() -> None:
    _, c, s = _one_stage()
    s[c].bind(c.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(ScheduleError, match="got i, which is bound to threadIdx"):
        s[c].split(c.op.axis[0], 4)


def test_int64_loops_keep_their_dtype() -> None:
    size = tir.const(10, "int64")
    a, _, c = chain(size)
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    assert outer.var.dtype == inner.var.dtype == "int64"
    check_chain(s, a, c)


def test_a_loop_fused_with_an_empty_reduction_still_initializes() -> None:
    a, b, c = matmul(4, 3, 0)
    s = te.create_schedule(c.op)
    s[c].fuse(c.op.axis[1], c.op.reduce_axis[0])
    assert lowered(s, [a, b, c]) == expect("""
        for i in serial(4)
          for j.init in serial(3)
            store C
          for j.k.fused in serial(0)
            store C
    """)
    check_matmul(s, a, b, c)


def test_a_loop_of_one_fused_with_a_reduction_and_a_spatial_loop() -> None:
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(s[c].fuse(), factor=4)
    s[c].bind(outer, te.thread_axis("vthread"))
    s[c].reorder(outer, *c.op.axis, c.op.reduce_axis[0], inner)
    s[c].fuse(c.op.axis[1], c.op.reduce_axis[0], inner)
    check_matmul(s, a, b, c)


def rows_of_different_lengths() -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """C[i] = the sum of A[0:count[i]]"""
    a, count = te.placeholder((6,), name="A"), te.placeholder((5,), "int32", "count")

    def row(i: tvm.tir.Var) -> tvm.ir.PrimExpr:
        k = te.reduce_axis((0, count[i]), name="k")
        return te.sum(a[k], axis=k)

    return a, count, te.compute((5,), row, name="C")


@pytest.mark.parametrize("nparts", [None, 2])
def test_rows_of_different_lengths_are_split(nparts: int | None) -> None:
    a, count, c = rows_of_different_lengths()
    s = te.create_schedule(c.op)
    _, i = s[c].split(c.op.axis[0], factor=2)
    by = {"factor": 2} if nparts is None else {"nparts": nparts}
    outer, inner = s[c].split(c.op.reduce_axis[0], **by)
    s[c].reorder(i, inner, outer) if nparts else None
    data, rows = np.arange(6, dtype="float32"), np.array([3, 0, 6, 1, 2], "int32")
    expected = [data[:size].sum() for size in rows]
    np.testing.assert_array_equal(run(s, [a, count, c], data, rows)[0], expected)
    out = tvm.nd.empty((5,))
    tvm.build(s, [a, count, c], "llvm")(tvm.nd.array(data), tvm.nd.array(rows), out)
    np.testing.assert_array_equal(out.numpy(), expected)


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda s, c, i, k: s[c].reorder(k, i), "requires to be inside those that choose the row"),
        (lambda s, c, i, k: s[c].fuse(i, k), "requires to be inside those that choose the row"),
        (
            lambda s, c, i, k: s[c].bind(k, te.thread_axis("threadIdx.x")),
            "bind requires a loop of one extent for all elements, got k of",
        ),
        (
            lambda s, c, i, k: s.rfactor(c, k),
            "rfactor requires a reduction of one extent for all elements, got k of",
        ),
        (
            lambda s, c, i, k: (s[c].split(i, factor=2), s.cache_write(c, "local")),
            "cache_write after a split that does not divide requires a reduction of one extent",
        ),
    ],
)
def test_rows_of_different_lengths_stay_inside_their_row(misuse, message) -> None:
    a, count, c = rows_of_different_lengths()
    s = te.create_schedule(c.op)
    with pytest.raises(ScheduleError, match=message):
        misuse(s, c, c.op.axis[0], c.op.reduce_axis[0])
        te.schedule.lower_schedule(s, [a, count, c])
