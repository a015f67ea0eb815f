"""What external compilers that are not here take of a model, and that nothing changes by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.error import TVMError
from tvm.relay.contrib import (
    arm_compute_lib,
    bnns,
    clml,
    cmsisnn,
    coreml,
    cublas,
    cudnn,
    cutlass,
    get_pattern_table,
    tensorrt,
)
from tvm.relay.transform import InlineCompilerFunctionsBoundTo

RNG = np.random.default_rng(0)


def weight(*shape: int, dtype: str = "float32") -> Any:
    if dtype.startswith("float"):
        return relay.const(RNG.standard_normal(shape).astype(dtype))
    return relay.const(RNG.integers(-20, 20, shape).astype(dtype))


def taken(mod: tvm.IRModule) -> list[str]:
    """The names of the composite functions, and of the operators that are taken as they are."""
    found: list[str] = []
    for func in mod.functions.values():
        if "Compiler" in func.attrs:
            nodes = _nodes(func.body)
            bodies = [node for node in nodes if isinstance(node, relay.Function)]
            inside = {id(node) for body in bodies for node in _nodes(body.body)}
            found += [str(body.attrs["Composite"]) for body in bodies]
            found += [
                node.op.name
                for node in nodes
                if isinstance(node, relay.Call)
                and isinstance(node.op, tvm.ir.Op)
                and id(node) not in inside
            ]
    return sorted(found)


def _nodes(expr: Any) -> list[Any]:
    found: list[Any] = []
    relay.analysis.post_order_visit(expr, found.append)
    return found


def run(mod: tvm.IRModule, data: list[np.ndarray]) -> np.ndarray:
    result: np.ndarray = relay.create_executor("graph", mod).evaluate()(*data).numpy()
    return result


def checked(partition: Callable[..., tvm.IRModule], body: Any) -> list[str]:
    """What is taken; the functions put back compute what the model computed."""
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(body))
    new = partition(mod)
    types = [param.checked_type for param in mod["main"].params]
    data = [
        RNG.integers(-30, 30, t.concrete_shape).astype(t.dtype)
        if "int" in t.dtype
        else RNG.standard_normal(t.concrete_shape).astype(t.dtype)
        for t in types
    ]
    outside = [gvar for gvar, func in new.functions.items() if "Compiler" in func.attrs]
    inlined = InlineCompilerFunctionsBoundTo(outside)(new)
    np.testing.assert_allclose(run(inlined, data), run(mod, data), rtol=1e-3, atol=1e-4)
    return taken(new)


def conv_nhwc(x: Any, layout: str = "HWIO", dtype: str = "float32") -> Any:
    shape = (3, 3, 4, 8) if layout == "HWIO" else (8, 3, 3, 4)
    return relay.nn.conv2d(
        x,
        weight(*shape, dtype=dtype),
        padding=(1, 1),
        channels=8,
        kernel_size=(3, 3),
        data_layout="NHWC",
        kernel_layout=layout,
    )


def quantised_conv(x: Any, **options: Any) -> Any:
    """int8 in NHWC, with a bias, made int8 again."""
    one = relay.const(0.5)
    conv = relay.qnn.op.conv2d(
        x,
        weight(3, 3, 4, 8, dtype="int8"),
        relay.const(3),
        relay.const(0),
        one,
        one,
        **{"padding": (1, 1), **options},
        channels=8,
        kernel_size=(3, 3),
        data_layout="NHWC",
        kernel_layout="HWIO",
    )
    biased = relay.nn.bias_add(conv, weight(8, dtype="int32"), axis=3)
    return relay.qnn.op.requantize(
        biased,
        relay.const(0.25),
        relay.const(0),
        relay.const(40.0),
        relay.const(0),
        out_dtype="int8",
    )


def gelu(x: Any, dtype: str = "float32") -> Any:
    scaled = x * relay.const(0.5**0.5, dtype)
    error = relay.erf(scaled)
    return x * (error * relay.const(0.5, dtype) + relay.const(0.5, dtype))


def test_arm_compute_lib_takes_convolutions_in_nhwc() -> None:
    x = relay.var("x", shape=(1, 6, 6, 4))
    conv = relay.nn.relu(relay.nn.bias_add(conv_nhwc(x), weight(8), axis=3))
    pooled = relay.nn.max_pool2d(conv, (2, 2), strides=(2, 2), layout="NHWC")
    body = relay.nn.dense(relay.reshape(pooled, (1, -1)), weight(5, 72))
    assert checked(arm_compute_lib.partition_for_arm_compute_lib, body) == [
        "arm_compute_lib.conv2d",
        "arm_compute_lib.dense",
        "nn.max_pool2d",
        "reshape",
    ]


def test_arm_compute_lib_leaves_other_layouts_and_weights_that_are_computed() -> None:
    x, w = relay.var("x", shape=(1, 4, 6, 6)), relay.var("w", shape=(8, 4, 3, 3))
    body = relay.nn.conv2d(x, w)
    assert checked(arm_compute_lib.partition_for_arm_compute_lib, body) == []
    bound = relay.nn.conv2d(x, weight(8, 4, 3, 3))
    assert checked(arm_compute_lib.partition_for_arm_compute_lib, bound) == []


def test_arm_compute_lib_takes_quantised_layers_and_pools_of_squares() -> None:
    x = relay.var("x", shape=(1, 6, 6, 4), dtype="int8")
    pooled = relay.cast(
        relay.nn.avg_pool2d(relay.cast(quantised_conv(x), "int32"), (2, 2), layout="NHWC"), "int8"
    )
    assert checked(arm_compute_lib.partition_for_arm_compute_lib, pooled) == [
        "arm_compute_lib.avg_pool2d",
        "arm_compute_lib.qnn_conv2d",
    ]
    y = relay.var("y", shape=(1, 6, 6, 4))
    square = relay.nn.avg_pool2d(relay.power(y, relay.const(2.0)), (2, 2), layout="NHWC")
    assert checked(arm_compute_lib.partition_for_arm_compute_lib, relay.sqrt(square)) == [
        "arm_compute_lib.l2_pool2d"
    ]


def test_arm_compute_lib_concatenates_on_request() -> None:
    x, y = relay.var("x", shape=(1, 4)), relay.var("y", shape=(1, 4))
    mod = tvm.IRModule.from_expr(relay.concatenate((x, y), axis=1))
    assert taken(arm_compute_lib.partition_for_arm_compute_lib(mod)) == []
    new = arm_compute_lib.partition_for_arm_compute_lib(mod, disabled_ops=[])
    assert taken(new) == ["arm_compute_lib.concatenate"]


def test_bnns_takes_convolutions_and_gelu() -> None:
    x = relay.var("x", shape=(1, 4, 6, 6))
    conv = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, weight(8, 4, 3, 3)), weight(8)))
    assert checked(bnns.partition_for_bnns, conv) == ["bnns.conv2d_bias_relu"]
    y = relay.var("y", shape=(3, 8))
    dense = gelu(relay.add(relay.nn.dense(y, weight(5, 8)), weight(5)))
    assert checked(bnns.partition_for_bnns, dense) == ["bnns.dense_bias_gelu"]


def test_clml_takes_layers_with_their_ends() -> None:
    x = relay.var("x", shape=(1, 4, 6, 6))
    conv = relay.nn.conv2d(x, weight(8, 4, 3, 3), channels=8, kernel_size=(3, 3))
    norms = [relay.const(np.abs(RNG.standard_normal(8)).astype("float32")) for _ in range(4)]
    body = relay.nn.relu(relay.nn.batch_norm(relay.nn.bias_add(conv, weight(8)), *norms)[0])
    body = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(body)), weight(5, 8))
    assert checked(clml.partition_for_clml, body) == [
        "clml.batch_flatten",
        "clml.conv2d",
        "clml.dense2d",
        "clml.global_avg_pool2d",
    ]


def test_cmsisnn_takes_quantised_layers() -> None:
    x = relay.var("x", shape=(1, 6, 6, 4), dtype="int8")
    conv = relay.clip(quantised_conv(x), -100, 100)
    pooled = relay.nn.max_pool2d(conv, (2, 2), layout="NHWC")
    half = relay.const(0.5)
    added = relay.qnn.op.add(
        pooled, pooled, half, relay.const(1), half, relay.const(2), half, relay.const(3)
    )
    mod = tvm.IRModule.from_expr(added)
    new = cmsisnn.partition_for_cmsisnn(mod, mod_name="net")
    assert taken(new) == ["cmsis-nn.qnn_add", "cmsis-nn.qnn_conv2d", "cmsis-nn.qnn_max_pool2d"]
    assert {gvar.name_hint for gvar in new.functions} == {
        "main",
        *[f"tvmgen_net_cmsis_nn_main_{i}" for i in range(3)],
    }
    assert checked(cmsisnn.partition_for_cmsisnn, added) == taken(new)


@pytest.mark.parametrize(
    ("before", "after", "is_taken"), [(1, 1, True), (0, 1, True), (2, 0, False)]
)
def test_cmsisnn_pads_within_the_convolution(before: int, after: int, is_taken: bool) -> None:
    x = relay.var("x", shape=(1, 6, 6, 4), dtype="int8")
    width = ((0, 0), (before, after), (before, after), (0, 0))
    padded = relay.nn.pad(x, width, relay.const(3, "int8"))
    body = quantised_conv(padded, padding=(0, 0))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(body))
    new = cmsisnn.partition_for_cmsisnn(mod)
    assert taken(new) == ["cmsis-nn.qnn_conv2d"]
    (func,) = (f for f in new.functions.values() if "Compiler" in f.attrs)
    assert ("nn.pad" in str(func)) == is_taken


@pytest.mark.parametrize(("scale", "zero", "is_taken"), [(1 / 256, -128, True), (0.1, 0, False)])
def test_cmsisnn_takes_softmax_of_its_own_scale(scale: float, zero: int, is_taken: bool) -> None:
    x = relay.var("x", shape=(2, 8), dtype="int8")
    wide = relay.qnn.op.dequantize(x, relay.const(0.1), relay.const(2))
    body = relay.qnn.op.quantize(
        relay.nn.softmax(wide), relay.const(scale), relay.const(zero), out_dtype="int8"
    )
    found = taken(cmsisnn.partition_for_cmsisnn(tvm.IRModule.from_expr(body)))
    assert found == (["cmsis-nn.qnn_softmax"] if is_taken else [])


def test_coreml_merges_neighbours() -> None:
    x = relay.var("x", shape=(3, 8))
    body = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, weight(5, 8)), weight(5)))
    assert checked(coreml.partition_for_coreml, body) == ["nn.bias_add", "nn.dense", "nn.relu"]
    mod = coreml.partition_for_coreml(tvm.IRModule.from_expr(body))
    assert [str(f.attrs["Compiler"]) for f in mod.functions.values() if "Compiler" in f.attrs] == [
        "coremlcompiler"
    ]


@pytest.mark.parametrize("dtypes", [("float32", "float32"), ("int8", "int32"), ("int8", "int8")])
def test_cublas_takes_products_of_its_dtypes(dtypes: tuple[str, str]) -> None:
    narrow, wide = dtypes
    x = relay.var("x", shape=(3, 8), dtype=narrow)
    body = relay.nn.dense(x, weight(5, 8, dtype=narrow), out_dtype=wide)
    wanted = ["cublas.dense"] if dtypes != ("int8", "int8") else []
    assert checked(cublas.partition_for_cublas, body) == wanted


def test_cudnn_takes_convolutions_and_softmax() -> None:
    x = relay.var("x", shape=(1, 4, 6, 6))
    conv = relay.nn.bias_add(relay.nn.conv2d(x, weight(8, 4, 3, 3), padding=(1, 1)), weight(8))
    assert checked(cudnn.partition_for_cudnn, relay.nn.softmax(relay.nn.relu(conv))) == [
        "cudnn.conv2d_bias_act",
        "cudnn.softmax",
    ]
    ragged = relay.nn.conv2d(x, weight(8, 4, 3, 3), padding=(0, 0, 1, 1))
    assert checked(cudnn.partition_for_cudnn, ragged) == []


def test_cutlass_takes_the_longest_end() -> None:
    y = relay.var("y", shape=(3, 8))
    biased = relay.nn.bias_add(relay.nn.dense(y, weight(5, 8)), weight(5))
    for body, name in [
        (gelu(biased), "dense_bias_gelu_fp32"),
        (relay.nn.relu(biased), "dense_bias_relu"),
        (relay.tanh(biased), "dense_bias"),
    ]:
        assert checked(cutlass.partition_for_cutlass, body) == [f"cutlass.{name}"]
    x = relay.var("x", shape=(1, 6, 6, 4))
    conv = relay.nn.bias_add(conv_nhwc(x, "OHWI"), weight(8), axis=3)
    other = relay.var("other", shape=(1, 6, 6, 8))
    mod = tvm.IRModule.from_expr(relay.nn.relu(conv + other))
    assert taken(cutlass.partition_for_cutlass(mod)) == ["cutlass.conv2d_bias_residual_add_relu"]
    silu = tvm.IRModule.from_expr(conv * relay.sigmoid(conv))
    assert taken(cutlass.partition_for_cutlass(silu)) == ["cutlass.conv2d_bias_silu"]


def test_cutlass_leaves_constants_to_the_caller() -> None:
    x = relay.var("x", shape=(3, 8))
    mod = tvm.IRModule.from_expr(relay.nn.dense(x, weight(5, 8)))
    (func,) = (
        f for f in cutlass.partition_for_cutlass(mod).functions.values() if "Compiler" in f.attrs
    )
    assert len(func.params) == 2


def test_tensorrt_converts_layouts_and_merges() -> None:
    x = relay.var("x", shape=(1, 6, 6, 4))
    body = relay.nn.relu(relay.nn.bias_add(conv_nhwc(x), weight(8), axis=3))
    found = checked(tensorrt.partition_for_tensorrt, body)
    assert {"tensorrt.nn.conv2d", "tensorrt.nn.relu"} <= set(found)


def test_tensorrt_keeps_the_batch() -> None:
    x = relay.var("x", shape=(4, 8))
    for axis, is_taken in [(1, True), (0, False)]:
        body = relay.nn.relu(relay.sum(x, axis=axis, keepdims=True))
        found = checked(tensorrt.partition_for_tensorrt, body)
        assert ("tensorrt.sum" in found) == is_taken


def test_tensorrt_needs_one_batch() -> None:
    x, y = relay.var("x", shape=(4, 8)), relay.var("y", shape=(1, 8))
    body = relay.nn.relu(x) + relay.nn.relu(y)
    found = checked(tensorrt.partition_for_tensorrt, body)
    assert "tensorrt.add" not in found


def test_params_become_constants() -> None:
    x, w = relay.var("x", shape=(1, 6, 6, 4)), relay.var("w", shape=(3, 3, 4, 8))
    body = relay.nn.conv2d(
        x, w, channels=8, kernel_size=(3, 3), data_layout="NHWC", kernel_layout="HWIO"
    )
    mod = tvm.IRModule.from_expr(body)
    values = {"w": RNG.standard_normal((3, 3, 4, 8)).astype("float32")}
    new = arm_compute_lib.partition_for_arm_compute_lib(mod, values)
    assert taken(new) == ["arm_compute_lib.conv2d"]
    assert taken(arm_compute_lib.partition_for_arm_compute_lib(mod)) == []


def test_a_build_asks_for_the_code_generator() -> None:
    x = relay.var("x", shape=(3, 8))
    mod = cublas.partition_for_cublas(tvm.IRModule.from_expr(relay.nn.dense(x, weight(5, 8))))
    with pytest.raises(TVMError, match="requires the code generator relay.ext.cublas"):
        relay.build(mod, "llvm")


def test_tables_are_known_by_name() -> None:
    for name in ("arm_compute_lib", "bnns", "clml", "cmsis-nn", "cublas", "cudnn", "cutlass"):
        table = get_pattern_table(name)
        assert table and all(entry[0].startswith(f"{name}.") for entry in table)
