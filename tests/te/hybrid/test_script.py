from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.te.hybrid import script

from ..outline import lowered
from ..programs import run

SIZES = (2, 3)


@script
def outer_product(a, b):
    """c[i, j] = a[i] * b[j]"""
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


@script
def softmax(a):
    out = output_tensor(a.shape, "float32")
    for i in parallel(a.shape[0]):
        top = ninf("float32")
        for j in range(len(a) + a.shape[1] - len(a)):
            top = max(top, a[i, j])
        total = 0.0
        powers = allocate((a.shape[1],), "float32", "local")
        for j in range(a.shape[1]):
            powers[j] = exp(a[i, j] - top)
            total += powers[j]
        for j in range(a.shape[1]):
            out[i, j] = powers[j] / total
    return out


@script
def pieces(a, n):
    first, second = SIZES
    b = output_tensor((8,), "float32")
    c = output_tensor((8,), "int32")
    for i in range(8):
        b[i] = 0.0
        c[i] = int32(a[i]) if a[i] > 2.0 and not a[i] > 6.0 else -i
        if i % 2 == 0:
            b[i] = a[i] ** 2.0
        elif 0 <= i < 4:
            b[i] -= a[i] / 2.0
        else:
            b[i] = sqrt(a[i]) + n
        for k in const_range(second):
            if k < first:
                b[i] += a[i] * (k + 1)
    return b, c


def test_a_script_computes_an_operation() -> None:
    a, b = te.placeholder((5,), name="a"), te.placeholder((4,), name="b")
    c = outer_product(a, b)
    assert isinstance(c.op, te.tensor.HybridOp) and [iv.var.name for iv in c.op.axis] == ["i", "j"]
    x, y = np.arange(5, dtype="float32"), np.arange(4, dtype="float32") + 1
    s = te.create_schedule(c.op)
    np.testing.assert_array_equal(run(s, [a, b, c], x, y)[0], np.outer(x, y))
    out = tvm.nd.empty((5, 4))
    tvm.build(s, [a, b, c], "llvm")(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_array_equal(out.numpy(), np.outer(x, y))
    np.testing.assert_array_equal(outer_product(x, y), np.outer(x, y))


def test_scalars_and_memory_inside() -> None:
    a = te.placeholder((3, 6), name="a")
    out = softmax(a)
    x = np.random.default_rng(0).random((3, 6), "float32")
    powers = np.exp(x - x.max(1, keepdims=True))
    expected = powers / powers.sum(1, keepdims=True)
    s = te.create_schedule(out.op)
    np.testing.assert_allclose(run(s, [a, out], x)[0], expected, rtol=1e-6)
    result = tvm.nd.empty((3, 6))
    tvm.build(s, [a, out], "llvm")(tvm.nd.array(x), result)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(softmax(x), expected, rtol=1e-6)


def test_conditions_constants_and_two_outputs() -> None:
    a = te.placeholder((8,), name="a")
    b, c = pieces(a, tvm.tir.const(2.0, "float32"))
    x = np.arange(8, dtype="float32")
    s = te.create_schedule(b.op)
    first, second = run(s, [a, b, c], x)
    wanted = pieces(x, 2.0)
    np.testing.assert_allclose(first, wanted[0], rtol=1e-6)
    np.testing.assert_array_equal(second, wanted[1])


def test_scripts_stand_between_other_stages() -> None:
    a, b = te.placeholder((5,), name="a"), te.placeholder((4,), name="b")
    twice = te.compute((5,), lambda i: a[i] * 2, name="twice")
    c = outer_product(twice, b)
    d = te.compute((5, 4), lambda i, j: c[i, j] + 1, name="d")
    x, y = np.arange(5, dtype="float32"), np.arange(4, dtype="float32") + 1
    (result,) = run(te.create_schedule(d.op), [a, b, d], x, y)
    np.testing.assert_array_equal(result, np.outer(2 * x, y) + 1)


def test_loops_of_a_script_are_scheduled() -> None:
    a, b = te.placeholder((10,), name="a"), te.placeholder((8,), name="b")
    c = outer_product(a, b)
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[c].parallel(outer)
    _, inner = s[c].split(c.op.axis[1], factor=4)
    s[c].vectorize(inner)
    text = lowered(s, [a, b, c])
    assert "i.outer in parallel(3)" in text and "j.inner in vectorized(4)" in text
    x, y = np.arange(10, dtype="float32"), np.arange(8, dtype="float32") + 1
    np.testing.assert_array_equal(run(s, [a, b, c], x, y)[0], np.outer(x, y))


def test_loops_of_a_script_are_reordered_and_fused() -> None:
    a, b = te.placeholder((10,), name="a"), te.placeholder((8,), name="b")
    c = outer_product(a, b)
    x, y = np.arange(10, dtype="float32"), np.arange(8, dtype="float32") + 1
    s = te.create_schedule(c.op)
    s[c].reorder(*reversed(c.op.axis))
    assert lowered(s, [a, b, c]).index("for j in") < lowered(s, [a, b, c]).index("for i in")
    np.testing.assert_array_equal(run(s, [a, b, c], x, y)[0], np.outer(x, y))
    outer, inner = s[c].split(s[c].fuse(*reversed(c.op.axis)), factor=16)
    s[c].vectorize(inner)
    assert "for j.i.fused.outer in serial(5)" in lowered(s, [a, b, c])
    np.testing.assert_array_equal(run(s, [a, b, c], x, y)[0], np.outer(x, y))


def test_loops_of_a_script_keep_the_order_that_their_values_need() -> None:
    @script
    def diagonals(a):
        b = output_tensor((8, 8), "float32")
        for i in range(8):
            for j in range(8):
                b[i, j] = a[i, j]
                if i > 0 and j < 7:
                    b[i, j] = b[i, j] + b[i - 1, j + 1]
        return b

    @script
    def apart(a):
        b = output_tensor((8, 8), "float32")
        for i in range(8):
            b[i, 0] = 0.0
            for j in range(8):
                b[i, j] = a[i, j]
        return b

    a = te.placeholder((8, 8), name="a")
    for b in (diagonals(a), apart(a)):
        s = te.create_schedule(b.op)
        s[b].reorder(*reversed(b.op.axis))
        with pytest.raises(
            tvm.error.ScheduleError, match="requires loops that stay in their places"
        ):
            lowered(s, [a, b])


def test_threads() -> None:
    @script
    def double(a):
        b = output_tensor((8,), "float32")
        for t in bind("threadIdx.x", 8):
            b[t] = a[t] * 2.0
        return b

    a = te.placeholder((8,), name="a")
    b = double(a)
    assert "threadIdx.x" in str(te.schedule.lower_schedule(te.create_schedule(b.op), [a, b]))
    x = np.arange(8, dtype="float32")
    np.testing.assert_array_equal(double(x), x * 2)


def test_a_schedule_as_a_script() -> None:
    a, b = te.placeholder((6, 5), name="A"), te.placeholder((5, 4), name="B")
    k = te.reduce_axis((0, 5), name="k")
    c = te.compute((6, 4), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((6, 4), lambda i, j: te.max(c[i, j], 1.0), name="D")
    s = te.create_schedule(d.op)
    outer, _ = s[d].split(d.op.axis[0], factor=4)
    s[c].compute_at(s[d], outer)
    module = te.hybrid.build(s, [a, b], [d], name="product")
    assert (module.get_source() or "").startswith("def product(A, B):\n    D = output_tensor(")
    x, y = np.random.default_rng(0).random((6, 5), "float32"), np.ones((5, 4), "float32")
    np.testing.assert_allclose(module(x, y), np.maximum(x @ y, 1), rtol=1e-6)


def test_modules_are_saved_and_loaded(tmp_path: Any) -> None:
    module = te.hybrid.HybridModule("def f(a):\n    return a\n")
    module.save(str(tmp_path / "f"))
    other = te.hybrid.HybridModule(name="f")
    with pytest.raises(ValueError, match="requires a source before it is called"):
        other(1)
    other.load(str(tmp_path / "f.py"))
    assert other(3) == 3


@script
def with_while(a):
    while a[0] > 0:
        pass
    return a


@script
def unknown_call(a):
    b = output_tensor((8,), "float32")
    for i in rang(8):
        b[i] = a[i]
    return b


@script
def unknown_name(a):
    b = output_tensor((8,), "float32")
    for i in range(8):
        b[i] = c[i]
    return b


@script
def running_sum(a):
    b = output_tensor((8,), "float32")
    for i in range(1, 8):
        a[i] += a[i - 1]
    for i in range(8):
        b[i] = a[i] * 2.0
    return b


@script
def wrong_rank(a):
    b = output_tensor((8,), "float32")
    for i in range(8):
        b[i, 0] = a[i]
    return b


@script
def no_return(a):
    for _ in range(8):
        pass


@script
def returns_input(a):
    return a


@script
def calls_unknown(a):
    b = output_tensor((8,), "float32")
    for i in range(8):
        b[i] = sqroot(a[i])
    return b


@pytest.mark.parametrize(
    ("function", "line", "message"),
    [
        (with_while, 2, "requires the hybrid subset of Python, got a While statement"),
        (unknown_call, 3, "requires a loop over range, serial.* got rang\n.*hint: did you mean"),
        (unknown_name, 4, "requires names that are defined, got c"),
        (wrong_rank, 4, "requires 1 indices of b, got 2"),
        (no_return, 1, "requires a return of its output tensors at the end, got none"),
        (returns_input, 2, "requires a return of output tensors, got a"),
        (calls_unknown, 4, "requires calls of known functions, got sqroot"),
    ],
)
def test_what_is_outside_the_subset_is_rejected(function: Any, line: int, message: str) -> None:
    first = function.__wrapped__.__code__.co_firstlineno
    with pytest.raises(te.hybrid.HybridError, match=message) as error:
        function(te.placeholder((8,), name="a"))
    name = function.__name__
    assert f"hybrid script {name}, line {first + line}, " in str(error.value)


def test_arguments_are_checked() -> None:
    with pytest.raises(te.hybrid.HybridError, match="requires 2 arguments, got 1"):
        outer_product(te.placeholder((8,)))
    with pytest.raises(
        te.hybrid.HybridError, match="requires b to be a tensor, a scalar or a list"
    ):
        outer_product(te.placeholder((8,)), object())


@te.hybrid.script
def _doubled(x):
    out = output_tensor((6,), "float32")
    for i in range(6):
        out[i] = x[i] * 2.0
    return out


@te.hybrid.script
def _both_ends(x):
    low = output_tensor((3,), "float32")
    high = output_tensor((3,), "float32")
    for i in range(3):
        low[i] = x[i]
        high[i] = x[i + 3]
    return low, high


@te.hybrid.script
def _folded(x):
    twice = _doubled(x)
    again = _doubled(twice)
    low, high = _both_ends(again)
    out = output_tensor((3,), "float32")
    for i in range(3):
        out[i] = low[i] + high[i]
    return out


@te.hybrid.script
def _endless(x):
    out = _endless(x)
    return out  # noqa: RET504


def test_scripts_may_call_scripts() -> None:
    x = te.placeholder((6,), name="x")
    y = _folded(x)
    data = np.arange(6, dtype="float32")
    result = tvm.nd.empty((3,))
    tvm.build(te.create_schedule(y.op), [x, y], "llvm")(tvm.nd.array(data), result)
    np.testing.assert_array_equal(result.numpy(), 4 * (data[:3] + data[3:]))
    np.testing.assert_array_equal(_folded(data), result.numpy())


def test_scripts_that_call_themselves_are_rejected() -> None:
    with pytest.raises(te.hybrid.HybridError, match="scripts that do not call themselves"):
        _endless(te.placeholder((6,), name="x"))


def test_written_scripts_build_operations_again() -> None:
    @script
    def outer(n, m, a, b):
        c = output_tensor((n, m), a.dtype)
        for i in range(n):
            for j in range(m):
                assert i < n and j < m, "index out of range"
                c[i, j] = a[i] * b[j]
        return c

    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
    c = outer(n, m, a, b)
    module = te.hybrid.build(te.create_schedule(c.op), [n, m, a, b], [c])
    again = module(n, m, a, b)
    function = tvm.build(te.create_schedule(again.op), [n, m, a, b, again], "llvm")
    x, y = np.arange(3, dtype="float32"), np.arange(2, dtype="float32") + 1
    out = tvm.nd.empty((3, 2))
    function(3, 2, tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_array_equal(out.numpy(), np.outer(x, y))
    np.testing.assert_array_equal(module(3, 2, x, y), np.outer(x, y))


def test_operations_come_from_text_too() -> None:
    text = "def twice(a):\n    b = output_tensor((4,), 'float32')\n    for i in range(4):\n"
    text += "        b[i] = a[i] * factor\n    return b\n"
    a = te.placeholder((4,), name="a")
    b = te.hybrid.parser.source_to_op(text, [a], {"factor": 2.0}, {})
    (result,) = run(te.create_schedule(b.op), [a, b], np.arange(4, dtype="float32"))
    np.testing.assert_array_equal(result, np.arange(4) * 2)
    with pytest.raises(te.hybrid.HybridError, match="one function"):
        te.hybrid.parser.source_to_op("x = 1", [a], {}, {})


def test_a_name_that_is_assigned_once_to_a_constant_is_that_constant() -> None:
    @te.hybrid.script
    def total(inputs: Any) -> Any:
        out = output_tensor((4,), inputs[0].dtype)
        n = len(inputs)
        for i in range(4):
            for j in const_range(n):
                out[i] += inputs[j][i]
        return out

    tensors = [te.placeholder((4,), name=f"t{i}") for i in range(3)]
    out = total(tensors)
    assert len(out.op.inputs) == 3


def test_nested_lists_are_indexed_by_constants() -> None:
    table = [[1, 2], [3, 4]]

    @te.hybrid.script
    def shifted(a: Any, b: Any) -> Any:
        out = output_tensor(a.shape, a.dtype)
        for i in const_range(2):
            out[i] = a[i] + table[1][i] + b[i, 0]
        return out

    a = te.placeholder((2,), dtype="int32", name="a")
    out = shifted(a, [[10, 0], [20, 0]])
    func = tvm.build(te.create_schedule(out.op), [a, out])
    result = tvm.nd.array(np.zeros(2, "int32"))
    func(tvm.nd.array(np.array([1, 2], "int32")), result)
    assert list(result.numpy()) == [14, 26]


def test_scripts_may_store_into_their_inputs() -> None:
    a = te.placeholder((8,), name="a")
    b = running_sum(a)
    built = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    value = np.arange(8, dtype="float32")
    expected = running_sum(value.copy())
    given, out = tvm.nd.array(value), tvm.nd.empty((8,))
    built(given, out)
    np.testing.assert_array_equal(out.numpy(), expected)
    np.testing.assert_array_equal(given.numpy(), np.cumsum(value))
    # a tensor between two operations too
    c = te.compute((8,), lambda i: a[i] + 1.0, name="c")
    d = running_sum(c)
    tvm.build(te.create_schedule(d.op), [a, d], "llvm")(tvm.nd.array(value), out)
    np.testing.assert_array_equal(out.numpy(), 2 * np.cumsum(value + 1))
