"""Sibling layers become one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.ir.transform import Pass
from tvm.relay.transform import (
    CombineParallelBatchMatmul,
    CombineParallelConv2D,
    CombineParallelDense,
    WidenDense,
)

from .common import assert_unchanged, run, typed

RNG = np.random.default_rng(1)


def count(func: relay.Function, name: str) -> int:
    return str(func).count(f" {name}(")


def value(func: relay.Function) -> list[np.ndarray]:
    inputs = [
        np.random.default_rng(i).normal(size=p.checked_type.concrete_shape).astype("float32")
        for i, p in enumerate(func.params)
    ]
    with tvm.transform.PassContext(opt_level=0):
        got = relay.create_executor("graph", tvm.IRModule.from_expr(func)).evaluate()(*inputs)
    return [g.numpy() for g in got]


def assert_joined(func: relay.Function, name: str, item: Pass, left: int = 1) -> relay.Function:
    after = run(func, item)
    assert count(after, name) == left
    for a, b in zip(value(after), value(typed(func)["main"]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    return after


def weight(*shape: int) -> relay.Constant:
    return relay.const(RNG.normal(size=shape).astype("float32"))


def denses(units: tuple[int, ...], more: Callable[[relay.Expr, int], relay.Expr]) -> relay.Function:
    x = relay.var("x", shape=(5, 6))
    return relay.Function(
        [x], relay.Tuple([more(relay.nn.dense(x, weight(u, 6)), u) for u in units])
    )


def test_dense_with_biases_of_more_axes() -> None:
    func = denses((4, 3, 8), lambda d, u: d + weight(2, 5, u))
    after = assert_joined(func, "nn.dense", CombineParallelDense(to_batch=False))
    assert count(after, "add") == 1


@pytest.mark.parametrize(
    ("axis", "added", "scale"),
    [(2, 1, (1,)), (-1, 2, (1, 1)), (1, 1, ()), (0, 2, ()), (-2, 1, ())],
)
def test_dense_with_new_axes(axis: int, added: int, scale: tuple[int, ...]) -> None:
    def more(d: relay.Expr, units: int) -> relay.Expr:
        wide = relay.expand_dims(d, axis=axis, num_newaxis=added)
        return relay.nn.relu(wide) * weight(units, *scale)

    after = assert_joined(denses((4, 3, 8), more), "nn.dense", CombineParallelDense(to_batch=False))
    assert count(after, "expand_dims") == count(after, "multiply") == 1


def test_dense_that_is_broadcast_to_a_shape_of_its_own_is_joined_before() -> None:
    func = denses((4, 4, 4), lambda d, u: relay.broadcast_to(d, (5, u)))
    after = assert_joined(func, "nn.dense", CombineParallelDense(to_batch=False))
    assert count(after, "broadcast_to") == 3


def test_dense_with_bias_and_activation() -> None:
    func = denses((4, 3, 8), lambda d, u: relay.nn.relu(d + weight(u)))
    after = assert_joined(func, "nn.dense", CombineParallelDense(to_batch=False))
    assert count(after, "add") == 1 and count(after, "nn.relu") == 1
    after = assert_joined(
        denses((4, 3), lambda d, u: weight(u) - d), "nn.dense", CombineParallelDense(2, False)
    )
    assert count(after, "subtract") == 1
    func = denses((4, 3, 8), lambda d, u: relay.nn.bias_add(d, weight(u), axis=-1))
    assert (
        count(assert_joined(func, "nn.dense", CombineParallelDense(3, False)), "nn.bias_add") == 1
    )


def test_what_differs_after_the_layers_is_not_joined() -> None:
    func = denses((4, 3, 8), lambda d, u: relay.exp(d) if u == 3 else relay.tanh(d))
    after = assert_joined(func, "nn.dense", CombineParallelDense(to_batch=False))
    assert count(after, "tanh") == 2


def test_dense_to_batches() -> None:
    func = denses((4, 4, 4), lambda d, u: d + weight(u))
    after = assert_joined(func, "nn.dense", CombineParallelDense(), left=0)
    assert count(after, "nn.batch_matmul") == 1


def test_too_few_or_unlike_layers() -> None:
    assert_unchanged(
        denses((4, 4), lambda d, u: d), CombineParallelDense(), CombineParallelDense(3, False)
    )
    assert_unchanged(denses((4, 3, 2), lambda d, u: d), CombineParallelDense())


def test_weights_that_are_computed_stay() -> None:
    x = relay.var("x", shape=(6, 6))
    a = relay.nn.dense(x, weight(6, 6))
    for _ in range(20):
        a = relay.exp(a)
    b, c = relay.nn.dense(x, a), relay.nn.dense(x, weight(6, 6))
    assert_unchanged(relay.Function([x], relay.Tuple([b, c])), CombineParallelDense(3, False))


def convs(data_layout: str, kernel_layout: str, kernel: int = 3) -> relay.Function:
    shape = {"N": 1, "C": 4, "H": 6, "W": 6}
    x = relay.var("x", shape=tuple(shape[a] for a in data_layout))
    fields = []
    for out in (2, 3, 5):
        sizes = {"O": out, "I": 4, "H": kernel, "W": kernel}
        conv = relay.nn.conv2d(
            x, weight(*[sizes[a] for a in kernel_layout]), padding=(1, 1), channels=out,
            kernel_size=(kernel, kernel), data_layout=data_layout, kernel_layout=kernel_layout,
        )  # fmt: skip
        bias = weight(out, 1, 1) if data_layout == "NCHW" else weight(out)
        fields.append(relay.nn.relu(conv + bias))
    return relay.Function([x], relay.Tuple(fields))


def test_conv2d() -> None:
    for layouts in (("NCHW", "OIHW"), ("NHWC", "HWIO")):
        after = assert_joined(convs(*layouts), "nn.conv2d", CombineParallelConv2D())
        assert count(after, "nn.relu") == 1


def test_batch_matmul() -> None:
    a = relay.var("a", shape=(2, 3, 4))
    bs = [relay.var(f"b{i}", shape=(2, i + 2, 4)) for i in range(3)]
    func = relay.Function([a, *bs], relay.Tuple([relay.nn.batch_matmul(a, b) for b in bs]))
    assert_joined(func, "nn.batch_matmul", CombineParallelBatchMatmul())


def test_widening_joins_known_weights_only() -> None:
    assert_joined(denses((4, 3, 8), lambda d, u: d + weight(u)), "nn.dense", WidenDense())
    x, *ws = (relay.var(name, shape=(6, 6)) for name in "xabc")
    func = relay.Function([x, *ws], relay.Tuple([relay.nn.dense(x, w) for w in ws]))
    assert_unchanged(func, WidenDense())
    assert_joined(func, "nn.dense", CombineParallelDense(to_batch=False))


def test_what_follows_batches_is_joined_too() -> None:
    x, *weights = [
        relay.var(n, shape=s) for n, s in zip("xuvw", [(3, 4), *[(5, 4)] * 3], strict=True)
    ]
    biases = [relay.var(f"b{i}", shape=(5,)) for i in range(3)]
    rows = [relay.add(relay.nn.dense(x, w), b) for w, b in zip(weights, biases, strict=True)]
    func = relay.Function([x, *weights, *biases], relay.Tuple([relay.nn.relu(r) for r in rows]))
    after = assert_joined(func, "nn.batch_matmul", CombineParallelDense())
    parts = {field.args[0].tuple_value for field in after.body.fields}
    (split,) = parts
    assert (split.op.name, split.args[0].op.name) == ("split", "nn.relu")


@pytest.mark.parametrize("shapes", [((1,), (2,)), ((), ()), ((3, 1), (3, 1)), ((3, 5), (3, 1))])
def test_single_elements_are_repeated_for_their_columns(shapes: list[tuple[int, ...]]) -> None:
    x, u, v = [relay.var("xuv"[i], shape=s) for i, s in enumerate([(3, 4), (5, 4), (2, 4)])]
    factors = [relay.var("ab"[i], shape=shape) for i, shape in enumerate(shapes)]
    rows = [relay.nn.dense(x, w) * f for w, f in zip((u, v), factors, strict=True)]
    func = relay.Function([x, u, v, *factors], relay.Tuple(rows))
    after = assert_joined(func, "nn.dense", CombineParallelDense(2, to_batch=False))
    first, second = after.body.fields
    assert (first.attrs.begin, first.attrs.end) == ((0, 0), (-1, 5))
    assert (second.attrs.begin, second.attrs.end) == ((0, 5), (-1, 2))
    assert first.args[0].op.name == "multiply"
