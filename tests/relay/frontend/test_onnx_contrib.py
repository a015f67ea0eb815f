"""More operators of com.microsoft, and operators of ONNX's first releases, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper, numpy_helper

from tests.relay.frontend.test_onnx_microsoft import assert_is, check, f32, i8, u8
from tvm.contrib import onnx_backend

RNG = np.random.default_rng(1)


def ints(high: int, *shape: int, dtype: str = "int64") -> np.ndarray:
    return RNG.integers(0, high, shape).astype(dtype)


# ---- weights of few bits


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_rows_of_a_packed_table_are_gathered(bits: int, has_zeros: bool) -> None:
    table, scales = u8(7, 32 * bits // 8), np.abs(f32(7, 2)) + 0.1
    zeros = u8(7, 2 * bits // 8) if has_zeros else None
    indices = np.array([[3, -1], [0, 5]])
    check("GatherBlockQuantized", [None, indices], {0: table, 2: scales, 3: zeros}, bits=bits,
          block_size=16, quantize_axis=1, gather_axis=0)  # fmt: skip


@pytest.mark.parametrize("kind", [0, 1])
def test_weights_by_a_table_of_four_bits(kind: int) -> None:
    weight = {1: u8(6 * 32 // 2), 2: np.abs(f32(12)) + 0.1}
    check("MatMulBnb4", [f32(2, 3, 32)], weight, K=32, N=6, block_size=16, quant_type=kind)


@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_few_bits_have_zero_points(bits: int) -> None:
    packed, scales = u8(6, 2, 16 * bits // 8), np.abs(f32(12)) + 0.1
    zeros = u8(6 * (1 if bits == 4 else 2))
    check("MatMulNBits", [f32(3, 32)], {1: packed, 2: scales, 3: zeros}, K=32, N=6, bits=bits,
          block_size=16)  # fmt: skip


# ---- mixtures of experts


@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("is_normal", [0, 1])
def test_rows_go_to_the_experts_that_score_most(kind: str, is_normal: int) -> None:
    layers = [f32(4, 6, 8), f32(4, 6), f32(4, 8, 6), f32(4, 8)]
    check("MoE", [f32(5, 8), f32(5, 4), *layers], k=2, activation_type=kind,
          normalize_routing_weights=is_normal)  # fmt: skip


def test_experts_gate_their_own_inner_rows() -> None:
    layers = [f32(4, 12, 8), f32(4, 12), f32(4, 8, 6), f32(4, 8)]
    check("MoE", [f32(2, 3, 8), f32(6, 4), *layers], k=2, activation_type="swiglu",
          swiglu_fusion=1, swiglu_limit=1.0, activation_alpha=1.7, activation_beta=0.3)  # fmt: skip


@pytest.mark.parametrize("bits", [4, 8])
def test_experts_have_weights_of_few_bits(bits: int) -> None:
    def weight(rows: int, columns: int) -> list[np.ndarray | None]:
        return [u8(4, rows, columns * bits // 8), (np.abs(f32(4, rows)) + 0.1) / 2**bits, None]

    values = dict(enumerate([*weight(16, 32), *weight(32, 16)], 2))
    check("QMoE", [f32(5, 32), f32(5, 4)], values, k=2, activation_type="silu",
          expert_weight_bits=bits)  # fmt: skip


# ---- sequences without padding


def test_padding_goes_and_returns() -> None:
    x, lengths = f32(3, 4, 6), np.array([1, 4, 2], "int32")
    rows = np.concatenate([x[i, :n] for i, n in enumerate(lengths)])
    offsets = np.array([[0, 4, 5, 6], [7, 8, 9, 1], [2, 3, 10, 11]], "int32")
    back = np.where(np.arange(4)[None, :, None] < lengths[:, None, None], x, 0)
    assert_is("RestorePadding", [rows, offsets], back)
    node = helper.make_node("RemovePadding", ["x", "n"], ["y", "o", "s", "m"],
                            domain="com.microsoft")  # fmt: skip
    found = onnx_backend.run_node(node, [x, lengths])
    for ours, wanted in zip(found, [rows, offsets, [0, 1, 5, 7], [4]], strict=True):
        np.testing.assert_array_equal(ours, wanted)


def test_packed_rows_attend_to_their_own_item() -> None:
    x, lengths = f32(2, 4, 8), [2, 4]
    offsets, sums = np.array([[0, 1, 4, 5], [6, 7, 2, 3]], "int32"), np.array([0, 2, 6], "int32")
    rows = np.concatenate([x[i, :n] for i, n in enumerate(lengths)])
    weight, bias = f32(8, 24), f32(24)
    wanted = []
    for i, length in enumerate(lengths):
        q, k, v = torch.tensor(x[i, :length] @ weight + bias).reshape(length, 3, 2, 4).unbind(1)
        heads = [part.transpose(0, 1) for part in (q, k, v)]
        found = torch.nn.functional.scaled_dot_product_attention(*heads)
        wanted.append(found.transpose(0, 1).reshape(length, 8).numpy())
    expected = np.concatenate(wanted)
    assert_is("PackedAttention", [rows, weight, bias, offsets, sums], expected, num_heads=2)
    parts = [*np.split(rows @ weight, 3, 1), bias, offsets, sums]
    assert_is("PackedMultiHeadAttention", parts, expected, num_heads=2)


# ---- fused operators


def test_transposed_batches_are_multiplied() -> None:
    check("FusedMatMul", [f32(3, 2, 5, 4), f32(2, 5, 4, 6)], transBatchA=1, alpha=2.0)
    check("FusedMatMul", [f32(2, 3, 4), f32(2, 3, 5)], transA=1)


def test_biases_come_with_softmax_and_dropout() -> None:
    x, bias, more = f32(2, 3, 4), f32(2, 1, 4), f32(2, 3, 4)
    wanted = torch.softmax(torch.tensor(x + bias), -1).numpy()
    assert_is("BiasSoftmax", [x, bias], wanted, axis=2, is_inner_broadcast=1)
    assert_is("BiasDropout", [x, bias[0, 0], more], x + bias[0, 0] + more)
    assert_is("BitmaskDropout", [x], x)
    assert_is("TorchEmbedding", [x, np.array([1, 0])], x[[1, 0]])


def test_gates_and_norms() -> None:
    check("GatedRMSNorm", [f32(2, 3, 8), f32(4), f32(2, 3, 8)])
    check("ScaledSiLU", [f32(2, 8)], alpha=1.5)


def test_positions_have_biases() -> None:
    behind = np.array([0, 1, 2, 3, 4, 6, 7, 7, 7])  # 8 ranges, the last from distance 6 on
    near = np.array([0, 1, 2, 2, 3, 3, 3, 3, 3])  # 4 ranges on each side
    places = np.arange(9)[None] - np.arange(9)[:, None]
    for is_both in (False, True):
        bucket = behind[np.maximum(-places, 0)]
        if is_both:
            bucket = near[np.abs(places)] + np.where(places > 0, 4, 0)
        table = f32(8, 2)
        wanted = table.reshape(2, 8)[:, bucket][None]
        length = np.array([9])
        node = helper.make_node(
            "RelativePositionBias", ["t", "n", "n"], ["y"], domain="com.microsoft",
            max_distance=6, is_bidirectional=int(is_both),
        )  # fmt: skip
        graph = helper.make_graph(
            [node], "t", [helper.make_tensor_value_info("t", 1, (8, 2))],
            [helper.make_tensor_value_info("y", 1, None)], [numpy_helper.from_array(length, "n")],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        np.testing.assert_array_equal(onnx_backend.run_model(model, {"t": table})[0], wanted)


def test_queries_gate_biases_of_positions() -> None:
    q, bias, places, weight, shift, scale = [
        torch.tensor(x)
        for x in (f32(2, 3, 8), f32(8), f32(1, 2, 3, 3), f32(4, 6), f32(6), f32(1, 2, 1, 1))
    ]
    heads = (q + bias).reshape(2, 3, 2, 4).transpose(1, 2)
    summed = (heads @ weight + shift).reshape(2, 2, 3, 2, 3).sum(-1)
    update, reset = torch.sigmoid(summed).chunk(2, -1)
    wanted = (update * (reset * scale - 1) + 2) * places
    given = [x.numpy() for x in (q, bias, places, weight, shift, scale)]
    assert_is("GatedRelativePositionBias", given, wanted.numpy(), num_heads=2)


def test_spectra_of_real_signals() -> None:
    x = f32(3, 10)
    spectrum = np.fft.rfft(x)
    pairs = np.stack([spectrum.real, spectrum.imag], -1).astype("float32")
    assert_is("Rfft", [x], pairs, signal_ndim=1, onesided=1, normalized=0)
    assert_is("Irfft", [pairs], x, signal_ndim=1, onesided=1, normalized=0)
    other = f32(3, 6, 2)
    product = spectrum * (other[..., 0] - 1j * other[..., 1])
    wanted = np.stack([product.real, product.imag], -1)
    assert_is("ComplexMulConj", [pairs, other], wanted)


def test_windows_and_small_algebra() -> None:
    check("UnfoldTensor", [f32(2, 9, 3)], dim=1, size=4, step=2)
    check("Inverse", [f32(2, 5, 5) + 3 * np.eye(5, dtype="float32")])
    check("Inverse", [f32(4, 4)[[3, 0, 2, 1]]])
    check("MatMulInteger16", [ints(99, 3, 4, dtype="int16"), ints(99, 4, 2, dtype="int16")])


def test_crops_are_resized() -> None:
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [0.0, 0.0, 1.3, 1.0]], "float32")
    places, size = np.array([0, 1], "int32"), np.array([3, 4], "int32")
    for mode in ("bilinear", "nearest"):
        check("CropAndResize", [f32(2, 3, 6, 7), boxes, places], {3: size}, mode=mode,
              extrapolation_value=0.5)  # fmt: skip


def test_padding_of_a_transposed_convolution_is_an_input() -> None:
    values = {1: f32(3, 4, 3, 3), 2: np.array([1, 1, 0, 1]), 3: f32(4)}
    check("ConvTransposeWithDynamicPads", [f32(1, 3, 5, 5)], values, strides=[2, 2])


@pytest.mark.parametrize("size", [1, 2, 3])
def test_groups_of_tokens_do_not_repeat(size: int) -> None:
    ids = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]])
    check("NGramRepeatBlock", [ids, f32(2, 6)], ngram_size=size)


# ---- quantised operators


def test_quantised_convolution_has_its_channels_last() -> None:
    scale, zero = np.array(0.1, "float32"), np.array(120, "uint8")
    values = {1: scale, 2: zero, 3: i8(4, 3, 3, 3), 4: scale, 5: np.array(0, "int8"), 6: scale,
              7: zero, 8: np.arange(4, dtype="int32")}  # fmt: skip
    check("QLinearConv", [u8(1, 6, 6, 3)], values, channels_last=1, step=1)


@pytest.mark.parametrize("opset", [11, 13])
def test_quantised_softmax_follows_its_opset(opset: int) -> None:
    scale, out = np.array(0.05, "float32"), np.array(1 / 256, "float32")
    points = np.array(100, "uint8"), np.array(0, "uint8")
    check("QLinearSoftmax", [u8(2, 3, 4), scale, points[0], out, points[1]], axis=1, opset=opset,
          step=1)  # fmt: skip


def test_quantised_embeddings() -> None:
    ids, segments = np.array([[1, 3, 2]], "int32"), np.array([[0, 1, 1]], "int32")
    tables = [u8(5, 8), u8(4, 8), u8(2, 8), u8(8), u8(8)]
    mask = np.array([[1, 1, 0]], "int32")
    scales = [np.array(0.01 * (i + 1), "float32") for i in range(5)]
    zeros = [np.array(100 + i, "uint8") for i in range(5)]
    given = [ids, segments, *[None] * 5, mask]
    constants = {**dict(enumerate(tables, 2)), **dict(enumerate(scales + zeros, 8))}
    check("QEmbedLayerNormalization", given, constants, outputs=2, epsilon=1e-5)


# ---- operators of the first releases


def check_old(op: str, opset: int, inputs: list[np.ndarray], **attrs: object) -> None:
    """A node of an old opset beside ONNX Runtime."""
    names = [f"x{i}" for i in range(len(inputs))]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], **attrs)], "old",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
         for n, x in zip(names, inputs, strict=True)],
        [onnx.ValueInfoProto(name="y")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    feed = dict(zip(names, inputs, strict=True))
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = onnx_backend.run_model(model, feed)[0]
    np.testing.assert_allclose(found, session.run(None, feed)[0], rtol=1e-5, atol=1e-5)


def test_experimental_operators() -> None:
    x = f32(1, 3, 4, 5)
    check_old("Affine", 7, [x], alpha=2.0, beta=0.5)
    check_old("ScaledTanh", 7, [x], alpha=2.0, beta=0.5)
    check_old("ParametricSoftplus", 7, [x], alpha=2.0, beta=0.5)
    check_old("Scale", 7, [x], scale=3.0)
    check_old("ImageScaler", 7, [x], scale=3.0, bias=[1.0, 2.0, 3.0])
    check_old("Crop", 7, [x], border=[1, 0, 2, 1])
    check_old("Crop", 7, [x], border=[1, 1, 0, 0], scale=[2, 3])


def test_normalisation_of_old_opsets() -> None:
    x = f32(2, 3, 4, 5)
    check_old("MeanVarianceNormalization", 8, [x], across_channels=1, normalize_variance=0)
    places = [f32(3, 4, 5), f32(3, 4, 5), f32(3, 4, 5), np.abs(f32(3, 4, 5)) + 0.1]
    check_old("BatchNormalization", 7, [x, *places], spatial=0)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_shares_of_old_opsets_are_among_all_elements_behind(op: str) -> None:
    x = f32(2, 3, 4)
    check_old(op, 11, [x], axis=1)
    check_old(op, 11, [x], axis=-1)
    check_old(op, 13, [x], axis=-3)


def test_places_of_tuples_count_from_the_end() -> None:
    indices = np.array([[-1, 0], [1, -2]])
    check_old("GatherND", 13, [f32(2, 3, 4), indices])
    check_old("GatherND", 13, [f32(2, 3, 4), indices[:, :1]], batch_dims=1)


def test_distinct_elements_of_data_of_the_run() -> None:
    check("Unique", [np.array([3, 1, 1, 7, 3], "float32")], outputs=3)


@pytest.mark.parametrize("kind", ["FLOAT4E2M1", "FLOAT8E4M3FNUZ", "UINT2", "INT2"])
def test_weights_of_types_that_relay_lacks_keep_their_values(kind: str) -> None:
    codes = np.arange(4, dtype="float32").reshape(2, 2) - (2 if kind == "INT2" else 0)
    weight = helper.make_tensor("w", getattr(onnx.TensorProto, kind), (2, 2), codes.reshape(-1))
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["r"], axis=0),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    scale = np.array([0.5, 2.0], "float32")
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, (2, 2))],
        [helper.make_tensor_value_info("y", 1, None)], [weight, numpy_helper.from_array(scale, "s")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    x = f32(2, 2)
    np.testing.assert_allclose(
        onnx_backend.run_model(model, {"x": x})[0], x + codes * scale[:, None]
    )


@pytest.mark.parametrize("op", ["Min", "Max"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_the_least_and_the_greatest_number_may_be_none(op: str, dtype: str) -> None:
    a, b = f32(4, 6) * 9, f32(6) * 9
    if dtype != "int32":
        a[1, :3], b[2:4] = np.nan, np.nan
    check_old(op, 13, [a.astype(dtype), b.astype(dtype), f32(4, 1).astype(dtype)])
