"""Operators of com.microsoft beside ONNX Runtime, and quantised operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper, numpy_helper
from torch.nn import functional as F

from tvm.contrib import onnx_backend

RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


def u8(*shape: int) -> np.ndarray:
    return RNG.integers(0, 255, shape).astype("uint8")


def check(
    op: str, inputs: list[Any], constants: dict[int, Any] | None = None, outputs: int = 1,
    domain: str = "com.microsoft", step: float = 0.0, **attrs: Any,
) -> None:  # fmt: skip
    """Compare one node with ONNX Runtime; inputs are None where they are left out."""
    values = {**dict(enumerate(inputs)), **(constants or {})}
    names = [f"x{i}" if values[i] is not None else "" for i in range(len(values))]
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, domain=domain, **attrs)], "test",
        [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
         for i, v in enumerate(inputs) if v is not None],
        [onnx.ValueInfoProto(name=name) for name in results],
        [numpy_helper.from_array(v, f"x{i}") for i, v in (constants or {}).items()
         if v is not None],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    feed = {f"x{i}": v for i, v in enumerate(inputs) if v is not None}
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    actual = onnx_backend.run_model(model, feed)
    for ours, theirs in zip(actual, session.run(None, feed), strict=True):
        assert ours.dtype == theirs.dtype
        if theirs.dtype.kind in "iu":
            assert np.abs(ours.astype(int) - theirs.astype(int)).max() <= step
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-4)


def test_activations() -> None:
    check("QuickGelu", [f32(2, 8)])
    check("BiasGelu", [f32(2, 8), f32(8)])
    check("FastGelu", [f32(2, 8), f32(8)])


def test_products_with_epilogues() -> None:
    check("FusedMatMul", [f32(2, 4, 3), f32(2, 4, 5)], transA=1, alpha=0.5)
    weight, bias = f32(4, 3, 3, 3), f32(4)
    check("FusedConv", [f32(1, 3, 6, 6)], {1: weight, 2: bias}, activation="Relu")


def test_normalisation_of_sums() -> None:
    x = f32(2, 3, 8)
    operands = [x, f32(2, 3, 8), f32(8), f32(8), f32(8)]
    check("SkipLayerNormalization", operands, epsilon=1e-5)
    check("SkipLayerNormalization", operands, outputs=4, epsilon=1e-5)
    check("SkipSimplifiedLayerNormalization", [x, f32(2, 3, 8), f32(8)], epsilon=1e-5)


def test_embeddings() -> None:
    ids, segments = np.array([[1, 3, 2]], "int32"), np.array([[0, 1, 1]], "int32")
    tables = [f32(5, 8), f32(4, 8), f32(2, 8), f32(8), f32(8)]
    check("EmbedLayerNormalization", [ids, segments, *tables], outputs=2, epsilon=1e-5)


def test_weights_of_four_bits() -> None:
    packed, scales = u8(6, 2, 8), np.abs(f32(12)) + 0.1
    check("MatMulNBits", [f32(3, 32)], {1: packed, 2: scales}, K=32, N=6, bits=4, block_size=16)


def test_quantised_products() -> None:
    scale, zero = np.array(0.1, "float32"), np.array(120, "uint8")
    check("MatMulInteger", [u8(3, 4), u8(4, 5), zero, zero], domain="")
    check("DynamicQuantizeMatMul", [f32(3, 4)], {1: u8(4, 5), 2: scale, 3: zero})
    a, w = u8(1, 3, 6, 6), i8(4, 3, 3, 3)
    none = np.zeros(4, "int8")
    scales, bias = np.abs(f32(4)) * 0.01 + 0.001, RNG.integers(-99, 99, 4).astype("int32")
    values = {1: scale, 2: zero, 3: w, 4: scales, 5: none, 6: scale, 7: zero, 8: bias}
    check("QLinearConv", [a], values, domain="", step=1)


def test_quantised_products_have_zero_points_of_columns() -> None:
    a, scales, zeros = u8(3, 4), np.linspace(0.1, 0.5, 5, dtype="float32"), u8(5)
    scale, zero = np.array(0.1, "float32"), np.array(7, "uint8")
    for transposed, b in enumerate((u8(4, 5), u8(5, 4))):
        constants = {1: scale, 2: zero, 3: b, 4: scales, 5: zeros, 6: None, 7: None, 8: None}
        check("QGemm", [a], constants, transB=transposed)


def test_quantised_arithmetic() -> None:
    scale, zero = np.array(0.1, "float32"), np.array(120, "uint8")
    x = [u8(3, 4), scale, zero, u8(3, 4), scale, zero, scale, zero]
    check("QLinearAdd", x[:1] + x[1:], step=1)
    check("QuantizeLinear", [f32(3, 4) * 5, scale, zero], domain="", step=0)
    check("DequantizeLinear", [u8(3, 4), scale, zero], domain="")


def i8(*shape: int) -> np.ndarray:
    # on processors without dot products ONNX Runtime adds pairs of products in 16 bits, which saturate
    return RNG.integers(-63, 64, shape).astype("int8")


def steps(count: int) -> np.ndarray:
    return RNG.uniform(0.01, 0.02, count).astype("float32")


def test_quantised_gemm_has_a_scale_for_each_column() -> None:
    point, step = np.array(7, "uint8"), np.array(0.02, "float32")
    weight = {3: i8(10, 16), 4: steps(10), 5: np.zeros(10, "int8"), 6: np.arange(10, dtype="int32"),
              7: np.array(0.3, "float32"), 8: point}  # fmt: skip
    check("QGemm", [u8(3, 16), step, point], weight, transB=1, step=1)


def test_quantised_convolutions() -> None:
    point, step = np.array(7, "uint8"), np.array(0.02, "float32")
    weight = {3: i8(16, 8, 3, 3), 4: steps(16), 5: np.zeros(16, "int8"),
              6: np.array(0.3, "float32"), 7: point, 8: np.arange(16, dtype="int32")}  # fmt: skip
    check("QLinearConv", [u8(1, 8, 6, 6), step, point], weight, domain="", step=1,
          kernel_shape=[3, 3], pads=[1, 1, 1, 1])  # fmt: skip
    check("ConvInteger", [u8(1, 8, 6, 6), None, point], {1: u8(16, 8, 3, 3), 3: point},
          domain="", kernel_shape=[3, 3])  # fmt: skip


def test_integer_products_take_zero_points_of_the_run() -> None:
    weight = {1: i8(16, 32), 3: np.array(0, "int8")}
    check("MatMulInteger", [u8(2, 5, 16), None, np.array(9, "uint8")], weight, domain="")
    columns = {1: i8(16, 32), 3: RNG.integers(-5, 5, 32).astype("int8")}
    check("MatMulInteger", [u8(5, 16), None, np.array(9, "uint8")], columns, domain="")


def test_distances_of_rows() -> None:
    check("ExpandDims", [f32(3, 4)], {1: np.array(1, "int32")})
    check("CDist", [f32(3, 4), f32(5, 4)], metric="euclidean")


def test_largest_of_windows_with_channels_last() -> None:
    check("NhwcMaxPool", [u8(1, 6, 6, 3)], kernel_shape=[2, 2], strides=[2, 2])


def test_quantised_pooling_and_choice() -> None:
    scale, zero = np.array(0.1, "float32"), np.array(120, "uint8")
    x = u8(1, 3, 6, 6)
    check("QLinearAveragePool", [x, scale, zero, scale, zero], kernel_shape=[2, 2], step=1)
    check("QLinearWhere", [np.array([[True], [False]]), u8(2, 3), scale, zero, u8(2, 3), scale,
          zero, scale, zero], step=1)  # fmt: skip


def test_operators_that_only_accelerators_have() -> None:
    x, skip, bias = f32(2, 3, 8), f32(2, 3, 8), f32(8)
    assert_is("BiasAdd", [x, bias, skip], x + bias + skip)
    assert_is("GatedAdd", [x, skip, bias[None, :3, None]], x + skip * bias[None, :3, None])
    left, right = torch.tensor(x + bias).chunk(2, -1)
    assert_is("BiasSplitGelu", [x, bias], (left * F.gelu(right)).numpy())
    infinite = np.array([np.inf], "float32")
    assert_is("IsAllFinite", [x, infinite], np.array(False))
    assert_is("IsAllFinite", [x, infinite], np.array(True), isnan_only=1)


def test_groups_of_channels_are_normalised() -> None:
    x, skip, weight, bias, more = f32(2, 3, 4, 8), f32(2, 8), f32(8), f32(8), f32(8)
    total = x + skip[:, None, None] + more
    first = torch.tensor(total.transpose(0, 3, 1, 2))
    wanted = F.group_norm(first, 4, torch.tensor(weight), torch.tensor(bias))
    wanted = F.silu(wanted).numpy().transpose(0, 2, 3, 1)
    assert_is("SkipGroupNorm", [x, weight, bias, skip, more], wanted, groups=4, activation=1)


def test_convolution_has_its_channels_last() -> None:
    x, weight, bias = f32(1, 6, 6, 3), f32(4, 3, 3, 3), f32(4)
    first = torch.tensor(x.transpose(0, 3, 1, 2))
    wanted = F.conv2d(first, torch.tensor(weight), torch.tensor(bias)).relu().numpy()
    given = [x, weight, bias]
    assert_is("NhwcFusedConv", given, wanted.transpose(0, 2, 3, 1), activation="Relu")


def assert_is(op: str, inputs: list[np.ndarray], wanted: np.ndarray, **attrs: Any) -> None:
    """One node gives what a formula gives."""
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], domain="com.microsoft", **attrs)
    np.testing.assert_allclose(onnx_backend.run_node(node, inputs).y, wanted, rtol=1e-4, atol=1e-5)


def test_activations_of_cells_take_their_parameters_in_turn() -> None:
    weights = {1: f32(2, 20, 3), 2: f32(2, 20, 5)}
    names = ["HardSigmoid", "LeakyRelu", "Tanh", "Affine", "ScaledTanh", "Elu"]
    check(
        "LSTM", [f32(4, 2, 3)], weights, outputs=3, domain="", hidden_size=5,
        direction="bidirectional", activations=names,
        activation_alpha=[0.3, 0.5, 0.4, 0.9, 0.7], activation_beta=[0.6, 0.1, 0.8],
    )  # fmt: skip


def test_lstm_with_weights_of_bytes_quantises_its_data_in_each_step() -> None:
    hidden, width = 6, 10
    # one row: with several, ONNX Runtime takes a scale for the rows of each of its threads
    x, bias = f32(3, 1, width), 0.1 * f32(2, 8 * hidden)
    for scales, make, zero in (((2,), i8, 0), ((2, 4 * hidden), u8, 120)):
        ranges = [RNG.uniform(0.001, 0.004, scales).astype("float32") for _ in range(2)]
        weights = make(2, width, 4 * hidden), make(2, hidden, 4 * hidden)
        zeros = np.full(scales, zero, weights[0].dtype)
        constants = {1: weights[0], 2: weights[1], 3: bias, 4: None, 5: None, 6: None, 7: None,
                     8: ranges[0], 9: zeros, 10: ranges[1], 11: zeros}  # fmt: skip
        check("DynamicQuantizeLSTM", [x], constants, outputs=3, hidden_size=hidden,
              direction="bidirectional")  # fmt: skip
