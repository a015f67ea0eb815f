"""Models whose heavy parts oneDNN runs give what the plain build gives."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.executors import run_library
from tests.relay.backend.random_graphs import RandomGraph
from tests.relay.byoc.ways_to_run import RUNS, exported, set_external
from tests.runtime.native_library import INCLUDES, RUNTIME_OPTIONS
from tests.system_tools import needs_onednn
from tvm import relay
from tvm._ffi import libinfo
from tvm.contrib import cc, graph_executor
from tvm.driver.tvmc.composite_target import get_codegen_by_target
from tvm.relay.backend.contrib.dnnl import DNNLSerializer
from tvm.relay.contrib import get_pattern_table
from tvm.relay.contrib.dnnl import (
    is_valid_subgraph,
    partition_for_dnnl,
    rewrite_dense_bias_gelu_reshape_last,
    rewrite_layer_norm,
)
from tvm.relay.transform import AnnotateTarget, MergeCompilerRegions, MergeComposite, PartitionGraph
from tvm.relay.traverse import post_order
from tvm.target.cpu_features import host_feature_set

pytestmark = needs_onednn()


def function(body: relay.Expr) -> relay.Function:
    return relay.Function(relay.analysis.free_vars(body), body)


def var(name: str, *shape: int) -> relay.Var:
    return relay.var(name, shape=shape)


def weights_and_inputs(func: relay.Function) -> tuple[dict, dict]:
    """Values of the parameters whose names begin with `w`, and of the others."""
    rng = np.random.default_rng(0)
    shapes = {p.name_hint: [int(n) for n in p.type_annotation.shape] for p in func.params}
    values = {name: rng.standard_normal(s).astype("float32") for name, s in shapes.items()}
    return (
        {name: value for name, value in values.items() if name.startswith("w")},
        {name: value for name, value in values.items() if not name.startswith("w")},
    )


def run_graph(mod: tvm.IRModule, inputs: dict, params: dict | None = None) -> np.ndarray:
    module = graph_executor.GraphModule(
        relay.build(mod, "llvm", params=params)["default"](tvm.cpu())
    )
    module.run(**inputs)
    return module.get_output(0).numpy()


def names_in(mod: tvm.IRModule) -> list[str]:
    """What the functions for oneDNN call."""
    found = []
    for func in mod.functions.values():
        if func.attrs.get("Compiler") == "dnnl":
            calls = [n for n in post_order(func.body) if isinstance(n, relay.Call)]
            composites = [c.op for c in calls if isinstance(c.op, relay.Function)]
            inside = {id(n) for c in composites for n in post_order(c.body)}
            for call in calls:
                if id(call) not in inside:
                    is_composite = isinstance(call.op, relay.Function)
                    found.append(call.op.attrs["Composite"] if is_composite else call.op.name)
    return [str(name) for name in found]


def check(body: relay.Expr, *names: str, **options: bool) -> tvm.IRModule:
    """The partitioned model calls oneDNN's `names` and computes what the plain one does."""
    func = function(body)
    params, inputs = weights_and_inputs(func)
    mod = tvm.IRModule.from_expr(func)
    partitioned = partition_for_dnnl(mod, params, **{"prune_subgraphs": False, **options})
    assert names_in(partitioned) == list(names)
    expected = run_graph(mod, inputs, params)
    found = run_graph(partitioned, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    return partitioned


def conv(**attrs: object) -> relay.Call:
    options = {"padding": (1, 1), "channels": 16, "kernel_size": (3, 3), **attrs}
    return relay.nn.conv2d(var("x", 1, 8, 10, 10), var("w", 16, 8, 3, 3), **options)


def dense() -> relay.Call:
    return relay.nn.dense(var("x", 5, 12), var("w", 16, 12))


BIAS = var("wb", 16)
ACTIVATIONS: dict[str, Callable[[relay.Expr], relay.Expr]] = {
    "relu": relay.nn.relu,
    "tanh": relay.tanh,
    "sigmoid": relay.sigmoid,
    "clip": lambda x: relay.clip(x, 0, 6),
    "swish": lambda x: x * relay.sigmoid(x),
    "gelu": lambda x: (
        x * relay.const(0.5) * (relay.const(1.0) + relay.erf(x / relay.const(float(np.sqrt(2)))))
    ),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("root", ["conv2d", "dense"])
def test_activations_end_convolutions_and_dense_layers(root: str, name: str) -> None:
    value = conv() if root == "conv2d" else dense()
    body = ACTIVATIONS[name](relay.nn.bias_add(value, BIAS))
    check(body, f"dnnl.{root}_bias_{name}")


@pytest.mark.parametrize(
    "attrs", [{"strides": (2, 1)}, {"dilation": (2, 2)}, {"padding": (1, 2, 0, 1)}]
)
def test_convolutions_with_attributes(attrs: dict) -> None:
    check(relay.nn.relu(conv(**attrs)), "dnnl.conv2d_relu")


@pytest.mark.parametrize("groups", [2, 8])
def test_convolutions_in_groups(groups: int) -> None:
    weight = var("w", 16, 8 // groups, 3, 3)
    x = var("x", 1, 8, 10, 10)
    check(relay.nn.conv2d(x, weight, groups=groups, channels=16, kernel_size=(3, 3)), "nn.conv2d")


def test_convolutions_with_channels_last() -> None:
    value = relay.nn.conv2d(
        var("x", 1, 10, 9, 8), var("w", 3, 3, 8, 16), channels=16, kernel_size=(3, 3),
        data_layout="NHWC", kernel_layout="HWIO",
    )  # fmt: skip
    pool = relay.nn.max_pool2d(
        relay.nn.bias_add(value, BIAS, axis=3), (2, 2), (2, 2), layout="NHWC"
    )
    check(pool, "dnnl.conv2d_bias", "nn.max_pool2d")


def test_convolutions_of_one_and_three_axes() -> None:
    flat = relay.nn.conv1d(var("x", 1, 4, 12), var("w", 6, 4, 3), channels=6, kernel_size=3)
    check(relay.nn.relu(flat), "dnnl.conv1d_relu")
    deep = relay.nn.conv3d(
        var("x", 1, 4, 5, 6, 7), var("w", 6, 4, 3, 3, 3), channels=6, kernel_size=(3, 3, 3)
    )
    check(relay.nn.relu(deep), "dnnl.conv3d_relu")


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_transposed_convolutions(groups: int, layout: str) -> None:
    shape = (2, 8, 5, 6) if layout == "NCHW" else (2, 5, 6, 8)
    value = relay.nn.conv2d_transpose(
        var("x", *shape), var("w", 8, 12 // groups, 3, 3), channels=12, kernel_size=(3, 3),
        strides=(3, 2), padding=(0, 1, 2, 1), output_padding=(2, 1), groups=groups,
        data_layout=layout, kernel_layout="IOHW",
    )  # fmt: skip
    biased = relay.nn.bias_add(value, var("wb", 12), axis=layout.index("C"))
    check(relay.nn.relu(biased), "dnnl.conv2d_transpose_bias_relu")
    deep = relay.nn.conv3d_transpose(
        var("x", 1, 3, 4, 4, 4), var("w", 3, 5, 3, 3, 3), channels=5, kernel_size=(3, 3, 3)
    )
    check(deep, "nn.conv3d_transpose")


@pytest.mark.skipif("avx512bw" not in host_feature_set(), reason="oneDNN needs wide vectors")
def test_products_of_bfloat16() -> None:
    for body in (conv(), dense(), relay.nn.max_pool2d(conv(), (2, 2))):
        func = function(body)
        params, inputs = weights_and_inputs(func)
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
        mod = relay.transform.ToMixedPrecision("bfloat16")(mod)
        partitioned = partition_for_dnnl(mod, params)
        assert partitioned["main"].ret_type.dtype == "bfloat16" and names_in(partitioned)
        found, expected = run_graph(partitioned, inputs), run_graph(mod, inputs, params)
        bound = np.abs(expected.astype("float32")).max() / 64
        np.testing.assert_allclose(
            found.astype("float32"), expected.astype("float32"), atol=bound, rtol=0
        )


def test_weights_may_be_computed() -> None:
    weight = relay.sqrt(relay.abs(var("y", 16, 8, 3, 3)))
    value = relay.nn.conv2d(var("x", 1, 8, 10, 10), weight, channels=16, kernel_size=(3, 3))
    check(value, "abs", "sqrt", "nn.conv2d")


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("has_relu", [True, False])
def test_a_residual_is_added_in_place(has_bias: bool, has_relu: bool) -> None:
    value = relay.nn.bias_add(conv(), BIAS) if has_bias else conv()
    total = value + var("r", 1, 16, 10, 10)
    name = f"dnnl.conv2d{'_bias' if has_bias else ''}_sum{'_relu' if has_relu else ''}"
    check(relay.nn.relu(total) if has_relu else total, name)


def test_a_residual_that_is_used_again_is_kept() -> None:
    first = relay.nn.relu(conv())
    second = relay.nn.conv2d(
        first, var("w2", 16, 16, 3, 3), padding=(1, 1), channels=16, kernel_size=(3, 3)
    )
    total = relay.nn.relu(second + first)
    check(total * first, "dnnl.conv2d_relu", "dnnl.conv2d_sum_relu", "multiply")


def test_two_convolutions_are_added() -> None:
    other = relay.nn.conv2d(
        var("y", 1, 4, 10, 10), var("w2", 16, 4, 1, 1), channels=16, kernel_size=(1, 1)
    )
    body = relay.nn.relu(relay.nn.bias_add(conv(), BIAS) + relay.nn.bias_add(other, var("wc", 16)))
    mod = check(body, "dnnl.conv2d_bias", "dnnl.conv2d_bias_sum_relu")
    assert len(mod.functions) == 2


def test_a_sum_with_another_shape_is_no_bias() -> None:
    check(conv() + var("r", 1, 1, 10, 10), "nn.conv2d", "add")


def test_a_dense_layer_with_a_residual() -> None:
    check(relay.nn.bias_add(dense(), BIAS) + var("r", 5, 16), "dnnl.dense_bias_sum")


@pytest.mark.parametrize("count_include_pad", [True, False])
def test_averages(count_include_pad: bool) -> None:
    pool = relay.nn.avg_pool2d(
        conv(), (3, 3), (2, 2), padding=(1, 1), count_include_pad=count_include_pad
    )
    check(pool, "nn.conv2d", "nn.avg_pool2d")


def test_maxima_with_rounding_up() -> None:
    check(relay.nn.max_pool2d(conv(), (3, 3), (2, 2), ceil_mode=True), "nn.conv2d", "nn.max_pool2d")


def test_global_pools() -> None:
    value = conv()
    both = relay.nn.global_avg_pool2d(value) + relay.nn.global_max_pool2d(value)
    check(both, "nn.conv2d", "nn.global_avg_pool2d", "nn.global_max_pool2d", "add")


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "maximum", "minimum"])
def test_operators_of_two_tensors(op: str) -> None:
    binary = getattr(relay, op)
    check(binary(relay.exp(var("x", 2, 3, 4)), relay.exp(var("y", 3, 1))), "exp", "exp", op)


@pytest.mark.parametrize("op", ["abs", "exp", "round", "sigmoid", "tanh", "nn.leaky_relu"])
def test_operators_of_one_tensor(op: str) -> None:
    unary = relay.nn.leaky_relu if op == "nn.leaky_relu" else getattr(relay, op)
    check(unary(var("x", 3, 5)), op)


def test_batches_of_matrices() -> None:
    check(relay.nn.batch_matmul(var("x", 2, 3, 4), var("y", 2, 5, 4)), "nn.batch_matmul")
    product = relay.nn.batch_matmul(
        var("x", 2, 4, 3), var("y", 2, 4, 5), transpose_a=True, transpose_b=False
    )
    check(relay.nn.softmax(product), "nn.batch_matmul", "nn.softmax")


def test_tensors_side_by_side() -> None:
    value = conv()
    body = relay.concatenate([value, relay.exp(value)], axis=1)
    check(body, "nn.conv2d", "exp", "concatenate")


def test_layer_norm_is_found_among_its_operators() -> None:
    norm = relay.nn.layer_norm(var("x", 2, 3, 16), var("wg", 16), BIAS, epsilon=1e-3)
    check(norm, "nn.layer_norm")


def test_layer_norm_of_an_importer() -> None:
    x = var("x", 2, 3, 16)
    centered = x - relay.mean(x, axis=[-1], keepdims=True)
    variance = relay.mean(relay.power(centered, relay.const(2.0)), axis=[-1], keepdims=True)
    scale, shift = (relay.const(np.random.rand(16).astype("float32")) for _ in range(2))
    body = centered / relay.sqrt(variance + relay.const(1e-5)) * scale + shift
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(function(body)))
    found = rewrite_layer_norm(mod)["main"].body
    assert found.op.name == "nn.layer_norm" and found.attrs.epsilon == pytest.approx(1e-5)
    check(body, "nn.layer_norm")


def test_biases_and_gelus_come_before_reshapes_of_dense_layers() -> None:
    def values(*shape: int) -> np.ndarray:
        return np.random.rand(*shape).astype("float32")

    w, bias = relay.const(values(8, 16)), relay.const(values(8))
    biased = relay.reshape(relay.nn.dense(var("x", 6, 16), w), (2, 3, 8)) + bias
    scaled = relay.erf(biased * relay.const(0.5**0.5)) + relay.const(1.0)
    for body in (biased, biased * relay.const(0.5) * scaled):
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(function(body)))
        moved = rewrite_dense_bias_gelu_reshape_last(mod)
        assert moved["main"].body.op.name == "reshape"
        x = values(6, 16)
        before, after = (
            relay.create_executor("graph", each).evaluate()(x).numpy() for each in (mod, moved)
        )
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


def test_integers_stay_with_us() -> None:
    x = relay.var("x", shape=(4, 8), dtype="int32")
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.abs(x)))
    assert names_in(partition_for_dnnl(mod, prune_subgraphs=False)) == []


def test_light_parts_are_pruned() -> None:
    x = var("x", 4, 8)
    mod = tvm.IRModule.from_expr(function(relay.exp(relay.cumsum(relay.exp(x) + x, axis=1))))
    assert names_in(partition_for_dnnl(mod, prune_subgraphs=False))
    assert names_in(partition_for_dnnl(mod)) == []
    one = tvm.IRModule.from_expr(function(relay.exp(x) + x))
    assert names_in(partition_for_dnnl(one)) == ["exp", "add"]  # a program as one function
    assert not is_valid_subgraph(mod["main"].body)
    assert is_valid_subgraph(conv())


def test_plain_layouts_compute_the_same() -> None:
    body = relay.nn.relu(relay.nn.bias_add(conv(), BIAS) + var("r", 1, 16, 10, 10))
    mod = check(body, "dnnl.conv2d_bias_sum_relu", alter_layout=False)
    lib = relay.build(mod, "llvm")
    assert '"plain_layouts"' in find_module(lib.lib, "dnnl_json").get_source()


def find_module(lib: tvm.runtime.Module, kind: str) -> tvm.runtime.Module:
    return next(m for m in lib._collect_from_import_tree(lambda m: True) if m.type_key == kind)


def small_network() -> tuple[tvm.IRModule, dict]:
    """Two residual blocks, pools and a classifier."""

    def block(x: relay.Expr, number: int, channels: int, strides: int) -> relay.Expr:
        value = x
        for i, stride in enumerate((strides, 1)):
            weight = relay.var(f"block{number}_{i}_weight")
            value = relay.nn.conv2d(
                value, weight, strides=(stride, stride), padding=(1, 1), channels=channels,
                kernel_size=(3, 3),
            )  # fmt: skip
            names = ("gamma", "beta", "moving_mean", "moving_var")
            norm = [relay.var(f"block{number}_{i}_{n}") for n in names]
            value = relay.nn.batch_norm(value, *norm)[0]
            value = relay.nn.relu(value) if i == 0 else value
        skip = x
        if strides != 1:
            weight = relay.var(f"block{number}_skip_weight")
            skip = relay.nn.conv2d(
                x, weight, strides=(strides, strides), channels=channels, kernel_size=(1, 1)
            )
        return relay.nn.relu(value + skip)

    data = relay.var("data", shape=(1, 3, 16, 16))
    stem = relay.nn.conv2d(
        data, relay.var("stem_weight"), padding=(1, 1), channels=8, kernel_size=(3, 3)
    )
    value = relay.nn.max_pool2d(relay.nn.relu(stem), (2, 2), (2, 2))
    value = block(block(value, 0, 8, 1), 1, 16, 2)
    flat = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(value))
    logits = relay.nn.bias_add(
        relay.nn.dense(flat, relay.var("fc_weight"), units=10), relay.var("fc_bias")
    )
    mod, params = relay.testing.create_workload(function(relay.nn.softmax(logits)))
    rng = np.random.default_rng(2)
    return mod, {n: rng.uniform(0.1, 0.3, p.shape).astype("float32") for n, p in params.items()}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_network_in_every_way_to_run(run, tmp_path: Path) -> None:
    mod, params = small_network()
    inputs = {"data": np.random.default_rng(1).random((1, 3, 16, 16), "float32")}
    expected = run_graph(mod, inputs, params)
    partitioned = partition_for_dnnl(mod, params)
    assert names_in(partitioned).count("dnnl.conv2d_bias_sum_relu") == 2
    for _ in range(2):
        found = run(partitioned, inputs, tmp_path)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_onednn_beside_another_compiler(tmp_path: Path) -> None:
    x, y = var("x", 4, 16), var("y", 4, 16)
    params, inputs = weights_and_inputs(function((relay.nn.dense(x, var("w", 16, 16)) + y) * y))
    w = relay.const(params["w"])
    body = relay.exp((relay.nn.relu(relay.nn.dense(x, w)) + y) * y)
    passes = [
        MergeComposite(get_pattern_table("dnnl")),
        AnnotateTarget(["ccompiler", "dnnl"]),
        MergeCompilerRegions(),
        PartitionGraph(),
    ]
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(function(body)))
    mod = tvm.transform.Sequential(passes)(mod)
    compilers = {str(f.attrs["Compiler"]) for f in mod.functions.values() if "Compiler" in f.attrs}
    assert compilers == {"dnnl", "ccompiler"}
    expected = np.exp((np.maximum(inputs["x"] @ params["w"].T, 0) + inputs["y"]) * inputs["y"])
    for run in RUNS.values():
        np.testing.assert_allclose(run(mod, inputs, tmp_path), expected, rtol=1e-3)


def test_one_module_runs_from_several_executors(tmp_path: Path) -> None:
    mod, params = small_network()
    lib = exported(relay.build(partition_for_dnnl(mod, params), "llvm"), tmp_path)
    modules = [graph_executor.GraphModule(lib["default"](tvm.cpu())) for _ in range(2)]
    data = [np.random.default_rng(i).random((1, 3, 16, 16), "float32") for i in range(2)]
    for _ in range(2):
        for module, value in zip(modules, data, strict=True):
            module.run(data=value)
    for module, value in zip(modules, data, strict=True):
        expected = run_graph(mod, {"data": value}, params)
        np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-5)


def places_in(value: object, path: tuple = ()) -> Iterator[tuple]:
    """The paths of all parts of a JSON value."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value if isinstance(value, list) else ())
    )
    for key, item in items:
        yield (*path, key)
        yield from places_in(item, (*path, key))


WRONG = [0, -1, 7, 10**6, "0", "5", "x", "", [], {}, None, "NHWC", "NC", "sum:9", "bias:0", "sum:0"]


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_graph_is_an_error_and_no_crash(seed: int) -> None:
    value = relay.nn.max_pool2d(relay.nn.relu(relay.nn.bias_add(conv(), BIAS)), (2, 2), (2, 2))
    again = relay.nn.conv2d(value, var("w2", 16, 16, 1, 1), channels=16, kernel_size=(1, 1)) + value
    func = function(relay.nn.softmax(relay.concatenate([again, relay.exp(value)], axis=1), axis=1))
    params, inputs = weights_and_inputs(func)
    mod = partition_for_dnnl(tvm.IRModule.from_expr(func), params)
    serializer = DNNLSerializer.of(next(f for f in mod.functions.values() if "Compiler" in f.attrs))
    whole = serializer.get_json()
    create = tvm.get_global_func("runtime.DNNLJSONRuntimeCreate")
    data, out = tvm.nd.array(inputs["x"]), tvm.nd.empty((1, 32, 5, 5))

    def attempt(text: str) -> None:
        module = create(serializer.symbol, text, serializer.const_names)
        constants = [serializer.constants[name] for name in serializer.const_names]
        module[f"__init_{serializer.symbol}"](constants)
        module[serializer.symbol](data, out)

    attempt(whole)
    rng = np.random.default_rng(seed)
    places = list(places_in(json.loads(whole)))
    errors = 0
    for _ in range(60):
        graph = json.loads(whole)
        *way, last = places[rng.integers(len(places))]
        part = graph
        for key in way:
            part = part[key]
        part[last] = WRONG[rng.integers(len(WRONG))]
        try:
            attempt(json.dumps(graph))
        except (tvm.TVMError, ValueError, TypeError):
            errors += 1
    assert errors > 30


PROGRAM = r"""
#include <tvm/runtime/module.h>
#include <tvm/runtime/ndarray.h>
#include <cstdio>
int main(int, char** argv) {
  tvm::Device device{kDLCPU, 0};
  auto executor = tvm::runtime::Module::LoadFromFile(argv[1]).GetFunction("default")(device).operator tvm::runtime::Module();
  auto x = tvm::runtime::NDArray::Empty({5, 12}, DLDataType{kDLFloat, 32, 1}, device);
  for (int i = 0; i < 60; ++i) static_cast<float*>(x->data)[i] = 1;
  executor.GetFunction("set_input")("x", x);
  executor.GetFunction("run")();
  tvm::runtime::NDArray result = executor.GetFunction("get_output")(0);
  std::printf("%.4f\n", static_cast<float*>(result->data)[0]);
}
"""


def test_a_model_runs_without_python(tmp_path: Path) -> None:
    (tmp_path / "run.cc").write_text(PROGRAM)
    options = ["-std=c++17", *INCLUDES, *RUNTIME_OPTIONS]
    cc.create_executable(str(tmp_path / "run"), str(tmp_path / "run.cc"), options=options)
    func = function(relay.nn.relu(relay.nn.bias_add(dense(), BIAS)))
    params, _ = weights_and_inputs(func)
    params["wb"] = np.full(16, 50, "float32")
    mod = partition_for_dnnl(tvm.IRModule.from_expr(func), params)
    relay.build(mod, "llvm").export_library(str(tmp_path / "model.so"))
    done = subprocess.run([tmp_path / "run", tmp_path / "model.so"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(params["w"][0].sum() + 50, abs=1e-3)


ASK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.TVMGetLastError.restype = ctypes.c_char_p
handle, result, code = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_int()
assert library.TVMFuncGetGlobal(b"runtime.DNNLJSONRuntimeCreate", ctypes.byref(handle)) == 0
assert library.TVMFuncCall(handle, None, None, 0, ctypes.byref(result), ctypes.byref(code)) != 0
print(library.TVMGetLastError().decode())
"""


def test_a_runtime_without_onednn_says_so(tmp_path: Path) -> None:
    path = shutil.copy(libinfo.find_lib_path()[0], tmp_path)
    done = subprocess.run([sys.executable, "-c", ASK, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "oneDNN cannot be used" in done.stdout and "Debian's libdnnl-dev" in done.stdout


def test_options_may_be_strings_of_a_command_line() -> None:
    partition = get_codegen_by_target("dnnl")["pass_pipeline"]
    func = function(relay.nn.relu(conv()))
    params, _ = weights_and_inputs(func)
    mod = tvm.IRModule.from_expr(func)
    plain = partition(mod, params, alter_layout="0")
    assert [f.attrs.get("alter_layout") for f in plain.functions.values()].count(0) == 1
    with pytest.raises(tvm.TVMError, match="an option of dnnl must be 0 or 1, got 'maybe'"):
        partition(mod, params, prune_subgraphs="maybe")


def test_results_may_repeat_and_be_inputs() -> None:
    x = var("x", 3, 4)
    result = relay.exp(x)
    inner = relay.Function([x], relay.Tuple([result, x, result]))
    call = relay.Call(set_external(inner, "dnnl", "dnnl_0"), [var("data", 3, 4)])
    lib = relay.build(tvm.IRModule.from_expr(call), "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    data = np.random.default_rng(0).random((3, 4), "float32")
    module.run(data=data)
    for number, expected in enumerate([np.exp(data), data, np.exp(data)]):
        np.testing.assert_allclose(module.get_output(number).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs_agree(seed: int) -> None:
    graph = RandomGraph(seed)
    mod, inputs = graph.module(), graph.inputs()
    results = [
        run_library(relay.build(model, "llvm"), **inputs)
        for model in (mod, partition_for_dnnl(mod, prune_subgraphs=False))
    ]
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)
