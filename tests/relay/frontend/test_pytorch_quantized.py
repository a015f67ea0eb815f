"""Quantised PyTorch modules, static, dynamic and in FX graph mode, give PyTorch's results."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.ao import quantization
from torch.ao.quantization.fx import _decomposed
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

import tvm
from tvm import relay
from tvm.contrib import graph_executor

pytestmark = pytest.mark.filterwarnings("ignore")


def built(mod: tvm.IRModule, params: dict[str, Any], x: torch.Tensor) -> np.ndarray:
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.set_input(0, x.numpy())
    module.run()
    return module.get_output(0).numpy()


def found(module: nn.Module, x: torch.Tensor) -> np.ndarray:
    script = torch.jit.trace(module, x)
    return built(*relay.frontend.from_pytorch(script, [("x", tuple(x.shape))]), x)


def assert_within_a_step(module: nn.Module, x: torch.Tensor) -> None:
    expected = module(x).detach().numpy()
    levels = np.diff(np.unique(expected))
    step = levels[levels > 1e-6].min()
    assert np.abs(found(module, x) - expected).max() <= 1.01 * step


class Between(nn.Module):
    """A module, or a function with torch's helper, between a quantisation and its inverse."""

    def __init__(self, body: nn.Module | Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.enter, self.leave = quantization.QuantStub(), quantization.DeQuantStub()
        self.helper = torch.ao.nn.quantized.FloatFunctional()
        self.inner = body if isinstance(body, nn.Module) else None
        self.function = None if isinstance(body, nn.Module) else body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.enter(x)
        y = self.function(self.helper, x) if self.inner is None else self.inner(x)
        return self.leave(y)


def after_conv(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(4, 8, 1), *layers)


IMAGE, ROWS = (2, 4, 8, 8), (2, 3, 8)
STATIC: dict[str, tuple[Any, tuple[int, ...]]] = {
    "batch_norm": (nn.Sequential(nn.MaxPool2d(2), nn.BatchNorm2d(4), nn.ReLU6()), IMAGE),
    "conv1d": (nn.Sequential(nn.Conv1d(4, 8, 3, padding=1, stride=2), nn.Conv1d(8, 8, 3, groups=4)),
               (1, 4, 20)),
    "conv3d": (nn.Conv3d(4, 8, 3, padding=1), (1, 4, 6, 6, 6)),
    "transposed": (nn.ConvTranspose2d(4, 8, 3, stride=2, output_padding=1, padding=1), IMAGE),
    "rows": (nn.Sequential(nn.Linear(8, 6), nn.LayerNorm(6)), ROWS),
    "activations": (after_conv(nn.Hardswish(), nn.LeakyReLU(0.1), nn.ELU()), IMAGE),
    "fixed ranges": (after_conv(nn.Sigmoid(), nn.Tanh(), nn.Hardsigmoid()), IMAGE),
    "norms": (after_conv(nn.GroupNorm(2, 8), nn.InstanceNorm2d(8, affine=True)), IMAGE),
    "pools": (after_conv(nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2), nn.Upsample(scale_factor=2)),
              IMAGE),
    "numbers": (lambda f, x: f.mul_scalar(f.add_scalar(x, 0.7), -0.7), IMAGE),
    "products": (lambda f, x: f.mul(x, x), IMAGE),
    "matmul": (lambda f, x: f.matmul(x, x.transpose(1, 2)), ROWS),
    "movement": (lambda f, x: x.permute(0, 2, 3, 1).reshape(x.size(0), -1)[:, 3:9].chunk(2, 1)[1],
                 IMAGE),
}  # fmt: skip


@pytest.mark.parametrize("name", STATIC)
def test_eager_modules_agree_within_a_step(name: str) -> None:
    torch.manual_seed(1)
    torch.backends.quantized.engine = "fbgemm"
    body, shape = STATIC[name]
    module = Between(copy.deepcopy(body)).eval()
    module.qconfig = quantization.get_default_qconfig("fbgemm")
    if name == "transposed":  # torch has no scales of channels for it
        module.qconfig = quantization.QConfig(
            quantization.HistogramObserver.with_args(reduce_range=True),
            quantization.default_weight_observer,
        )
    quantization.prepare(module, inplace=True)
    for _ in range(3):
        module(torch.randn(shape))
    quantization.convert(module, inplace=True)
    assert_within_a_step(module, torch.randn(shape))


@pytest.mark.parametrize("engine", ["x86", "qnnpack"])
def test_graph_mode_modules_agree_within_a_step(engine: str) -> None:
    torch.manual_seed(1)
    torch.backends.quantized.engine = engine
    body = nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5))  # fmt: skip
    mapping = quantization.get_default_qconfig_mapping(engine)
    module = prepare_fx(body.eval(), mapping, (torch.randn(IMAGE),))
    for _ in range(3):
        module(torch.randn(IMAGE))
    assert_within_a_step(convert_fx(module), torch.randn(IMAGE))


class Recurrent(nn.Module):
    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.layer = getattr(nn, kind)(8, 6, **options)
        self.head = nn.Linear(12 if options.get("bidirectional") else 6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0])


class Cells(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(8, 6), nn.GRUCell(6, 6), nn.RNNCell(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rnn(self.gru(self.lstm(x)[0]))


DYNAMIC = {
    "linear": (lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)), ROWS),
    "lstm": (lambda: Recurrent("LSTM", bidirectional=True), (2, 2, 8)),
    "gru": (lambda: Recurrent("GRU", batch_first=True), (2, 3, 8)),
    "cells": (Cells, (2, 8)),
}


@pytest.mark.parametrize("dtype", [torch.qint8, torch.float16])
@pytest.mark.parametrize("name", DYNAMIC)
def test_modules_quantised_at_run_time_agree(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    torch.backends.quantized.engine = "fbgemm"
    make, shape = DYNAMIC[name]
    kinds = {nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.GRUCell, nn.RNNCell}
    module = quantization.quantize_dynamic(make().eval(), kinds, dtype=dtype)
    x = torch.randn(shape)
    np.testing.assert_allclose(found(module, x), module(x).detach().numpy(), atol=1e-5)


def test_embeddings_of_bytes_agree() -> None:
    module = nn.Sequential(nn.Embedding(10, 16)).eval()
    module.qconfig = quantization.float_qparams_weight_only_qconfig
    quantization.prepare(module, inplace=True)
    quantization.convert(module, inplace=True)
    x = torch.tensor([[1, 9], [3, 3]])
    script = torch.jit.trace(module, x)
    mod, params = relay.frontend.from_pytorch(script, [("x", ((2, 2), "int64"))])
    np.testing.assert_allclose(built(mod, params, x), module(x).numpy(), atol=1e-5)


class Decomposed(nn.Module):
    """What torch.export's quantisers leave: operators on ordinary tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("w", torch.randint(-127, 128, (8, 4, 3, 3), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(8) * 0.01 + 0.01)
        self.register_buffer("zeros", torch.zeros(8, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ops = torch.ops.quantized_decomposed
        data, out = (0.03, 3, 0, 127, torch.uint8), (0.1, 100, 0, 255, torch.uint8)
        x = ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *data), *data)
        w = ops.dequantize_per_channel(self.w, self.scales, self.zeros, 0, -127, 127, torch.int8)
        y = nn.functional.conv2d(x, w)
        return ops.dequantize_per_tensor(ops.quantize_per_tensor(y, *out), *out)


def test_exported_programs_with_decomposed_operators_run_on_integers() -> None:
    assert _decomposed is not None  # its import defines the operators
    torch.manual_seed(1)
    module, x = Decomposed(), torch.randn(1, 4, 8, 8)
    imported = relay.frontend.from_exported_program(torch.export.export(module, (x,)))
    mod, params = imported if isinstance(imported, tuple) else (imported, {})
    report = relay.transform.precision_report(mod, "llvm -mcpu=cascadelake", params)
    assert [row.dtype for row in report if row.operator == "nn.conv2d"] == ["int8"]
    assert np.abs(built(mod, params, x) - module(x).numpy()).max() <= 0.101


def test_networks_trained_quantised_agree_before_their_conversion() -> None:
    torch.manual_seed(1)
    module = nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU()).train()
    module.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    quantization.prepare_qat(module, inplace=True)
    x = torch.randn(IMAGE)
    module(x)
    module.eval().apply(quantization.disable_observer)
    assert_within_a_step(module, x)


class OnSteps(nn.Module):
    """A function of two quantised tensors whose scales put results halfway between two steps."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = torch.quantize_per_tensor(x, 0.0213, 61, torch.quint8)
        b = torch.quantize_per_tensor(x * 1.3 + 0.1, 0.0157, 71, torch.quint8)
        return self.function(a, b).dequantize()


def _prelu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    slope = torch.quantize_per_tensor(torch.tensor([0.3]), 0.0071, 3, torch.quint8)
    return torch.ops.quantized.prelu(a, slope, 0.02, 33)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: torch.ops.quantized.add(a, b, 0.02, 33),
        lambda a, b: torch.ops.quantized.add_relu(a, b, 0.02, 33),
        lambda a, b: nn.functional.adaptive_avg_pool2d(a, 4),
        lambda a, b: b.mean([2, 3]),
        _prelu,
    ],
    ids=["add", "add_relu", "adaptive_avg_pool2d", "mean", "prelu"],
)
def test_halves_are_rounded_as_pytorch_does(function: Callable[..., torch.Tensor]) -> None:
    torch.manual_seed(2)
    module, x = OnSteps(function), torch.randn(2, 16, 32, 32)
    np.testing.assert_array_equal(found(module, x), module(x).numpy())


@pytest.mark.parametrize("engine", ["fbgemm", "x86", "qnnpack"])
def test_convolutions_round_as_their_engine(engine: str) -> None:
    torch.manual_seed(3)
    torch.backends.quantized.engine = engine
    module = Between(nn.Sequential(nn.Conv2d(16, 32, 1), nn.ReLU())).eval()
    module.qconfig = quantization.get_default_qconfig(engine)
    quantization.prepare(module, inplace=True)
    x = torch.randn(2, 16, 24, 24)
    module(x)
    quantization.convert(module, inplace=True)
    np.testing.assert_array_equal(found(module, x), module(x).detach().numpy())


def test_weights_are_parameters_if_they_are_kept() -> None:
    body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    model, x = Between(body).eval(), torch.randn(2, 3, 8, 8)
    model.qconfig = quantization.get_default_qconfig("fbgemm")
    prepared = quantization.prepare(model)
    prepared(x)
    script = torch.jit.trace(quantization.convert(prepared), x)
    infos = [("x", tuple(x.shape))]
    plain, none = relay.frontend.from_pytorch(script, infos)
    kept, params = relay.frontend.from_pytorch(script, infos, keep_quantized_weight=True)
    assert not none
    assert {name: value.dtype for name, value in params.items()} == {
        "inner.0._packed_params_weight": "int8",
        "inner.3._packed_params._packed_params_weight": "int8",
    }
    np.testing.assert_array_equal(built(kept, params, x), built(plain, none, x))
