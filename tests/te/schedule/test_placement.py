import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError

from ..outline import expect, lowered
from ..programs import chain, check_chain, check_matmul, matmul, run


def test_compute_at_provides_what_one_iteration_needs() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    assert lowered(s, [a, c]) == expect("""
        for i.outer in serial(3)
          realize B[4]
            for i in serial(4)
              if likely
                store B
            for i.inner in serial(4)
              if likely
                store C
    """)
    check_chain(s, a, c)


def test_compute_at_computes_nothing_for_iterations_beyond_the_end() -> None:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((n,), lambda i: b[i] * 2.0, name="C")
    s = te.create_schedule(c.op)
    tile, _ = s[c].split(c.op.axis[0], factor=4)
    _, tile = s[c].split(tile, nparts=3)  # of few tiles, the last part may have none
    s[b].compute_at(s[c], tile)
    assert lowered(s, [a, c]) == expect("""
        for i.outer.outer in serial(3)
          for i.outer.inner in serial(?)
            if likely
              realize B[4]
                for i in serial(4)
                  if likely
                    if likely
                      store B
                for i.inner in serial(4)
                  if likely
                    store C
    """)
    built = tvm.build(s, [a, c], "llvm")
    for size in range(1, 30):
        data, out = np.random.rand(size).astype("float32"), tvm.nd.empty((size,))
        built(tvm.nd.array(data), out)
        np.testing.assert_allclose(out.numpy(), (data + 1) * 2, rtol=1e-6)


def test_compute_at_leaves_sums_of_nothing_their_first_value() -> None:
    n, k = te.var("n"), te.var("k")
    a = te.placeholder((n, k), name="A")
    b = te.compute((n, k), lambda i, j: a[i, j] * 2.0, name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n,), lambda i: te.sum(b[i, r], axis=r), name="C")
    s = te.create_schedule(c.op)
    s[c].split(r, factor=4)
    s[b].compute_at(s[c], c.op.axis[0])
    built = tvm.build(s, [a, c], "llvm")
    for terms in (0, 3, 4, 9):
        out = tvm.nd.array(np.full(3, 7, "float32"))
        built(tvm.nd.array(np.ones((3, terms), "float32")), out)
        assert out.numpy().tolist() == [2.0 * terms] * 3


def test_compute_at_a_fused_loop_computes_what_its_iterations_read() -> None:
    a = te.placeholder((35,), name="A")
    b = te.compute((35,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((5, 7), lambda y, x: b[y * 7 + x] * 2.0, name="C")
    s = te.create_schedule(c.op)
    tile, _ = s[c].split(s[c].fuse(*c.op.axis), factor=4)
    s[b].compute_at(s[c], tile)
    assert lowered(s, [a, c]) == expect("""
        for y.x.fused.outer in serial(9)
          realize B[4]
            for i in serial(4)
              if likely
                store B
            for y.x.fused.inner in serial(4)
              if likely
                store C
    """)


def test_compute_at_innermost_keeps_one_element() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    assert lowered(s, [a, c]) == expect("""
        for i in serial(10)
          realize B[1]
            store B
            store C
    """)
    check_chain(s, a, c)


def test_compute_at_provides_neighbours() -> None:
    a = te.placeholder((12,), name="A")
    b = te.compute((12,), lambda i: a[i] * 2, name="B")
    c = te.compute((10,), lambda i: b[i] + b[i + 2], name="C")
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    assert "realize B[6]" in lowered(s, [a, c])
    x = np.arange(12, dtype="float32")
    (result,) = run(s, [a, c], x)
    np.testing.assert_array_equal(result, x[:10] * 2 + x[2:] * 2)


def test_only_what_is_read_is_computed() -> None:
    a = te.placeholder((12,), name="A")
    b = te.compute((12,), lambda i: a[i] * 2, name="B")
    c = te.compute((3,), lambda i: b[i * 2 + 1], name="C")
    s = te.create_schedule(c.op)
    assert lowered(s, [a, c]).startswith("realize B[5]\n  for i in serial(5)")
    x = np.arange(12, dtype="float32")
    (result,) = run(s, [a, c], x)
    np.testing.assert_array_equal(result, x[1:6:2] * 2)


def test_compute_at_a_reduction_loop() -> None:
    a, b, c = matmul(4, 4, 6)
    s = te.create_schedule(c.op)
    copy = s.cache_read(a, "global", [c])
    outer, inner = s[c].split(c.op.reduce_axis[0], factor=2)
    s[c].reorder(outer, *c.op.axis, inner)
    s[copy].compute_at(s[c], outer)
    assert lowered(s, [a, b, c]) == expect("""
        for i.init in serial(4)
          for j.init in serial(4)
            store C
        for k.outer in serial(3)
          realize A.global[4, 2]
            for ax0 in serial(4)
              for ax1 in serial(2)
                store A.global
            for i in serial(4)
              for j in serial(4)
                for k.inner in serial(2)
                  store C
    """)
    check_matmul(s, a, b, c)


def test_compute_at_nests() -> None:
    a, b, c = chain()
    d = te.compute((10,), lambda i: c[i] * 1, name="D")
    s = te.create_schedule(d.op)
    outer, _ = s[d].split(d.op.axis[0], factor=5)
    s[c].compute_at(s[d], outer)
    s[b].compute_at(s[c], c.op.axis[0])
    assert lowered(s, [a, d]) == expect("""
        for i.outer in serial(2)
          realize C[5]
            for i in serial(5)
              realize B[1]
                store B
                store C
            for i.inner in serial(5)
              store D
    """)
    check_chain(s, a, d)


def test_attach_point_may_be_split_later() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[c].split(c.op.axis[0], factor=4)
    check_chain(s, a, c)


def test_stages_at_one_loop_run_in_order() -> None:
    a, b, c = chain()
    d = te.compute((10,), lambda i: c[i] + b[i], name="D")
    s = te.create_schedule(d.op)
    s[b].compute_at(s[d], d.op.axis[0])
    s[c].compute_at(s[d], d.op.axis[0])
    assert lowered(s, [a, d]) == expect("""
        for i in serial(10)
          realize B[1]
            store B
            realize C[1]
              store C
              store D
    """)


def test_compute_inline() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    assert lowered(s, [a, c]) == expect("""
        for i in serial(10)
          store C
    """)
    check_chain(s, a, c)


def test_compute_inline_into_a_reduction() -> None:
    a, b, _ = matmul()
    k = te.reduce_axis((0, 10), name="k")
    double = te.compute((8, 10), lambda i, j: a[i, j] * 2, name="double")
    d = te.compute((8, 6), lambda i, j: te.sum(double[i, k] * b[k, j], axis=k), name="D")
    s = te.create_schedule(d.op)
    s[double].compute_inline()
    x, y = np.ones((8, 10), "float32"), np.ones((10, 6), "float32")
    (result,) = run(s, [a, b, d], x, y)
    np.testing.assert_allclose(result, x @ y * 2)


def test_compute_inline_with_other_index_dtype() -> None:
    a, b, _ = chain()
    c = te.compute((10,), lambda i: b[i.astype("int64")] + 1, name="C")
    s = te.create_schedule(c.op)
    s[b].compute_inline()
    check_chain(s, a, c)


def test_compute_root_takes_a_stage_out() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[b].compute_root()
    assert lowered(s, [a, c]).startswith("realize B[10]")


def test_set_scope() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].set_scope("local")
    assert lowered(s, [a, c]).startswith("realize B[10] in local")


def test_double_buffer_and_store_predicate() -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    s[b].double_buffer()
    s[b].set_store_predicate(b.op.axis[0].var < 10)
    assert lowered(s, [a, c]) == expect("""
        realize B[10]
          attr B double_buffer_scope = 1
            for i in serial(10)
              if
                store B
          for i in serial(10)
            store C
    """)


def _errors() -> list:
    return [
        (
            lambda s, a, b, c: s[b].compute_at(s[b], b.op.axis[0]),
            "compute_at requires another stage",
        ),
        (
            lambda s, a, b, c: s[b].compute_at(s[c], b.op.axis[0]),
            "compute_at requires a loop of stage C, got i",
        ),
        (
            lambda s, a, b, c: s[b].compute_at(c, b.op.axis[0]),
            "compute_at requires a stage, got a value of Tensor",
        ),
        (lambda s, a, b, c: s[c].compute_at(s[b], b.op.axis[0]), "got output C"),
        (lambda s, a, b, c: s[a].compute_at(s[c], c.op.axis[0]), "got placeholder A"),
        (lambda s, a, b, c: s[a].compute_inline(), "got placeholder A"),
        (lambda s, a, b, c: s[c].compute_inline(), "got output C"),
        (lambda s, a, b, c: s[c].double_buffer(), "got output C"),
        (
            lambda s, a, b, c: s[c].set_scope("local"),
            "set_scope requires a stage that is kept inside",
        ),
    ]


@pytest.mark.parametrize(("misuse", "message"), _errors())
def test_misuse_is_rejected(misuse, message) -> None:
    a, b, c = chain()
    s = te.create_schedule(c.op)
    with pytest.raises(ScheduleError) as error:
        misuse(s, a, b, c)
    assert message in str(error.value) and "in stage" in str(error.value)


def test_reductions_cannot_be_inlined() -> None:
    _, _, c = matmul()
    d = te.compute((8, 6), lambda i, j: c[i, j] + 1, name="D")
    s = te.create_schedule(d.op)
    with pytest.raises(ScheduleError, match="requires an element-wise compute, got C, a reduction"):
        s[c].compute_inline()


def test_what_an_extern_reads_cannot_be_inlined() -> None:
    a, b, _ = chain()
    d = te.extern((10,), [b], lambda i, o: te.const(0), name="D")
    s = te.create_schedule(d.op)
    s[b].compute_inline()
    with pytest.raises(ScheduleError, match="got B, which D, a ExternOp, needs in memory"):
        te.schedule.lower_schedule(s, [a, d])


def test_a_reader_outside_the_attach_point_is_rejected() -> None:
    a, b, c = chain()
    d = te.compute((10,), lambda i: b[i] - 1, name="D")
    s = te.create_schedule([c.op, d.op])
    s[b].compute_at(s[c], c.op.axis[0])
    with pytest.raises(ScheduleError, match="got D outside"):
        te.schedule.lower_schedule(s, [a, c, d])


def test_attaching_to_an_inlined_stage_is_rejected() -> None:
    a, b, c = chain()
    d = te.compute((10,), lambda i: c[i] * 1, name="D")
    s = te.create_schedule(d.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[c].compute_inline()
    with pytest.raises(ScheduleError, match="compute_at requires a stage with loops, got C"):
        te.schedule.lower_schedule(s, [a, d])


def test_attaching_in_a_circle_is_rejected() -> None:
    a, b, c = chain()
    d = te.compute((10,), lambda i: c[i] * 1, name="D")
    s = te.create_schedule(d.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[c].compute_at(s[b], b.op.axis[0])
    with pytest.raises(ScheduleError, match="compute_at requires stages without a cycle"):
        te.schedule.lower_schedule(s, [a, d])


def test_threads_that_run_only_inside_are_provided_for() -> None:
    a, b, c = chain(12)
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].bind(outer, te.thread_axis("threadIdx.y"))
    s[c].bind(inner, te.thread_axis("threadIdx.x"))
    s[b].compute_at(s[c], outer)
    assert lowered(s, [a, c]) == expect("""
        attr threadIdx.y thread_extent = 3
          realize B[4] in local
            for i in serial(4)
              store B
            attr threadIdx.x thread_extent = 4
              store C
    """)
    x = np.arange(12, dtype="float32")
    np.testing.assert_array_equal(run(s, [a, c], x)[0], x * 2 + 1)


def test_threads_do_not_share_memory_of_their_own() -> None:
    a, b, c = chain(12)
    s = te.create_schedule(c.op)
    s[b].set_scope("local")
    s[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(ScheduleError) as error:
        lowered(s, [a, c])
    assert str(error.value).splitlines()[0] == (
        "bind of i requires memory that threadIdx.x shares, as i runs over 12 elements, "
        "got scope local"
    )


def picked_rows() -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Tensor, te.Tensor]:
    """row = table % 4, B = A * 2, C = B[row]"""
    a, table = te.placeholder((4, 3), name="A"), te.placeholder((5,), "int32", "table")
    row = te.compute((5,), lambda i: te.indexmod(table[i], 4), name="row")
    b = te.compute((4, 3), lambda i, j: a[i, j] * 2, name="B")
    return a, table, row, b, te.compute((5, 3), lambda i, j: b[row[i], j] + 1, name="C")


def test_what_a_stage_computes_says_nothing_of_ranges_outside() -> None:
    a, table, row, b, c = picked_rows()
    data, rows = np.arange(12, dtype="float32").reshape(4, 3), np.array([3, 0, 6, 1, 9], "int32")
    for place in (row, b):
        s = te.create_schedule(c.op)
        s[place].compute_at(s[c], c.op.axis[0])
        np.testing.assert_array_equal(run(s, [a, table, c], data, rows)[0], data[rows % 4] * 2 + 1)


def test_rows_of_a_table_are_not_read_beyond_its_end() -> None:
    a, table, row, b, c = picked_rows()
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=3)
    s[c].reorder(c.op.axis[1], outer)
    s[row].compute_inline()
    s[b].compute_at(s[c], s[c].leaf_iter_vars[-1])
    data, rows = np.arange(12, dtype="float32").reshape(4, 3), np.array([3, 0, 6, 1, 9], "int32")
    np.testing.assert_array_equal(run(s, [a, table, c], data, rows)[0], data[rows % 4] * 2 + 1)


def test_a_part_whose_end_is_an_element_is_all() -> None:
    a, count = te.placeholder((6,), name="A"), te.placeholder((5,), "int32", "count")
    b = te.compute((6,), lambda i: a[i] * 2, name="B")

    def row(i: tvm.tir.Var) -> tvm.ir.PrimExpr:
        k = te.reduce_axis((0, count[i]), name="k")
        return te.sum(b[k], axis=k)

    c = te.compute((5,), row, name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=3)
    s[b].compute_at(s[c], inner)
    data, rows = np.arange(6, dtype="float32"), np.array([3, 0, 6, 1, 2], "int32")
    expected = [2 * data[:size].sum() for size in rows]
    np.testing.assert_array_equal(run(s, [a, count, c], data, rows)[0], expected)
    assert outer.var.name == "i.outer"


def test_what_a_reduction_begins_with_is_not_computed_inside_it() -> None:
    a, bias = te.placeholder((4, 6), name="A"), te.placeholder((4,), name="bias")
    start = te.compute((4,), lambda i: bias[i] * 2, name="start")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=k, init=start[i]), name="C")
    s = te.create_schedule(c.op)
    s[start].compute_at(s[c], k)
    message = "compute_at requires a loop of C outside its reduction, where its init reads start"
    with pytest.raises(ScheduleError, match=message):
        te.schedule.lower_schedule(s, [a, bias, c])
    s[start].compute_at(s[c], c.op.axis[0])
    data, first = np.ones((4, 6), "float32"), np.arange(4, dtype="float32")
    np.testing.assert_array_equal(run(s, [a, bias, c], data, first)[0], first * 2 + 6)


def test_a_part_of_something_empty_needs_no_memory() -> None:
    n = te.var("n")
    a, b, c = chain(n)
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=2)
    s[c].reorder(inner, outer)
    s[b].compute_at(s[c], inner)
    empty = np.zeros(0, "float32")
    tvm.tir.interp.interpret(te.schedule.lower_schedule(s, [a, c]), empty, empty)
    func = tvm.build(s, [a, c], "llvm")
    for size in (0, 5):
        out = tvm.nd.empty((size,))
        func(tvm.nd.array(np.ones(size, "float32")), out)
        np.testing.assert_array_equal(out.numpy(), np.full(size, 3, "float32"))


def test_statements_get_all_of_what_others_read_in_part() -> None:
    n = te.size_var("n")
    a = te.placeholder((2, n), name="A")
    b = te.compute((2, n), lambda i, j: a[i, j] * 2, name="B")

    def copy(ins: list, outs: list) -> tvm.tir.Stmt:
        ib = tvm.tir.ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 2, name="x") as x, ib.for_range(0, n, name="y") as y:
            target[x, y] = source[1 - x, n - 1 - y]
        return ib.get()

    turned = te.extern((2, n), [b], copy, name="turned", dtype="float32")
    c = te.compute((2, n), lambda i, j: turned[i, j] + b[i, j], name="C")
    s = te.create_schedule(c.op)
    cache = s.cache_write(c, "local")
    outer, rest = s[c].split(c.op.axis[1], nparts=2)
    inner, _ = s[c].split(rest, factor=4)
    s[cache].compute_at(s[c], inner)
    data = np.arange(14, dtype="float32").reshape(2, 7)
    out = np.zeros((2, 7), "float32")
    # what is read a tile at a time reaches beyond the row, but statements take rows of n elements
    tvm.tir.interp.interpret(te.schedule.lower_schedule(s, [a, c]), data, out)
    np.testing.assert_array_equal(out, 2 * data + 2 * data[::-1, ::-1])


def test_a_condition_of_a_reduction_stands_outside_the_loops_that_do_not_change_it() -> None:
    a = te.placeholder((5, 6), name="A")
    k, r = te.reduce_axis((0, 3), name="k"), te.reduce_axis((0, 6), name="r")
    is_inside = tvm.tir.all(k.var <= 1)
    b = te.compute(
        (5,),
        lambda i: te.sum(a[i, r], axis=[k, r], where=tvm.tir.all(i + k >= 2, is_inside)),
        name="B",
    )
    s = te.create_schedule(b.op)
    assert lowered(s, [a, b]) == expect("""
        for i in serial(5)
          store B
          for k in serial(3)
            if
              for r in serial(6)
                store B
    """)
    x = np.arange(30, dtype="float32").reshape(5, 6)
    (result,) = run(s, [a, b], x)
    np.testing.assert_array_equal(result, x.sum(1) * [0, 1, 2, 2, 2])


def test_a_condition_that_reads_elements_stays_at_the_update() -> None:
    a, m = te.placeholder((4, 6), name="A"), te.placeholder((4,), name="M", dtype="int32")
    r = te.reduce_axis((0, 6), name="r")
    b = te.compute((4,), lambda i: te.sum(a[i, r], axis=r, where=m[i] > 0), name="B")
    s = te.create_schedule(b.op)
    assert lowered(s, [a, m, b]) == expect("""
        for i in serial(4)
          store B
          for r in serial(6)
            if
              store B
    """)
    x, mask = np.arange(24, dtype="float32").reshape(4, 6), np.array([0, 1, 0, 2], "int32")
    (result,) = run(s, [a, m, b], x, mask)
    np.testing.assert_array_equal(result, x.sum(1) * (mask > 0))
