import numpy as np
import pytest

from tvm import te, tir
from tvm.error import TVMError
from tvm.tir.interp import interpret

from .programs import run


def test_placeholder_defaults_to_float32() -> None:
    a = te.placeholder((2,))
    assert a.dtype == "float32" and a.op.name == "placeholder"
    assert te.placeholder(3).ndim == 1


def test_placeholder_shape_has_to_be_integral() -> None:
    with pytest.raises(TVMError, match="requires integers as its shape"):
        te.placeholder((te.var("n", "float32"),))


def test_axis_names_come_from_the_function() -> None:
    c = te.compute((2, 3), lambda row, column: row + column)
    assert [iv.var.name for iv in c.op.axis] == ["row", "column"]
    c = te.compute((2, 3), lambda *i: i[0] + i[1])
    assert [iv.var.name for iv in c.op.axis] == ["i0", "i1"]
    c = te.compute((2, 3), lambda n, *i: n + i[0], varargs_names=["w"])
    assert [iv.var.name for iv in c.op.axis] == ["n", "w"]


def test_axes_have_the_dtype_of_the_shape() -> None:
    c = te.compute((tir.const(4, "int64"), 3), lambda i, j: 1.0)
    assert [iv.var.dtype for iv in c.op.axis] == ["int64", "int32"]


def test_wrong_number_of_axes_is_rejected() -> None:
    with pytest.raises(ValueError, match="Number of args to fcompute does not match dimension"):
        te.compute((2, 3), lambda i: i)


def test_python_scalars_are_bodies() -> None:
    c = te.compute((2,), lambda i: 3)
    assert c.dtype == "int32"
    (result,) = run(te.create_schedule(c.op), [c])
    assert list(result) == [3, 3]


def test_several_outputs() -> None:
    a = te.placeholder((3,), name="A")
    b, c = te.compute((3,), lambda i: (a[i] + 1, a[i] * 2), name="T")
    assert (b.op, b.name, c.name) == (c.op, "T.v0", "T.v1")
    x = np.array([1, 2, 3], "float32")
    first, second = run(te.create_schedule(b.op), [a, b, c], x)
    np.testing.assert_array_equal(first, x + 1)
    np.testing.assert_array_equal(second, x * 2)


def test_zero_dimensional_tensors() -> None:
    a = te.placeholder((), name="A")
    b = te.compute((), lambda: a() * 2, name="B")
    (result,) = run(te.create_schedule(b.op), [a, b], np.array(4, "float32"))
    assert result == 8


def test_tuple_reduction() -> None:
    a = te.placeholder((3, 5), name="A")
    reducer = te.comm_reducer(
        lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)),
        name="argmax",
    )
    k = te.reduce_axis((0, 5), name="k")
    where, value = te.compute((3,), lambda i: reducer((k.var, a[i, k]), axis=k), name="best")
    x = np.random.default_rng(0).random((3, 5), "float32")
    first, second = run(te.create_schedule(where.op), [a, where, value], x)
    np.testing.assert_array_equal(first, x.argmax(1))
    np.testing.assert_array_equal(second, x.max(1))


def test_tuple_reduction_reads_all_old_values_before_it_stores() -> None:
    a = te.placeholder((6,), name="A")
    swap = te.comm_reducer(
        lambda x, y: (x[1] + y[0], x[0] + y[1]),
        lambda t0, t1: (tir.const(0, t0), tir.const(0, t1)),
        name="swap",
    )
    k = te.reduce_axis((0, 6), name="k")
    first, second = te.compute((1,), lambda i: swap((a[k], a[k] * 10), axis=k), name="T")
    x = np.arange(1, 7, dtype="float32")
    p, q = 0.0, 0.0
    for value in x:
        p, q = q + value, p + value * 10
    got = run(te.create_schedule(first.op), [a, first, second], x)
    assert (got[0][0], got[1][0]) == (p, q)


def test_reduction_with_condition_and_init() -> None:
    a = te.placeholder((6,), name="A")
    k = te.reduce_axis((0, 6), name="k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k, where=k.var > 2, init=100), name="B")
    x = np.arange(6, dtype="float32")
    (result,) = run(te.create_schedule(b.op), [a, b], x)
    assert result[0] == 100 + 3 + 4 + 5


def test_nested_reductions_are_rejected() -> None:
    a = te.placeholder((6,), name="A")
    k = te.reduce_axis((0, 6), name="k")
    with pytest.raises(TVMError, match="compute B requires reductions at the top level"):
        te.compute((1,), lambda i: te.sum(a[k], axis=k) + 1, name="B")


def test_different_reductions_in_one_compute_are_rejected() -> None:
    a = te.placeholder((6,), name="A")
    k, r = te.reduce_axis((0, 6), name="k"), te.reduce_axis((0, 6), name="r")
    with pytest.raises(TVMError, match="one tuple reduction or none"):
        te.compute((1,), lambda i: (te.sum(a[k], axis=k), te.sum(a[r], axis=r)), name="B")


def test_tags() -> None:
    with te.tag_scope("conv"):
        b = te.compute((1,), lambda i: 1)
        with pytest.raises(ValueError, match="nested tag"):
            te.compute((1,), lambda i: 1, tag="other")
        with pytest.raises(ValueError, match="nested tag_scope"):
            te.tag_scope("more").__enter__()
    assert b.op.tag == "conv" and te.compute((1,), lambda i: 1).op.tag == ""

    @te.tag_scope(tag="made")
    def make() -> te.Tensor:
        return te.compute((1,), lambda i: 1)

    assert make().op.tag == "made"


def test_attrs() -> None:
    b = te.compute((1,), lambda i: 1, attrs={"schedule_rule": "None", "n": 3})
    assert b.op.attrs["n"].value == 3


def test_extern_with_statements() -> None:
    a = te.placeholder((4,), name="A")

    def body(ins: list, outs: list) -> tir.Stmt:
        i = te.var("i")
        store = tir.BufferStore(outs[0], tir.BufferLoad(ins[0], [i]) + 1, [i])
        return tir.For(i, 0, 4, tir.ForKind.SERIAL, store)

    b = te.extern((4,), [a], body, name="B")
    c = te.compute((4,), lambda i: b[i] * 2, name="C")
    x = np.arange(4, dtype="float32")
    for outputs, wanted in [([b], [x + 1]), ([c], [(x + 1) * 2]), ([b, c], [x + 1, (x + 1) * 2])]:
        schedule = te.create_schedule([t.op for t in outputs])
        for got, expected in zip(run(schedule, [a, *outputs], x), wanted, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_extern_with_several_outputs_and_call() -> None:
    a = te.placeholder((4,), name="A")
    b, c = te.extern(
        [(4,), (2,)], [a], lambda ins, outs: tir.call_packed("f", ins[0], outs[0], outs[1]),
        dtype=["int32", "float32"],
    )  # fmt: skip
    assert (b.dtype, c.dtype, b.name, c.name) == ("int32", "float32", "extern.v0", "extern.v1")
    func = te.schedule.lower_schedule(te.create_schedule(b.op), [a, b, c])
    assert isinstance(func.body, tir.Evaluate)


def _nothing(ins, outs) -> tir.Stmt:
    return tir.Evaluate(0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a: te.extern((4,), [1], _nothing), "expect inputs to be tensor"),
        (lambda a: te.extern((4,), [], lambda i, o: tir.const(1)), "Cannot infer output type"),
        (
            lambda a: te.extern((4,), [a], lambda i, o: 3, name="f"),
            "should return PrimExpr or Stmt",
        ),
        (
            lambda a: te.extern((4,), [a], _nothing, dtype=["int8", "int8"]),
            "requires 1 dtypes, got 2",
        ),
    ],
)
def test_bad_externs_are_rejected(make, message) -> None:
    with pytest.raises(ValueError, match=message):
        make(te.placeholder((4,), name="A"))


def test_thread_and_reduce_axes() -> None:
    block = te.thread_axis("blockIdx.x")
    assert (block.thread_tag, block.var.name, block.dom) == ("blockIdx.x", "blockIdx.x", None)
    thread = te.thread_axis((0, 32), "threadIdx.x", name="tx")
    assert thread.dom.extent.value == 32 and thread.iter_type == tir.IterVar.ThreadIndex
    assert te.thread_axis(8, "vthread").dom.extent.value == 8
    k = te.reduce_axis((2, 10), name="k")
    assert (k.dom.min.value, k.dom.extent.value) == (2, 8)
    with pytest.raises(ValueError, match="tag must be given"):
        te.thread_axis((0, 4))


def test_symbolic_shapes() -> None:
    n = te.size_var("n")
    a = te.placeholder((n, n + 1), name="A")
    k = te.reduce_axis((0, n + 1), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    schedule = te.create_schedule(b.op)
    schedule[b].split(b.op.axis[0], factor=4)
    func = te.schedule.lower_schedule(schedule, [a, b])
    for size in (0, 1, 4, 7):
        x, y = np.ones((size, size + 1), "float32"), np.zeros(size, "float32")
        interpret(func, x, y)
        assert list(y) == [size + 1] * size


def test_deep_expressions_and_long_chains() -> None:
    a = te.placeholder((4,), name="A")

    def body(i: tir.Var) -> tir.expr.PrimExpr:
        value = a[i].asobject()
        for _ in range(50_000):
            value = value * 1.5
        return value

    b = te.compute((4,), body, name="B")
    c = te.compute((4,), lambda i: b[i] + 1, name="C")
    for number in range(300):
        c = _plus_one(c, number)
    schedule = te.create_schedule(c.op)
    te.schedule.AutoInlineInjective(schedule)
    schedule.cache_read(a, "global", [b])
    assert isinstance(te.schedule.lower_schedule(schedule, [a, c]), tir.PrimFunc)
    assert isinstance(te.create_prim_func([a, c]), tir.PrimFunc)


def _plus_one(tensor: te.Tensor, number: int) -> te.Tensor:
    return te.compute(tensor.shape, lambda i: tensor[i] + 1, name=f"C{number}")


def test_operations_that_compute_no_elements_have_no_axes() -> None:
    data = te.placeholder((4,), name="data")
    k = te.reduce_axis((0, 4), name="k")
    total = te.compute((1,), lambda i: te.sum(data[i + k], axis=k))
    assert data.op.axis == () and data.op.reduce_axis == ()
    assert len(total.op.axis) == 1 and total.op.reduce_axis[0].same_as(k)
