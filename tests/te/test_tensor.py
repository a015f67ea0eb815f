import numpy as np
import pytest

from tvm import te, tir
from tvm.error import TVMError
from tvm.tir.interp import interpret

from .programs import run


def test_tensor_tells_its_shape_type_and_operation() -> None:
    a = te.placeholder((2, 3), "int8", name="A")
    assert [int(d) for d in a.shape] == [2, 3]
    assert (a.ndim, a.dtype, a.name, a.op.name, a.value_index) == (2, "int8", "A", "A", 0)
    assert isinstance(a.op, te.tensor.PlaceholderOp)
    assert str(a) == "Tensor(shape=[2, 3], op.name=A)"


def test_outputs_of_an_operation_are_equal_and_hash_alike() -> None:
    a = te.placeholder((2,), name="A")
    assert a.op.output(0) == a and hash(a.op.output(0)) == hash(a)
    assert a != te.placeholder((2,), name="A")
    assert a != 1


def test_wrong_number_of_indices_is_rejected() -> None:
    a = te.placeholder((2, 3), name="A")
    with pytest.raises(ValueError, match="need to provide 2 index in tensor A, but 1 was provided"):
        te.compute((2,), lambda i: a[i])


def test_a_tensor_cannot_be_listed() -> None:
    with pytest.raises(TypeError, match="tensor A is symbolic"):
        list(te.placeholder((2, 3), name="A"))


def test_slices_may_be_given_in_parts() -> None:
    a = te.placeholder((2, 3), name="A")
    b = te.compute((2, 3), lambda i, j: a[i][j] + a[i, j] * 2.0 - 1, name="B")
    data = np.arange(6, dtype="float32").reshape(2, 3)
    (result,) = run(te.create_schedule(b.op), [a, b], data)
    np.testing.assert_array_equal(result, data * 3 - 1)


def test_itervars_serve_as_indices() -> None:
    a = te.placeholder((4,), name="A")
    k = te.reduce_axis((0, 4), name="k")
    b = te.compute((), lambda: te.max(a[k], axis=k), name="B")
    (result,) = run(te.create_schedule(b.op), [a, b], np.array([3, 9, 2, 4], "float32"))
    assert result == 9


@pytest.mark.parametrize("shapes", [((3, 4), (4,)), ((3, 1), (1, 4)), ((), (2, 2)), ((5,), (5,))])
def test_operators_broadcast_as_numpy_does(shapes: tuple) -> None:
    a, b = [te.placeholder(shape, name=n) for shape, n in zip(shapes, "AB", strict=True)]
    x, y = [np.random.default_rng(1).random(shape, "float32") + 1 for shape in shapes]
    for combine in (lambda p, q: p + q, lambda p, q: p * q - q, lambda p, q: p / q):
        out = combine(a, b)
        assert out.op.tag == "broadcast"
        (result,) = run(te.create_schedule(out.op), [a, b, out], x, y)
        np.testing.assert_allclose(result, combine(x, y), rtol=1e-6)


def test_operators_take_scalars_on_both_sides() -> None:
    a = te.placeholder((3,), name="A")
    x = np.array([1, 2, 3], "float32")
    for out, wanted in [
        (a + 1, x + 1), (1 - a, 1 - x), (2.0 / a, 2 / x), (-a, -x), (te.const(2.0, "float32") * a, 2 * x),
    ]:  # fmt: skip
        assert isinstance(out, te.Tensor) and out.op.tag == "elemwise"
        (result,) = run(te.create_schedule(out.op), [a, out], x)
        np.testing.assert_allclose(result, wanted, rtol=1e-6)


def test_integer_operators() -> None:
    a, b = te.placeholder((4,), "int32", name="A"), te.placeholder((4,), "int32", name="B")
    x, y = np.array([7, -7, 5, 0], "int32"), np.array([2, 2, 3, 1], "int32")
    for out, wanted in [
        (a // b, x // y), (a % b, x % y), (a << b, x << y), (a & b, x & y), (a ^ b, x ^ y), (~a, ~x),
        (a.astype("float32"), x.astype("float32")),
    ]:  # fmt: skip
        args = [a, b, out] if out.op.input_tensors[-1] is b else [a, out]
        (result,) = run(te.create_schedule(out.op), args, *[x, y][: len(args) - 1])
        np.testing.assert_array_equal(result, wanted)


def test_shapes_that_do_not_broadcast_are_rejected() -> None:
    a, b = te.placeholder((3,), name="A"), te.placeholder((4,), name="B")
    with pytest.raises(
        TVMError, match=r"T_add requires shapes that broadcast, got \(3\) and \(4\)"
    ):
        _ = a + b


def test_symbolic_dimensions_broadcast_at_run_time() -> None:
    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((n,), name="A"), te.placeholder((m,), name="B")
    out = a + b
    func = te.schedule.lower_schedule(te.create_schedule(out.op), [a, b, out])
    x, y, z = np.arange(4, dtype="float32"), np.array([10], "float32"), np.zeros(4, "float32")
    interpret(func, x, y, z)
    np.testing.assert_array_equal(z, x + 10)


def test_a_tensor_is_no_operand_of_a_scalar_expression() -> None:
    a = te.placeholder((3,), name="A")
    assert isinstance(tir.Var("x", "float32") + a, te.Tensor)
