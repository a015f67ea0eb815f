"""Layers move to blocked layouts, and what lies between them follows."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.testing.temp_op_attr import TempOpAttr
from tvm.relay.transform import AlterOpLayout, FoldConstant
from tvm.relay.traverse import post_order
from tvm.target import Target

from .common import typed

RNG = np.random.default_rng(0)


def random(*shape: int) -> relay.Constant:
    return relay.const(RNG.uniform(-1, 1, shape).astype("float32"))


def conv(x: relay.Expr, channels: int = 32, inputs: int = 32) -> relay.Expr:
    weight = random(channels, inputs, 3, 3)
    return relay.nn.conv2d(x, weight, channels=channels, kernel_size=(3, 3), padding=(1, 1))


def altered(func: relay.Function) -> relay.Function:
    return altered_for(func, "llvm")


def altered_for(func: relay.Function, target: str) -> relay.Function:
    with Target(target), tvm.transform.PassContext(opt_level=3):
        mod = AlterOpLayout()(typed(func))
        return FoldConstant()(mod)["main"]


def transforms(func: relay.Function) -> int:
    return relay.analysis.list_op_freqs(tvm.IRModule.from_expr(func)).get("layout_transform", 0)


def image() -> relay.Var:
    return relay.var("x", shape=(1, 32, 16, 16))


def pool(x: relay.Expr) -> relay.Expr:
    return relay.nn.max_pool2d(x, pool_size=(2, 2), strides=(2, 2))


@pytest.mark.parametrize(
    "between",
    [
        relay.nn.relu,
        lambda x: x + random(32, 1, 1),
        lambda x: x * relay.const(2.0),
        pool,
        lambda x: relay.concatenate([x, relay.nn.relu(x)], axis=1),
        lambda x: relay.nn.relu(x) + x,
    ],
)
def test_layout_passes_between_two_convolutions(between: object) -> None:
    x = image()
    middle = between(conv(x))  # type: ignore[operator]
    channels = typed(relay.Function([x], middle))["main"].ret_type.concrete_shape[1]
    after = altered(relay.Function([x], conv(middle, inputs=channels)))
    assert transforms(after) == 2
    assert "nn.conv2d" not in relay.analysis.list_op_freqs(tvm.IRModule.from_expr(after))


def test_unknown_operator_gets_the_plain_layout() -> None:
    x = image()
    after = altered(relay.Function([x], conv(relay.reshape(conv(x), (1, 32, 32, 8)))))
    assert transforms(after) == 4


def test_plain_value_is_transformed_once_for_all_users() -> None:
    x = image()
    y = conv(x)
    flat = [relay.nn.batch_flatten(y), relay.reshape(y, (-1,))]
    assert transforms(altered(relay.Function([x], relay.Tuple(flat)))) == 2


def test_types_stay_the_same() -> None:
    x = image()
    before = typed(relay.Function([x], relay.nn.relu(conv(x))))["main"]
    assert altered(relay.Function([x], before.body)).ret_type == before.ret_type


def test_without_target_nothing_happens() -> None:
    x = image()
    mod = typed(relay.Function([x], conv(x)))
    assert AlterOpLayout()(mod) is mod


def test_values_stay_the_same() -> None:
    x = image()
    y = relay.nn.relu(conv(x) + random(32, 1, 1))
    func = relay.Function([x], relay.nn.global_avg_pool2d(conv(pool(y)) + pool(y)))
    value = RNG.uniform(-1, 1, (1, 32, 16, 16)).astype("float32")
    results = []
    for level in (0, 3):
        with tvm.transform.PassContext(opt_level=level):
            results.append(relay.create_executor("graph").evaluate(func)(value).numpy())
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("addend", [(), (1,), (1, 1, 1, 1)])
def test_a_convolution_to_a_single_element_is_added_to_plainly(addend: tuple[int, ...]) -> None:
    x = relay.var("x", shape=(1, 1, 1, 1))
    value = relay.nn.conv2d(x, random(1, 1, 1, 1), kernel_size=(1, 1), channels=1)
    func = altered(relay.Function([x], value + random(*addend)))
    assert func.ret_type == relay.TensorType((1, 1, 1, 1), "float32")


def test_what_has_no_channels_meets_no_blocks() -> None:
    x = relay.var("x", shape=(1, 32, 16, 16))
    func = relay.Function([x], conv(x) * random(16, 16))  # as wide as the blocks
    given = RNG.uniform(-1, 1, (1, 32, 16, 16)).astype("float32")
    results = []
    for level in (0, 3):
        with tvm.transform.PassContext(opt_level=level):
            run = relay.create_executor("graph", mod=tvm.IRModule.from_expr(func)).evaluate()
        results.append(run(given).numpy())
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("units", [1, 3, 7, 10, 20, 37, 70])
@pytest.mark.parametrize("rows", [1, 8, 63])
def test_dense_layers_of_few_units_fill_vectors_too(rows: int, units: int) -> None:
    x = relay.var("x", shape=(rows, 48))
    weight, bias = random(units, 48), random(units)
    func = relay.Function([x], relay.nn.bias_add(relay.nn.dense(x, weight), bias))
    assert "nn.contrib_dense_pack" in relay.analysis.list_op_freqs(
        tvm.IRModule.from_expr(altered(func))
    )
    value = RNG.uniform(-1, 1, (rows, 48)).astype("float32")
    with tvm.transform.PassContext(opt_level=3):
        found = relay.create_executor("graph", target="llvm").evaluate(func)(value).numpy()
    wanted = value @ weight.data.numpy().T + bias.data.numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("rows", "columns"), [(17, 51), (1, 37), (40, 64), (3, 2)])
def test_weights_transposed_by_the_program_are_taken_as_they_are(rows: int, columns: int) -> None:
    x, w = relay.var("x", shape=(rows, 24)), relay.var("w", shape=(24, columns))
    func = relay.Function([x, w], relay.nn.dense(x, relay.transpose(w)))
    assert relay.analysis.list_op_freqs(tvm.IRModule.from_expr(altered(func))) == {"nn.matmul": 1}
    values = [RNG.uniform(-1, 1, shape).astype("float32") for shape in ((rows, 24), (24, columns))]
    with tvm.transform.PassContext(opt_level=3):
        found = relay.create_executor("graph", target="llvm").evaluate(func)(*values).numpy()
    np.testing.assert_allclose(found, values[0] @ values[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("channels", [1, 5, 19, 23, 36, 58, 91])
def test_any_number_of_channels_fills_vectors(channels: int) -> None:
    x = relay.var("x", shape=(1, 7, 9, 11))
    first = relay.nn.relu(conv(x, channels, 7))
    func = relay.Function([x], conv(first, 21, channels))
    value = RNG.uniform(-1, 1, (1, 7, 9, 11)).astype("float32")
    results = []
    for level in (0, 3):
        with tvm.transform.PassContext(opt_level=level):
            results.append(relay.create_executor("graph", target="llvm").evaluate(func)(value))
    np.testing.assert_allclose(results[1].numpy(), results[0].numpy(), rtol=1e-4, atol=1e-4)
    blocks = [
        int(node.attrs.out_layout[4:-1])
        for node in post_order(altered_for(func, "llvm -mcpu=x86-64-v4"))
        if isinstance(node, relay.Call) and "NCHWc" in node.op.name
    ]
    assert blocks[-1] >= 8


@pytest.mark.parametrize(("inputs", "channels", "block"), [(64, 40, 8), (512, 40, 16), (512, 8, 8)])
def test_half_vectors_are_filled_where_sums_are_long(
    inputs: int, channels: int, block: int
) -> None:
    x = relay.var("x", shape=(1, inputs, 5, 6))
    weight = random(channels, inputs, 1, 1)
    func = relay.Function([x], relay.nn.conv2d(x, weight, channels=channels, kernel_size=(1, 1)))
    (found,) = [
        node.attrs.out_layout
        for node in post_order(altered_for(func, "llvm -mcpu=skylake-avx512"))
        if isinstance(node, relay.Call) and "NCHWc" in node.op.name
    ]
    assert found == f"NCHW{block}c"
    value = RNG.uniform(-1, 1, (1, inputs, 5, 6)).astype("float32")
    with tvm.transform.PassContext(opt_level=3):
        got = relay.create_executor("graph", target="llvm").evaluate(func)(value).numpy()
    wanted = np.einsum("nchw,oc->nohw", value, weight.data.numpy()[:, :, 0, 0])
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


CLASSIC_DENSE = [
    ("llvm -mtriple=x86_64-linux-gnu -mcpu=core-avx2", "x86", "_alter_dense_layout", "NC16n"),
    ("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512", "x86", "_alter_dense_layout", "NC24n"),
    ("llvm -mtriple=aarch64-linux-gnu -mattr=+neon", "arm_cpu", "_alter_dense", "transpose"),
]


@pytest.mark.parametrize(("target", "library", "name", "wanted"), CLASSIC_DENSE)
def test_dense_layers_change_by_the_libraries_functions(
    target: str, library: str, name: str, wanted: str
) -> None:
    x, weight = relay.var("x", shape=(3, 8)), relay.var("weight", shape=(48, 8))
    func = relay.Function([x, weight], relay.nn.dense(x, weight))
    alter = getattr(getattr(tvm.topi, library).dense_alter_op, name)
    with Target(target), TempOpAttr("nn.dense", "FTVMAlterOpLayout", alter):
        after = AlterOpLayout()(typed(func))["main"]
    assert f"{wanted}" in str(after) and "nn.dense(" not in str(after)
    given = [RNG.uniform(-1, 1, shape).astype("float32") for shape in ((3, 8), (48, 8))]
    result = relay.create_executor("graph").evaluate(after)(*given)
    np.testing.assert_allclose(result.numpy(), given[0] @ given[1].T, rtol=1e-5, atol=1e-5)
