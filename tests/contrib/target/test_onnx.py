"""Programs as models of ONNX, which ONNX Runtime computes alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib.target.onnx import to_onnx

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)


def var(name: str, *shape: int, dtype: str = "float32") -> relay.Var:
    return relay.var(name, shape=shape, dtype=dtype)


def run(model: Any, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, inputs)
    return found


def check(body: relay.Expr, opset: int = 13) -> None:
    func = relay.Function(relay.analysis.free_vars(body), body)
    inputs = {}
    for param in func.params:
        shape = [int(n) for n in param.type_annotation.shape]
        inputs[param.name_hint] = RNG.uniform(0.1, 0.9, shape).astype("float32")
    expected = relay.create_executor("graph").evaluate(func)(**inputs)
    wanted = [expected] if isinstance(expected, tvm.nd.NDArray) else list(expected)
    found = run(to_onnx(func, {}, "model", opset_version=opset), inputs)
    for one, other in zip(wanted, found, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-4, atol=1e-4)


X = var("x", 2, 3, 8, 8)
PROGRAMS = {
    "convolution": relay.nn.conv2d(X, var("w", 4, 3, 3, 3), padding=(1, 2), strides=(2, 1)),
    "channels last": relay.nn.conv2d(
        var("x", 1, 8, 8, 3), var("w", 3, 3, 3, 5), channels=5, kernel_size=(3, 3),
        data_layout="NHWC", kernel_layout="HWIO",
    ),
    "transposed": relay.nn.conv2d_transpose(
        var("x", 1, 4, 5, 5), var("w", 4, 3, 3, 3), channels=6, groups=2, kernel_size=(3, 3),
        strides=(2, 2), padding=(1, 1), output_padding=(1, 1),
    ),
    "pools": relay.Tuple([
        relay.nn.max_pool2d(X, (3, 3), (2, 2), padding=(1, 1), ceil_mode=True),
        relay.nn.avg_pool2d(X, (3, 3), (2, 2), padding=(1, 1), count_include_pad=True),
    ]),
    "normalization": relay.nn.batch_norm(
        var("x", 2, 4, 4, 3), *[var(n, 3) for n in "abcd"], axis=3
    ).astuple(),
    "layer norm": relay.nn.layer_norm(var("x", 2, 5, 6), var("g", 5), var("b", 5), axis=1),
    "dense": relay.nn.bias_add(relay.nn.dense(var("x", 3, 4), var("w", 5, 4)), var("b", 5)),
    "products": relay.nn.batch_matmul(var("x", 2, 3, 4), var("w", 2, 5, 4)),
    "softmax": relay.nn.softmax(X, axis=1),
    "reductions": relay.Tuple([
        relay.sum(X, axis=(1, 2), keepdims=True), relay.mean(X, axis=1, exclude=True),
        relay.max(X), relay.argmax(X, axis=1),
    ]),
    "parts": relay.Tuple([
        relay.split(X, (1, 2), 1)[1], relay.strided_slice(X, [0, 1], [2, -1], slice_mode="size"),
        relay.strided_slice(X, [7], [-9], [-1], axes=[2]),
    ]),
    "joins": relay.concatenate([X, relay.nn.pad(X, ((0, 0), (0, 1), (0, 0), (0, 0)), 1.5)], 1),
    "stack": relay.stack([relay.transpose(X, (0, 2, 3, 1)), relay.layout_transform(X, "NCHW", "NHWC")], -1),
    "comparison": relay.where(relay.less_equal(X, relay.const(0.5)), X, relay.zeros_like(X)),
    "cast": relay.cast(relay.clip(X * relay.const(9.0), 1.0, 5.0), "int32"),
    **{
        f"resize {method} {mode}": relay.image.resize2d(
            X, (16, 12), method=method, coordinate_transformation_mode=mode, cubic_alpha=-0.75
        )
        for method in ("nearest_neighbor", "linear", "cubic")
        for mode in ("half_pixel", "align_corners", "asymmetric")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_operators(name: str) -> None:
    for opset in (11, 13, 18):
        check(PROGRAMS[name], opset)


def test_a_network_with_its_parameters(tmp_path: Path) -> None:
    mod, params = relay.testing.mlp.get_workload(1)
    path = tmp_path / "mlp.onnx"
    to_onnx(mod, params, "mlp", path=str(path))
    model = onnx.load(path)
    assert [value.name for value in model.graph.input] == ["data"]
    data = RNG.normal(size=(1, 1, 28, 28)).astype("float32")
    executor = relay.create_executor("graph", mod)
    expected = executor.evaluate()(data, **params).numpy()
    np.testing.assert_allclose(run(model, {"data": data})[0], expected, rtol=1e-4, atol=1e-5)
    again, values = relay.frontend.from_onnx(model)
    executor = relay.create_executor("graph", again)
    found = executor.evaluate()(data, **values).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_what_onnx_does_not_have() -> None:
    x = var("x", 1, 3)
    with pytest.raises(tvm.error.OpNotImplemented, match=r"does not know the operator nn\.fifo"):
        to_onnx(
            relay.Function(
                [x], relay.nn.fifo_buffer(x, relay.const(np.zeros((1, 6), "float32")), 1)
            ),
            {},
            "m",
        )
    with pytest.raises(tvm.TVMError, match="versions 11 to 20"):
        to_onnx(relay.Function([x], relay.exp(x)), {}, "m", opset_version=9)
