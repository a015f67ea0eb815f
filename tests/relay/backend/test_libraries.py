"""Targets name the library that computes products of matrices."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_onednn
from tvm import relay, te, topi
from tvm.contrib import graph_executor


def run(body: relay.Expr, target: str, **inputs: np.ndarray) -> tuple[np.ndarray, str]:
    """The result, and the loops of all kernels."""
    func = relay.Function(relay.analysis.free_vars(body), body)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(tvm.IRModule.from_expr(func), target)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(**inputs)
    text = "".join([str(i.tir_primfuncs) for i in lib.function_metadata.values()])
    return module.get_output(0).numpy(), text


def random(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("library", ["cblas", pytest.param("dnnl", marks=needs_onednn())])
@pytest.mark.parametrize("is_fused", [True, False])
def test_dense_layers(library: str, is_fused: bool) -> None:
    x, w, b = random(5, 12), random(16, 12), random(16)
    body = relay.nn.dense(relay.var("x", shape=(5, 12)), relay.const(w))
    expected = x @ w.T
    if is_fused:
        body = relay.nn.relu(relay.nn.bias_add(body, relay.const(b)))
        expected = np.maximum(expected + b, 0)
    found, text = run(body, f"llvm -libs={library}", x=x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert f"tvm.contrib.{library}.matmul" in text


@pytest.mark.parametrize("transpose_a", [True, False])
@pytest.mark.parametrize("transpose_b", [True, False])
def test_batches(transpose_a: bool, transpose_b: bool) -> None:
    a = random(*(3, 6, 4) if transpose_a else (3, 4, 6), dtype="float64")
    b = random(*(3, 5, 6) if transpose_b else (3, 6, 5), dtype="float64")
    body = relay.nn.batch_matmul(
        relay.var("a", shape=a.shape, dtype="float64"),
        relay.var("b", shape=b.shape, dtype="float64"),
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )
    found, text = run(body, "llvm -libs=cblas", a=a, b=b)
    left = a.transpose(0, 2, 1) if transpose_a else a
    right = b.transpose(0, 2, 1) if transpose_b else b
    np.testing.assert_allclose(found, left @ right, rtol=1e-6)
    assert "tvm.contrib.cblas.batch_matmul" in text


def test_integers_stay_with_us() -> None:
    x, w = (np.ones(s, "int32") for s in ((4, 8), (8, 8)))
    body = relay.nn.dense(relay.var("x", shape=(4, 8), dtype="int32"), relay.const(w))
    found, text = run(body, "llvm -libs=cblas", x=x)
    np.testing.assert_array_equal(found, x @ w.T)
    assert "tvm.contrib" not in text


def test_targets_without_libraries_use_our_kernels() -> None:
    body = relay.nn.dense(relay.var("x", shape=(4, 8)), relay.const(random(8, 8)))
    assert "tvm.contrib" not in run(body, "llvm", x=random(4, 8))[1]


@needs_onednn()
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_convolutions(layout: str, groups: int) -> None:
    x, w, b = random(2, 4, 9, 8), random(6, 4 // groups, 3, 2), random(6)
    attrs = {"strides": (2, 1), "padding": (1, 0, 2, 1), "dilation": (1, 2), "groups": groups}

    def convolved(
        x: np.ndarray, w: np.ndarray, target: str, **layouts: str
    ) -> tuple[np.ndarray, str]:
        data = relay.var("x", shape=x.shape)
        body = relay.nn.conv2d(
            data, relay.const(w), channels=6, kernel_size=(3, 2), **attrs, **layouts
        )
        axis = layouts.get("data_layout", "NCHW").index("C")
        body = relay.nn.relu(relay.nn.bias_add(body, relay.const(b), axis))
        return run(body, target, x=x)

    expected, _ = convolved(x, w, "llvm")
    if layout == "NCHW":
        found, text = convolved(x, w, "llvm -libs=dnnl")
    else:
        x, w = x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)
        layouts = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
        found, text = convolved(x, w, "llvm -libs=dnnl", **layouts)
        found = found.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert "tvm.contrib.dnnl.conv2d" in text


@needs_onednn()
def test_a_schedule_takes_what_a_library_computes() -> None:
    x, w = te.placeholder((4, 8), name="x"), te.placeholder((6, 8), name="w")
    with tvm.target.Target("llvm"):
        out = topi.nn.relu(topi.x86.dense_dnnl(x, w))
        sch = topi.x86.schedule_dense_dnnl([out])
    run_it = tvm.build(sch, [x, w, out], "llvm")
    a, b = random(4, 8), random(6, 8)
    result = tvm.nd.empty((4, 6))
    run_it(tvm.nd.array(a), tvm.nd.array(b), result)
    np.testing.assert_allclose(result.numpy(), np.maximum(a @ b.T, 0), rtol=1e-4, atol=1e-5)
