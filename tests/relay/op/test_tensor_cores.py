"""Products padded to what tensor cores multiply."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import relay, topi
from tvm.relay.op.nn.tensor_cores import padding


def legalized(body: relay.Expr, target: str = "cuda") -> relay.Expr:
    func = relay.Function(relay.analysis.free_vars(body), body)
    with tvm.target.Target(target):
        return relay.transform.Legalize()(tvm.IRModule.from_expr(func))["main"].body


def names(expr: relay.Expr) -> list[str]:
    return [n.op.name for n in relay.analysis.post_order(expr) if isinstance(n, relay.Call)]


def test_least_extra_work_is_chosen() -> None:
    shapes = ((16, 16, 16), (32, 16, 8), (8, 16, 32))
    assert padding(7, 64, 64, shapes) == (1, 0, 0)
    assert padding(16, 15, 24, shapes) == (0, 1, 8)
    assert padding(8, 16, 32, shapes) is None
    assert padding(2, 64, 64, shapes) is None  # thrice the work in addition


def test_dense_is_padded_for_cuda_alone() -> None:
    x, w = relay.var("x", shape=(7, 15), dtype="int8"), relay.var("w", shape=(31, 15), dtype="int8")
    body = relay.nn.dense(x, w, units=31, out_dtype="int32")
    assert names(legalized(body, "llvm")) == ["nn.dense"]
    made = legalized(body)
    assert names(made) == ["nn.pad", "nn.pad", "nn.dense", "strided_slice"]
    assert tuple(made.checked_type.shape) == (7, 31) and made.args[0].attrs.units == 32
    values = [
        np.random.default_rng(i).integers(-9, 9, s, "int8")
        for i, s in enumerate([(7, 15), (31, 15)])
    ]
    func = relay.Function([x, w], made)
    found = relay.create_executor("graph").evaluate(func)(*values).numpy()
    np.testing.assert_array_equal(found, values[0].astype(int) @ values[1].astype(int).T)


def test_batches_of_products_are_padded_on_their_own_axes() -> None:
    x = relay.var("x", shape=(2, 16, 7), dtype="float16")
    y = relay.var("y", shape=(2, 16, 32), dtype="float16")
    made = legalized(relay.nn.batch_matmul(x, y, transpose_a=True, transpose_b=False))
    assert names(made) == ["nn.pad", "nn.batch_matmul", "strided_slice"]
    assert tuple(made.args[0].checked_type.shape) == (2, 8, 32)


def test_convolutions_of_channels_last_are_padded() -> None:
    x = relay.var("x", shape=(7, 9, 9, 16), dtype="int8")
    w = relay.var("w", shape=(3, 3, 16, 32), dtype="int8")
    options = {"kernel_size": (3, 3), "channels": 32, "out_dtype": "int32"}
    body = relay.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO", **options)
    made = legalized(body)
    assert names(made) == ["nn.pad", "nn.conv2d", "strided_slice"]
    assert tuple(made.checked_type.shape) == (7, 7, 7, 32)
    first = relay.nn.conv2d(relay.var("z", shape=(7, 16, 9, 9), dtype="int8"),
                            relay.var("v", shape=(32, 16, 3, 3), dtype="int8"), **options)  # fmt: skip
    assert names(legalized(first)) == ["nn.conv2d"]
    with tvm.target.Target("cuda"):
        assert topi.nn.dense_legalize.generic_func_node.choose(tvm.target.Target.current())
