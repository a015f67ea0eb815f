"""Shapes that only the run knows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tvm
from tests.relay.vm.common import as_module, plain, same
from tvm import relay, te
from tvm.runtime.vm import VirtualMachine
from tvm.te.hybrid import script

ANY = relay.Any()


class Compiled:
    """A function compiled once, for inputs of many shapes."""

    def __init__(self, *args: relay.Expr) -> None:
        *params, body = args
        exe = relay.vm.compile(as_module(relay.Function(params, body)), "llvm")
        self.machine = VirtualMachine(exe, tvm.cpu())

    def __call__(self, *args: object) -> object:
        return plain(self.machine.run(*args))


def rand(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def tensor(name: str, *shape: object, dtype: str = "float32") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


def test_elementwise_operators_take_any_shape() -> None:
    x = tensor("x", ANY, ANY)
    run = Compiled(x, relay.nn.relu(relay.exp(x) - relay.const(1.5)))
    for shape in ((1, 1), (3, 5), (64, 17), (0, 4)):
        same(run(rand(*shape)), np.maximum(np.exp(rand(*shape)) - 1.5, 0))


def test_kernels_may_give_shapes_that_are_known_better_than_declared() -> None:
    x, p = tensor("x", 4), tensor("p", 4)
    opened = relay.TensorType((ANY,), "float32")
    best = relay.topk(p, 2, axis=0, ret_type="values")
    kernel = relay.Function([p], best, opened).with_attr("Primitive", 1)
    y = relay.var("y", opened)
    run = Compiled(x, relay.Let(y, kernel(x), relay.nn.relu(y)))
    same(run(np.array([3, 1, 4, 1], "float32")), np.array([4, 3], "float32"))


def test_unknown_extents_broadcast() -> None:
    x, y = tensor("x", ANY, ANY), tensor("y", ANY, ANY)
    run = Compiled(x, y, relay.add(x, y))
    for a, b in (((3, 4), (3, 4)), ((1, 4), (3, 1)), ((3, 1), (3, 4)), ((1, 1), (1, 1))):
        same(run(rand(*a), rand(*b)), rand(*a) + rand(*b))


def test_extents_that_do_not_broadcast_are_rejected() -> None:
    x, y = tensor("x", ANY, 4), tensor("y", ANY, 4)
    run = Compiled(x, y, relay.add(x, y))
    with pytest.raises(Exception, match="add requires shapes that broadcast to each other"):
        run(rand(3, 4), rand(2, 4))


def test_dense_layers_take_any_batch() -> None:
    x = tensor("x", ANY, 16)
    w, b = rand(8, 16), rand(8)
    layer = relay.nn.bias_add(relay.nn.dense(x, relay.const(w)), relay.const(b))
    run = Compiled(x, relay.nn.softmax(layer))
    for n in (1, 2, 7, 64):
        z = rand(n, 16) @ w.T + b
        e = np.exp(z - z.max(axis=1, keepdims=True))
        same(run(rand(n, 16)), e / e.sum(axis=1, keepdims=True))


def test_inner_extents_of_products_are_checked() -> None:
    x, y = tensor("x", ANY, ANY), tensor("y", ANY, ANY)
    run = Compiled(x, y, relay.nn.dense(x, y))
    same(run(rand(3, 5), rand(4, 5)), rand(3, 5) @ rand(4, 5).T)
    with pytest.raises(Exception, match="nn.dense requires arguments whose shapes fit"):
        run(rand(3, 5), rand(4, 6))


def test_batched_products() -> None:
    x, y = tensor("x", ANY, ANY, 8), tensor("y", ANY, 6, 8)
    run = Compiled(x, y, relay.nn.batch_matmul(x, y))
    same(run(rand(2, 3, 8), rand(2, 6, 8)), rand(2, 3, 8) @ rand(2, 6, 8).transpose(0, 2, 1))


def test_convolutions_and_pools_take_any_batch_and_size() -> None:
    x = tensor("x", ANY, 3, ANY, ANY)
    w = rand(4, 3, 3, 3)
    conv = relay.nn.conv2d(
        x, relay.const(w), padding=(1, 1), strides=(2, 2), channels=4, kernel_size=(3, 3)
    )
    value = relay.nn.max_pool2d(relay.nn.relu(conv), (2, 2), strides=(2, 2))
    run = Compiled(x, value)
    for n, h, v in ((1, 16, 16), (2, 11, 9)):
        data = torch.from_numpy(rand(n, 3, h, v))
        z = torch.nn.functional.conv2d(data, torch.from_numpy(w), padding=1, stride=2).relu()
        same(run(data.numpy()), torch.nn.functional.max_pool2d(z, 2).numpy())


def test_reductions() -> None:
    x = tensor("x", ANY, ANY, 3)
    run = Compiled(
        x,
        relay.Tuple(
            [relay.sum(x, axis=1), relay.max(x, axis=[0, 2], keepdims=True), relay.mean(x)]
        ),
    )
    v = rand(4, 5, 3)
    same(run(v), [v.sum(1), v.max((0, 2), keepdims=True), v.mean()])


def test_reshapes() -> None:
    x = tensor("x", ANY, 4, ANY)
    value = relay.Tuple(
        [
            relay.reshape(x, (-1, 4)),
            relay.reshape(x, (0, -1)),
            relay.nn.batch_flatten(x),
            relay.expand_dims(x, 1),
            relay.transpose(x, (2, 0, 1)),
        ]
    )
    run = Compiled(x, value)
    v = rand(3, 4, 5)
    same(
        run(v),
        [v.reshape(-1, 4), v.reshape(3, -1), v.reshape(3, -1), v[:, None], v.transpose(2, 0, 1)],
    )


def test_a_reshape_that_does_not_fit_is_rejected() -> None:
    x = tensor("x", ANY)
    run = Compiled(x, relay.reshape(x, (-1, 4)))
    same(run(rand(12)), rand(12).reshape(-1, 4))
    with pytest.raises(Exception, match="reshape"):
        run(rand(13))


def test_concatenation_split_and_stack() -> None:
    x, y = tensor("x", ANY, 4), tensor("y", ANY, 4)
    both = relay.concatenate([x, y, x], axis=0)
    run = Compiled(
        x, y, relay.Tuple([both, relay.split(both, 2, axis=1)[1], relay.stack([x, x], 1)])
    )
    a, b = rand(2, 4), rand(5, 4)
    joined = np.concatenate([a, b, a])
    same(run(a, b), [joined, joined[:, 2:], np.stack([a, a], 1)])


def test_slices_takes_and_wheres() -> None:
    x, i = tensor("x", ANY, 6), tensor("i", ANY, dtype="int32")
    value = relay.Tuple(
        [
            relay.strided_slice(x, [0, 1], [2**31 - 1, 5], [1, 2]),
            relay.take(x, i, axis=0),
            relay.where(relay.greater(x, relay.const(0.0)), x, relay.zeros_like(x)),
            relay.tile(x, (2, 1)),
            relay.repeat(x, 2, 0),
        ]
    )
    run = Compiled(x, i, value)
    v, j = rand(4, 6), np.array([3, 0, 0], "int32")
    same(
        run(v, j),
        [v[:, 1:5:2], v[j], np.where(v > 0, v, 0), np.tile(v, (2, 1)), np.repeat(v, 2, 0)],
    )


@pytest.mark.parametrize("count", [1, 3, 20])
def test_vectors_of_any_length(count: int) -> None:
    x = tensor("x", ANY)
    run = Compiled(x, relay.Tuple([relay.exp(x), relay.strided_slice(x, [0], [3])]))
    v = rand(count)
    same(run(v), [np.exp(v), v[:3]])


def test_ranges_have_the_length_that_their_values_say() -> None:
    n = tensor("n", dtype="int32")
    zero, one = relay.const(0, "int32"), relay.const(1, "int32")
    run = Compiled(n, relay.multiply(relay.arange(zero, n, one, "int32"), relay.const(2, "int32")))
    for count in (0, 1, 17):
        same(run(np.int32(count)), 2 * np.arange(count))


def test_the_shape_is_a_value() -> None:
    x = tensor("x", ANY, 3)
    run = Compiled(x, relay.Tuple([relay.shape_of(x), relay.ndarray_size(x)]))
    same(run(rand(5, 3)), [[5, 3], 15])


def test_sorting_takes_any_length() -> None:
    x = tensor("x", ANY, ANY)
    run = Compiled(x, relay.Tuple([relay.sort(x, axis=1), relay.topk(x, k=2, axis=1).astuple()]))
    v = rand(3, 7)
    found = run(v)
    same(found[0], np.sort(v, axis=1))
    same(found[1][0], -np.sort(-v, axis=1)[:, :2])


def test_a_variable_names_equal_extents() -> None:
    n = tvm.tir.SizeVar("n", "int32")
    x, y = tensor("x", n, 4), tensor("y", n, 4)
    run = Compiled(x, y, relay.add(x, y))
    same(run(rand(3, 4), rand(3, 4)), 2 * rand(3, 4))


def test_loops_grow_tensors() -> None:
    row = relay.TensorType((ANY, 2))
    i, x = relay.var("i", shape=(), dtype="int32"), relay.var("x", row)
    loop = relay.while_loop(
        lambda i, x: relay.less(i, relay.const(3, "int32")),
        [i, x],
        lambda i, x: [
            relay.add(i, relay.const(1, "int32")),
            relay.concatenate([x, relay.const(np.ones((1, 2), "float32"))], 0),
        ],
    )
    start = tensor("start", ANY, 2)
    run = Compiled(start, relay.TupleGetItem(loop(relay.const(0, "int32"), start), 1))
    same(run(rand(2, 2)), np.concatenate([rand(2, 2), np.ones((3, 2))]))


def test_branches_of_different_shapes_meet() -> None:
    x, c = tensor("x", ANY), relay.var("c", shape=(), dtype="bool")
    value = relay.exp(relay.If(c, relay.concatenate([x, x], 0), x))
    run = Compiled(c, x, value)
    same(run(True, rand(3)), np.exp(np.concatenate([rand(3)] * 2)))
    same(run(False, rand(3)), np.exp(rand(3)))


def test_kernels_serve_all_equal_layers() -> None:
    x = tensor("x", ANY, 8)
    value = x
    for _ in range(5):
        value = relay.nn.relu(relay.nn.dense(value, relay.const(rand(8, 8))))
    exe = relay.vm.compile(as_module(relay.Function([x], value)), "llvm")
    assert sum("dense" in name and "shape_func" not in name for name in exe.primitive_ops) == 1


def test_blocked_convolutions_take_any_batch() -> None:
    x = tensor("x", ANY, 16, 8, 8)
    w = rand(16, 16, 3, 3)
    conv = relay.nn.conv2d(x, relay.const(w), padding=(1, 1))
    with tvm.transform.PassContext(opt_level=3):
        exe = relay.vm.compile(as_module(relay.Function([x], relay.add(conv, x))), "llvm")
    assert any("contrib_conv2d" in name for name in exe.primitive_ops)
    fixed = relay.var("x", shape=(3, 16, 8, 8))
    program = relay.Function([fixed], relay.nn.conv2d(fixed, relay.const(w), padding=(1, 1)))
    expected = relay.create_executor("debug").evaluate(program)(rand(3, 16, 8, 8)).numpy()
    found = VirtualMachine(exe, tvm.cpu()).run(rand(3, 16, 8, 8))
    same(plain(found), expected + rand(3, 16, 8, 8))


def test_a_declared_extent_stands_for_an_unknown_one() -> None:
    x = tensor("x", ANY)
    rest = relay.var("rest", shape=(1,))
    body = relay.Let(rest, relay.split(x, [2])[1], rest * relay.const(2.0))
    same(Compiled(x, body)(rand(3)), rand(3)[2:] * 2)


@script
def doubled_shape(shape):
    out = output_tensor((1,), "int64")
    out[0] = shape[0] * int64(2)
    return out


def test_an_operator_of_users_has_their_shape_function() -> None:
    name = "tests.twice_as_long"
    op = relay.op.op.register(name, "The vector and itself again.") or relay.op.get(name)
    op.set_num_inputs(1)
    op.add_argument("data", "Tensor", "a vector")
    op.add_type_rel("TwiceAsLong", lambda types, attrs: relay.TensorType([ANY], types[0].dtype))
    relay.op.register_pattern(name, relay.op.OpPattern.OPAQUE)
    relay.op.register_injective_schedule(name)
    relay.op.register_shape_func(name, False, lambda attrs, inputs, ndims: [doubled_shape(*inputs)])

    @relay.op.register_compute(name)
    def compute(attrs: object, inputs: list[te.Tensor], out_type: object) -> list[te.Tensor]:
        extent = inputs[0].shape[0]
        return [te.compute((extent * 2,), lambda i: inputs[0][te.indexmod(i, extent)])]

    x = tensor("x", ANY)
    run = Compiled(x, relay.Call(op, [x]) + relay.const(1.0))
    for size in (1, 5):
        same(run(rand(size)), np.tile(rand(size), 2) + 1)
