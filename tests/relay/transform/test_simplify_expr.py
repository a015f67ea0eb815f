from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.transform import SimplifyExpr

from .common import assert_unchanged, run


def test_dense_layer_flattened_to_a_vector_stays() -> None:
    x, w = relay.var("x", shape=(1, 2, 3)), relay.var("w", shape=(4, 3))
    layer = relay.nn.dense(relay.reshape(x, (2, 3)), w)
    assert_unchanged(relay.Function([x, w], relay.reshape(layer, (8,))), SimplifyExpr())


def same_values(before: relay.Function, after: relay.Function) -> None:
    rng = np.random.default_rng(0)
    shapes = [param.type_annotation.concrete_shape for param in before.params]
    args = [rng.uniform(-1, 1, shape).astype("float32") for shape in shapes]
    with tvm.transform.PassContext(opt_level=0):
        wanted, found = [
            relay.create_executor("graph", target="llvm").evaluate(func)(*args).numpy()
            for func in (before, after)
        ]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_padding_only_taps_go() -> None:
    x, w = relay.var("x", shape=(1, 4, 6, 9)), relay.var("w", shape=(3, 4, 3, 3))
    wide = relay.nn.conv2d(x, w, padding=(7, 2, 7, 2), dilation=(7, 2), kernel_size=(3, 3))
    before = relay.Function([x, w], wide)
    after = run(before, SimplifyExpr())
    assert after.body.attrs.kernel_size == (1, 3) and after.body.attrs.padding == (0, 2, 0, 2)
    same_values(before, after)


@pytest.mark.parametrize(
    ("extent", "taps", "border", "stride", "dilation", "left"),
    [
        (1, 3, (1, 1), 1, 1, (1, (0, 0))),
        (1, 5, (2, 2), 2, 1, (1, (0, 0))),
        (4, 3, (9, 0), 2, 4, (1, (1, 0))),  # one side alone
        (2, 3, (3, 5), 1, 3, (2, (3, 2))),  # the last place, too, sees the border only
        (5, 3, (1, 1), 1, 1, (3, (1, 1))),
    ],
)
def test_windows_along_one_axis(
    extent: int, taps: int, border: tuple[int, int], stride: int, dilation: int, left: object
) -> None:
    x, w = relay.var("x", shape=(1, 2, extent)), relay.var("w", shape=(3, 2, taps))
    layer = relay.nn.conv1d(x, w, strides=stride, padding=border, dilation=dilation)
    before = relay.Function([x, w], layer)
    after = run(before, SimplifyExpr())
    found = relay.transform.InferType()(tvm.IRModule.from_expr(after))["main"].body
    kernel = found.args[1].checked_type.concrete_shape[2]
    assert (kernel, tuple(found.attrs.padding)) == left
    same_values(before, after)


def simplified(body: relay.Expr) -> relay.Expr:
    return run(relay.Function(relay.analysis.free_vars(body), body), SimplifyExpr()).body


def test_transposes_and_layouts_become_one() -> None:
    x = relay.var("x", shape=(1, 3, 4, 5))
    y = relay.layout_transform(relay.transpose(relay.nn.relu(x), (0, 2, 3, 1)), "NHWC", "HWCN")
    assert simplified(relay.transpose(y, (3, 2, 0, 1))).op.name == "nn.relu"
    assert simplified(relay.transpose(y, (3, 0, 1, 2))).attrs.axes == (0, 2, 3, 1)
    blocked = relay.layout_transform(relay.layout_transform(x, "NCHW", "NCHW3c"), "NCHW3c", "NCHW")
    assert simplified(blocked).op.name == "layout_transform"


def test_casts_that_lose_nothing_are_left_out() -> None:
    def types_on_the_way(*dtypes: str) -> list[str]:
        value = relay.var("x", shape=(2,), dtype=dtypes[0])
        for dtype in dtypes[1:]:
            value = relay.cast(value, dtype)
        found = []
        node = simplified(value)
        while isinstance(node, relay.Call):
            found.append(str(node.attrs.dtype))
            node = node.args[0]
        return found

    assert types_on_the_way("int8", "int16", "int32") == ["int32"]
    assert types_on_the_way("float16", "float32", "float16") == []
    assert types_on_the_way("bfloat16", "float32", "float64") == ["float64"]
    assert types_on_the_way("uint8", "float16", "int32") == ["int32"]
    assert types_on_the_way("bool", "float16", "int32") == ["int32"]
    for lossy in (
        ("float32", "float16", "float32"), ("int8", "uint8", "int32"), ("int32", "float32", "int64"),
        ("float16", "bfloat16", "float32"), ("int16", "int8", "int16"), ("uint8", "int8", "int32"),
        ("int8", "bool", "int8"), ("float32", "int32", "float32"), ("bfloat16", "float16", "float32"),
    ):  # fmt: skip
        assert len(types_on_the_way(*lossy)) == 2


def test_neutral_tensors_are_left_out() -> None:
    x = relay.var("x", shape=(2, 3))
    for tensor in (
        relay.zeros((2, 3), "float32"), relay.zeros_like(x), relay.full(relay.const(0.0), (2, 3)),
    ):  # fmt: skip
        assert isinstance(simplified(x - tensor), relay.Var)
        assert isinstance(simplified(x + tensor), relay.Var)
    for tensor in (relay.ones((2, 3), "float32"), relay.ones_like(x)):
        assert isinstance(simplified(tensor * x), relay.Var)
        assert isinstance(simplified(x / tensor), relay.Var)
    whole = relay.var("i", shape=(2, 3), dtype="int32")
    assert isinstance(simplified(whole + relay.zeros((2, 3), "int32")), relay.Var)
    assert isinstance(simplified(whole + relay.const(0)), relay.Var)
    wide = relay.zeros((4, 2, 3), "float32")
    assert simplified(x + wide).op.name == "add"


def test_constants_meet() -> None:
    x = relay.var("x", shape=(2, 3))
    total = simplified((x + relay.const(1.0)) + relay.const(2.0))
    assert float(total.args[1].data.numpy()) == 3
    product = simplified(relay.const(4.0) * (x * relay.const([[1.0], [2.0]])))
    assert product.args[1].data.numpy().tolist() == [[4.0], [8.0]]
    huge = simplified((x * relay.const(1e30)) * relay.const(1e30))
    assert relay.testing.count_ops(huge)["multiply"] == 2
    vector = relay.var("v", shape=(3,))
    assert (
        relay.testing.count_ops(simplified((vector + relay.const([[1.0]])) + relay.const(1.0)))[
            "add"
        ]
        == 2
    )


def test_quotients_by_roots_are_products() -> None:
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 1))
    assert simplified(relay.const(1.0) / relay.sqrt(y)).op.name == "rsqrt"
    assert relay.testing.count_ops(simplified(x / relay.sqrt(y))) == {"multiply": 1, "rsqrt": 1}


def test_operators_like_a_tensor_know_its_type() -> None:
    x, z = relay.var("x", shape=(2, 3)), relay.var("z", shape=(6,), dtype="int8")
    assert simplified(relay.zeros_like(x)).op.name == "zeros"
    assert simplified(relay.full_like(x, relay.const(2.0))).op.name == "full"
    assert simplified(relay.reshape_like(z, x)).attrs.newshape == (2, 3)
    none = relay.var("none", shape=(2, 0, 4))
    found = simplified(relay.reshape_like(relay.var("flat", shape=(0,)), none))
    assert found.attrs.newshape == (2, 0, 4) and found.checked_type.concrete_shape == (2, 0, 4)
    assert simplified(relay.cast_like(x, z)).attrs.dtype == "int8"
    row = relay.var("row", shape=(1, 3))
    assert simplified(relay.broadcast_to_like(row, x)).attrs.shape == (2, 3)
    assert simplified(relay.collapse_sum_like(x, row)).attrs.shape == (1, 3)
    some = relay.var("some", shape=(relay.Any(), 3))
    assert simplified(relay.zeros_like(some)).op.name == "zeros_like"


def test_factors_whose_product_is_too_small_are_not_folded() -> None:
    x = relay.var("x", shape=(4,))
    assert_unchanged(
        relay.Function([x], x * relay.const(1e-30) * relay.const(1e-30)), SimplifyExpr()
    )
    joined = run(relay.Function([x], x * relay.const(2.0) * relay.const(3.0)), SimplifyExpr())
    assert float(joined.body.args[1].data.numpy()) == 6.0
