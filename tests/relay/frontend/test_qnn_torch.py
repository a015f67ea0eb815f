"""The classic helpers for PyTorch modules."""

from __future__ import annotations

import numpy as np
import torch
from torch.ao.nn import quantized

from tvm import IRModule, relay
from tvm.relay.frontend import pytorch_utils, qnn_torch

from .running import run

X = np.array([0, 5, 128, 200, 255], "uint8")


def _of_bytes(function) -> np.ndarray:
    x = relay.var("x", shape=X.shape, dtype="uint8")
    return run(IRModule.from_expr(relay.Function([x], function(x))), {}, {"x": X})[0]


def test_numbers_are_quantised_by_tensor_and_by_channel() -> None:
    weight = np.array([[0.1, -0.26], [100.0, 0.5]], "float32")
    whole = qnn_torch.quantize_numpy(weight, 0.1, 3, np.int8)
    np.testing.assert_array_equal(whole, [[4, 0], [127, 8]])
    scales, zeros = np.array([0.1, 1.0]), np.array([0, -1])
    by_channel = qnn_torch.quantize_numpy(weight, scales, zeros, np.int8)
    np.testing.assert_array_equal(by_channel, [[1, -3], [99, -1]])
    assert qnn_torch.quantize_scalar(-1.0, 0.1, 3) == 0


def test_functions_of_bytes() -> None:
    scale, zero = relay.const(0.05), relay.const(128)
    relu = _of_bytes(lambda x: qnn_torch.quantized_relu(x, zero))
    np.testing.assert_array_equal(relu, np.maximum(X, 128))
    same = _of_bytes(lambda x: qnn_torch.apply_with_upcast(x, lambda y: y - relay.const(0)))
    np.testing.assert_array_equal(same, X)
    real = (X.astype("float32") - 128) * 0.05
    sigmoid = _of_bytes(lambda x: qnn_torch.quantized_sigmoid([x, scale, zero]))
    expected = np.clip(np.rint(256 / (1 + np.exp(-real))), 0, 255)
    assert np.abs(sigmoid.astype("int32") - expected).max() <= 1
    same = _of_bytes(lambda x: qnn_torch.apply_with_fp32_fallback(x, scale, zero, relay.nn.relu))
    np.testing.assert_array_equal(same, np.maximum(X, 128))


def test_packed_weights_are_found() -> None:
    layer = quantized.Conv2d(3, 4, 3, stride=2)
    data = torch.quantize_per_tensor(torch.ones(1, 3, 8, 8), 1, 0, torch.quint8)
    script = torch.jit.trace(layer, data)
    found = qnn_torch.get_weight_quant_params(script, ["_packed_params"])
    (parameter,) = found.values()
    np.testing.assert_array_equal(parameter.weight, layer.weight().dequantize().numpy())
    assert list(parameter.stride) == [2, 2] and parameter.groups == 1


def test_versions_are_compared() -> None:
    assert pytorch_utils.is_version_greater_than("1.5.1")
    assert not pytorch_utils.is_version_greater_than("99.0.0")
