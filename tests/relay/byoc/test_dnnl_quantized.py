"""Quantised products by oneDNN are at most one away from the plain build."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_onednn
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.contrib.dnnl import partition_for_dnnl
from tvm.relay.contrib.dnnl_quantized import has_byte_products

pytestmark = needs_onednn()

RNG = np.random.default_rng(3)
LAYOUTS = {"NCHW": ("OIHW", (0, 1, 2, 3)), "NHWC": ("HWIO", (2, 3, 1, 0))}


def integers(*shape: int, dtype: str = "int8", low: int = -60, high: int = 60) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(dtype)


def scale(*values: float) -> Any:
    return relay.const(np.array(values if len(values) > 1 else values[0], "float32"))


def requantized(sums: Any, dtype: str, zero: int, axis: int = -1, scales: Any = None) -> Any:
    return relay.qnn.op.requantize(
        sums,
        scales if scales is not None else scale(0.01),
        relay.const(0),
        scale(1.0),
        relay.const(zero),
        axis=axis,
        out_dtype=dtype,
    )


def conv(data: Any, layout: str = "NCHW", zero: int = 0, groups: int = 1, **attrs: Any) -> Any:
    kernel_layout, places = LAYOUTS[layout]
    weight = integers(8, 4 // groups, 3, 3).transpose(places)
    return relay.qnn.op.conv2d(
        data,
        relay.const(weight),
        relay.const(zero),
        relay.const(0),
        scale(0.1),
        scale(0.1),
        kernel_size=(3, 3),
        channels=8,
        groups=groups,
        data_layout=layout,
        kernel_layout=kernel_layout,
        **attrs,
    )


def dense(data: Any, zero: int = 0) -> Any:
    weight = relay.const(integers(5, 32))
    return relay.qnn.op.dense(
        data, weight, relay.const(zero), relay.const(0), scale(0.1), scale(0.1), units=5
    )


def run(mod: tvm.IRModule, inputs: dict[str, np.ndarray]) -> np.ndarray:
    module = graph_executor.GraphModule(relay.build(mod, "llvm")["default"](tvm.cpu()))
    module.run(**inputs)
    found: np.ndarray = module.get_output(0).numpy()
    return found


def taken(mod: tvm.IRModule) -> list[str]:
    found: list[str] = []
    for func in mod.functions.values():
        if func.attrs.get("Compiler") == "dnnl":
            relay.analysis.post_order_visit(
                func.body,
                lambda n: (
                    found.append(str(n.attrs["Composite"]))
                    if isinstance(n, relay.Function)
                    else None
                ),
            )
    return found


def check(body: Any, *names: str, share: float = 0.05) -> None:
    """The names are taken; results are one apart at most, and a share of them."""
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(body))
    inputs = {}
    for param in mod["main"].params:
        ty = param.checked_type
        ends = (0, 256) if ty.dtype == "uint8" else (-128, 128)
        inputs[param.name_hint] = RNG.integers(*ends, ty.concrete_shape).astype(ty.dtype)
    new = partition_for_dnnl(mod)
    assert taken(new) == list(names)
    wanted, found = run(mod, inputs), run(new, inputs)
    assert found.dtype == wanted.dtype and wanted.std() > 1
    difference = np.abs(found.astype("int32") - wanted.astype("int32"))
    assert difference.max() <= 1 and (difference != 0).mean() < share


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_convolutions_with_a_bias(layout: str, dtype: str) -> None:
    shape = (1, 4, 8, 8) if layout == "NCHW" else (1, 8, 8, 4)
    x = relay.var("x", shape=shape, dtype=dtype)
    axis = layout.index("C")
    sums = conv(x, layout, zero=3, padding=(1, 1), strides=(2, 2))
    biased = relay.nn.bias_add(sums, relay.const(integers(8, dtype="int32")), axis=axis)
    is_exact = dtype == "uint8" or has_byte_products()
    check(requantized(biased, dtype, 7), *["dnnl.qnn.conv2d"] * is_exact)


def test_a_scale_for_each_channel() -> None:
    x = relay.var("x", shape=(2, 4, 8, 8), dtype="uint8")
    scales = scale(*np.linspace(0.002, 0.02, 8))
    check(requantized(conv(x, groups=2), "int8", -5, axis=1, scales=scales), "dnnl.qnn.conv2d")


def test_clips_and_casts_of_pytorch() -> None:
    x = relay.var("x", shape=(1, 4, 8, 8), dtype="uint8")
    wide = requantized(
        relay.add(conv(x), relay.const(integers(8, 1, 1, dtype="int32"))), "int32", 90
    )
    check(relay.cast(relay.clip(wide, 20, 200), "uint8"), "dnnl.qnn.conv2d")


def test_a_cast_that_wraps_stays_outside() -> None:
    x = relay.var("x", shape=(1, 4, 8, 8), dtype="uint8")
    body = relay.cast(requantized(conv(x), "int32", 90), "uint8")
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(body))
    assert taken(partition_for_dnnl(mod)) == []


@pytest.mark.parametrize("is_second", [False, True])
def test_a_summand_of_another_scale(is_second: bool) -> None:
    x = relay.var("x", shape=(1, 4, 8, 8), dtype="uint8")
    other = relay.var("other", shape=(1, 8, 6, 6), dtype="uint8")
    operands = [requantized(conv(x), "uint8", 100), other]
    parameters = [scale(0.5), relay.const(100), scale(0.75), relay.const(7)]
    if is_second:
        operands, parameters = operands[::-1], [*parameters[2:], *parameters[:2]]
    body = relay.qnn.op.add(*operands, *parameters, scale(0.9), relay.const(30))
    # the product itself is not rounded before the sum
    check(relay.clip(body, 0, 255), "dnnl.qnn.conv2d", share=0.35)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_dense_layers_fold_the_zero_point_into_the_bias(dtype: str) -> None:
    x = relay.var("x", shape=(7, 32), dtype=dtype)
    biased = relay.nn.bias_add(dense(x, zero=11), relay.const(integers(5, dtype="int32")))
    check(requantized(biased, "int8", 2), "dnnl.qnn.dense")


def test_zero_points_of_weights_stay_outside() -> None:
    x = relay.var("x", shape=(7, 32), dtype="uint8")
    weight = relay.const(integers(5, 32))
    sums = relay.qnn.op.dense(
        x, weight, relay.const(0), relay.const(1), scale(0.1), scale(0.1), units=5
    )
    mod = tvm.IRModule.from_expr(requantized(sums, "int8", 2))
    assert taken(partition_for_dnnl(relay.transform.InferType()(mod))) == []


def test_chains_of_products_are_one_function() -> None:
    x = relay.var("x", shape=(1, 4, 8, 8), dtype="uint8")
    first = requantized(conv(x, padding=(1, 1)), "uint8", 100)
    weight = relay.const(integers(4, 8, 1, 1))
    second = relay.qnn.op.conv2d(
        first,
        weight,
        relay.const(100),
        relay.const(0),
        scale(0.1),
        scale(0.1),
        kernel_size=(1, 1),
        channels=4,
    )
    mod = relay.transform.InferType()(
        tvm.IRModule.from_expr(requantized(second, "int8", 0, scales=scale(0.02)))
    )
    new = partition_for_dnnl(mod)
    assert len([f for f in new.functions.values() if f.attrs.get("Compiler") == "dnnl"]) == 1
    inputs = {"x": integers(1, 4, 8, 8, dtype="uint8", low=0, high=255)}
    assert np.abs(run(new, inputs).astype("int32") - run(mod, inputs)).max() <= 3
