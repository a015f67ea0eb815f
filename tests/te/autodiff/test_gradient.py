from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import OpNotImplemented, TVMError

from ..programs import run


def placeholder(*shape: int, name: str = "A") -> te.Tensor:
    return te.placeholder(shape, "float64", name)


def values(tensor: te.Tensor, seed: int = 0) -> np.ndarray:
    shape = [int(dim) for dim in tensor.shape]
    return np.random.default_rng(seed).uniform(0.2, 0.9, shape)


def evaluate(inputs: list[te.Tensor], output: te.Tensor, data: list[np.ndarray]) -> np.ndarray:
    return run(te.create_schedule(output.op), [*inputs, output], *data)[0]


def check(output: te.Tensor, inputs: list[te.Tensor], step: float = 1e-6) -> list[te.Tensor]:
    """Gradients agree with finite differences of the sum that the head weighs."""
    head = placeholder(*[int(dim) for dim in output.shape], name="head")
    data = [values(tensor, seed) for seed, tensor in enumerate(inputs)]
    weights = values(head, 9)
    gradients = te.gradient(output, inputs, head)
    for position, (tensor, result) in enumerate(zip(inputs, gradients, strict=True)):
        assert [int(d) for d in result.shape] == [int(d) for d in tensor.shape]
        found = evaluate([*inputs, head], result, [*data, weights])
        places = list(np.ndindex(*found.shape))
        picked = np.random.default_rng(3).permutation(len(places))[:8]
        for index in [places[number] for number in picked]:
            ends = []
            for sign in (1, -1):
                moved = [array.copy() for array in data]
                moved[position][index] += sign * step
                ends.append((evaluate(inputs, output, moved) * weights).sum())
            expected = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(found[index], expected, rtol=1e-5, atol=1e-7)
    return gradients


def loops_of(tensor: te.Tensor) -> list[int]:
    """The extents of the reduction that computes a tensor."""
    return [int(iv.dom.extent) for iv in tensor.op.reduce_axis]


FUNCTIONS: list[Callable[[Any], Any]] = [
    te.exp, te.log, te.tanh, te.sigmoid, te.sqrt, te.rsqrt, te.sin, te.cos, te.tan, te.erf,
    te.atan, te.asin, te.acos, te.sinh, te.cosh, te.asinh, te.atanh, te.log2, te.log10, tir.log1p,
    tir.exp2, te.abs, te.floor,
    lambda x: x * x - 3.0 / x,
    lambda x: te.power(x, 3.0),
    lambda x: te.power(2.0, x),
    lambda x: te.max(x, 0.5) * te.min(x, 0.7),
    lambda x: tir.Select(x > 0.5, x * 2.0, x * x),
    lambda x: te.if_then_else(x > 0.5, x * 2.0, x * x),
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_elementwise(function: Callable[[Any], Any]) -> None:
    a = placeholder(2, 3)
    (result,) = check(te.compute((2, 3), lambda i, j: function(a[i, j]), name="B"), [a])
    assert loops_of(result) == []


@pytest.mark.parametrize(
    "function",
    [
        te.power, te.fmod, tir.atan2, tir.hypot, tir.copysign, te.max, te.min,
        lambda a, b: tir.copysign(-a, b - 0.5),
        lambda a, b: te.fmod(a * 3.0, b),
        lambda a, b: tir.ldexp(a, tir.const(3, "int32")) * b,
        lambda a, b: tir.Select(tir.all(a > 0.3, b < 0.8), a * b, a + b),
        lambda a, b: a * te.floor(b * 5.0) / b,
    ],
)  # fmt: skip
def test_functions_of_two(function: Callable[[Any, Any], Any]) -> None:
    a, b = placeholder(2, 3), placeholder(2, 3, name="B")
    check(te.compute((2, 3), lambda i, j: function(a[i, j], b[i, j])), [a, b])


def test_repeated_elements_and_dilated_windows() -> None:
    a, w = placeholder(9), placeholder(3, name="w")
    up = te.compute((18,), lambda i: a[i // 2] * a[(i * 2) % 9], name="up")
    k = te.reduce_axis((0, 3), name="k")
    check(te.compute((14,), lambda i: te.sum(up[i + 2 * k] * w[k], axis=k)), [a, w])


@pytest.mark.parametrize("reduce", [te.sum, te.max, te.min])
def test_reductions_over_a_part(reduce: Callable[..., Any]) -> None:
    a, k = placeholder(3, 4), te.reduce_axis((0, 4), name="k")
    check(te.compute((3,), lambda i: reduce(a[i, k] * a[i, k], axis=k, where=k <= i)), [a])


def test_gradients_of_gradients() -> None:
    a = placeholder(3)
    cube = te.compute((3,), lambda i: a[i] * a[i] * te.exp(a[i]))
    head = te.compute((3,), lambda i: tir.const(1, "float64"))
    (first,) = te.gradient(cube, [a], head)
    check(first, [a])


def test_broadcast() -> None:
    a, b, c = placeholder(2, 3), placeholder(3, name="B"), placeholder(2, 1, name="C")
    grads = check(te.compute((2, 3), lambda i, j: a[i, j] * b[j] + c[i, 0] / b[j]), [a, b, c])
    assert [loops_of(g) for g in grads[2:]] == [[3]]


def test_matmul() -> None:
    a, b = placeholder(2, 4), placeholder(4, 3, name="B")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((2, 3), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    grads = check(c, [a, b])
    # dA = dC B^T sums over j, dB = A^T dC over i
    assert [loops_of(g) for g in grads] == [[3], [2]]


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_conv2d(stride: int) -> None:
    x, w = placeholder(1, 2, 6, 5, name="X"), placeholder(2, 2, 3, 3, name="W")
    out = (6 - 1) // stride + 1, (5 - 1) // stride + 1
    rc = te.reduce_axis((0, 2), name="rc")
    ry, rx = te.reduce_axis((0, 3), name="ry"), te.reduce_axis((0, 3), name="rx")
    padded = te.compute(
        (1, 2, 8, 7),
        lambda n, c, h, v: te.if_then_else(
            te.all(h >= 1, h < 7, v >= 1, v < 6), x[n, c, h - 1, v - 1], tir.const(0, "float64")
        ),
        name="P",
    )
    y = te.compute(
        (1, 2, *out),
        lambda n, f, h, v: te.sum(
            padded[n, rc, h * stride + ry, v * stride + rx] * w[f, rc, ry, rx], axis=[rc, ry, rx]
        ),
        name="Y",
    )
    dx, dw = check(y, [x, w])
    # of the 3x3 window only what the stride leaves; no loop over positions
    assert loops_of(dx.op.input_tensors[0]) == [2, *[n for n in [-(-3 // stride)] * 2 if n > 1]]
    assert loops_of(dw) == list(out)


@pytest.mark.parametrize("kind", ["max", "sum", "min"])
@pytest.mark.parametrize("stride", [1, 2])
def test_pooling(kind: str, stride: int) -> None:
    x = placeholder(2, 5, 4)
    size = (5 - 2) // stride + 1, (4 - 2) // stride + 1
    ry, rx = te.reduce_axis((0, 2), name="ry"), te.reduce_axis((0, 2), name="rx")
    reduce = {"max": te.max, "min": te.min, "sum": te.sum}[kind]
    pool = te.compute(
        (2, *size),
        lambda c, i, j: reduce(x[c, i * stride + ry, j * stride + rx], axis=[ry, rx]),
        name="pool",
    )
    (result,) = check(pool, [x])
    # each element is in as many windows as the stride lets overlap
    assert loops_of(result) == ([2, 2] if stride == 1 else [])


def test_ties_of_a_maximum_count_once() -> None:
    a = placeholder(4)
    k = te.reduce_axis((0, 4), name="k")
    top = te.compute((1,), lambda i: te.max(a[k], axis=k), name="top")
    head = placeholder(1, name="head")
    (result,) = te.gradient(top, [a], head)
    data = np.array([1.0, 3.0, 3.0, 2.0])
    found = evaluate([a, head], result, [data, np.array([5.0])])
    np.testing.assert_array_equal(found, [0, 5, 0, 0])


def test_softmax_and_layer_norm() -> None:
    a = placeholder(2, 4)
    k, r = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 4), name="r")
    top = te.compute((2,), lambda i: te.max(a[i, k], axis=k), name="top")
    powers = te.compute((2, 4), lambda i, j: te.exp(a[i, j] - top[i]), name="powers")
    total = te.compute((2,), lambda i: te.sum(powers[i, r], axis=r), name="total")
    check(te.compute((2, 4), lambda i, j: powers[i, j] / total[i], name="softmax"), [a])
    k, r = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 4), name="r")
    mean = te.compute((2,), lambda i: te.sum(a[i, k] / 4.0, axis=k), name="mean")
    spread = te.compute(
        (2,), lambda i: te.sum((a[i, r] - mean[i]) * (a[i, r] - mean[i]), axis=r), name="spread"
    )
    out = te.compute((2, 4), lambda i, j: (a[i, j] - mean[i]) * te.rsqrt(spread[i]), name="norm")
    check(out, [a])


def test_moved_elements() -> None:
    a = placeholder(4, 6)
    flat = te.compute((24,), lambda i: a[i // 6, i % 6], name="flat")
    (result,) = check(te.compute((24,), lambda i: flat[i] * flat[i]), [a])
    check(te.compute((6, 4), lambda i, j: a[j, i] * 2.0), [a])
    check(te.compute((4, 3), lambda i, j: a[3 - i, j * 2 + 1]), [a])
    (up,) = check(te.compute((8, 12), lambda i, j: a[i // 2, j // 2]), [a])
    assert loops_of(up) == [2, 2]
    check(te.compute((4, 9), lambda i, j: a[i, j % 6]), [a])
    check(te.compute((5,), lambda i: a[i % 4, i]), [a])
    check(te.compute((4,), lambda i: a[i, i]), [a])
    assert result.op.reduce_axis == ()


def test_products_of_zeros() -> None:
    a = placeholder(2, 3)
    k = te.reduce_axis((0, 3), name="k")
    product = te.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, t), "product")
    out = te.compute((2,), lambda i: product(a[i, k], axis=k), name="out")
    check(out, [a])
    head = placeholder(2, name="head")
    data = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 3.0]])
    found = evaluate([a, head], te.gradient(out, [a], head)[0], [data, np.ones(2)])
    np.testing.assert_array_equal(found, [[6, 0, 0], [0, 0, 0]])


def test_gather_adds_up() -> None:
    a, where = placeholder(5), te.placeholder((7,), "int32", "where")
    out = te.compute((7,), lambda i: a[where[i]] * 2.0, name="out")
    head = placeholder(7, name="head")
    (result,) = te.gradient(out, [a], head)
    index, weights = np.array([0, 4, 4, 1, 0, 0, 2], "int32"), values(head)
    expected = np.zeros(5)
    np.add.at(expected, index, 2 * weights)
    found = evaluate([where, head], result, [index, weights])
    np.testing.assert_allclose(found, expected)


def test_without_head_the_jacobian() -> None:
    a, b = placeholder(2, 3), placeholder(3, name="B")
    k = te.reduce_axis((0, 3), name="k")
    out = te.compute((2,), lambda i: te.sum(a[i, k] * b[k] * b[k], axis=k), name="out")
    da, db, same = te.gradient(out, [a, b, out])
    x, y = values(a), values(b, 1)
    assert [int(d) for d in da.shape] == [2, 2, 3] and loops_of(da) == []
    expected = np.einsum("pi,k->pik", np.eye(2), y * y)
    np.testing.assert_allclose(evaluate([a, b], da, [x, y]), expected)
    np.testing.assert_allclose(evaluate([a, b], db, [x, y]), 2 * x * y)
    np.testing.assert_array_equal(evaluate([], same, []), np.eye(2))


def test_head_may_have_dimensions_in_front() -> None:
    a = placeholder(3)
    out = te.compute((3,), lambda i: a[i] * a[i], name="out")
    head = placeholder(2, 3, name="head")
    (result,) = te.gradient(out, a, head)
    x, h = values(a), values(head, 1)
    np.testing.assert_allclose(evaluate([a, head], result, [x, h]), h * 2 * x)


def test_what_does_not_matter_has_gradient_zero() -> None:
    a, b = placeholder(3), placeholder(2, name="B")
    (result,) = te.gradient(te.compute((3,), lambda i: a[i] * 2.0, name="out"), [b])
    np.testing.assert_array_equal(evaluate([], result, []), np.zeros((3, 2)))


def test_symbolic_sizes_and_compiled_code() -> None:
    n, m, depth = te.var("n"), te.var("m"), te.var("depth")
    a, b = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    head = te.placeholder((n, m), name="head")
    da, db = te.gradient(c, [a, b], head)
    built = tvm.build(te.create_schedule([da.op, db.op]), [a, b, head, da, db], "llvm")
    x, y, h = [
        np.random.default_rng(i).random(s, "float32")
        for i, s in enumerate([(3, 5), (5, 4), (3, 4)])
    ]
    out = tvm.nd.empty((3, 5)), tvm.nd.empty((5, 4))
    built(*[tvm.nd.array(v) for v in (x, y, h)], *out)
    np.testing.assert_allclose(out[0].numpy(), h @ y.T, rtol=1e-5)
    np.testing.assert_allclose(out[1].numpy(), x.T @ h, rtol=1e-5)


def test_misuse_is_rejected() -> None:
    a = placeholder(3)
    out = te.compute((3,), lambda i: a[i] * 2.0, name="out")
    with pytest.raises(TVMError, match="requires a head whose shape ends with that of the output"):
        te.gradient(out, [a], placeholder(2))
    with pytest.raises(TVMError, match="gradient requires tensors, got a value of int"):
        te.gradient(out, [3])
    with pytest.raises(OpNotImplemented, match="known derivative, got call of nextafter"):
        te.gradient(te.compute((3,), lambda i: tir.nextafter(a[i], a[i])), [a])
    k = te.reduce_axis((0, 3), name="k")
    odd = te.comm_reducer(lambda x, y: x + y * 2.0, lambda t: tir.const(0, t), "odd")
    with pytest.raises(OpNotImplemented, match="reductions by sum, min, max or product"):
        te.gradient(te.compute((1,), lambda i: odd(a[k], axis=k), name="r"), [a])
    extern = te.extern((3,), [a], lambda ins, outs: tir.Evaluate(0), name="E")
    with pytest.raises(OpNotImplemented, match="gradient requires computes .* got E, a ExternOp"):
        te.gradient(extern, [a])
