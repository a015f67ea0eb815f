"""Real models through both importers, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import tvm
from benchmarks.zoo import MAIN_MODELS, build, export_onnx, input_infos, trace, vision
from tvm import relay
from tvm.contrib import graph_executor

SwinTransformer = vision.swin_transformer.SwinTransformer

RELATIVE = 1e-4


@pytest.fixture(scope="module")
def onnx_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("onnx")


@pytest.mark.slow
@pytest.mark.parametrize("importer", ["pytorch", "onnx"])
@pytest.mark.parametrize("name", MAIN_MODELS)
def test_model_agrees_with_pytorch(name: str, importer: str, onnx_folder: Path) -> None:
    model, inputs = build(name)
    with torch.no_grad():
        expected = model(*inputs).numpy()
    if importer == "onnx":
        mod, params = relay.frontend.from_onnx(str(export_onnx(name, onnx_folder)))
    else:
        mod, params = relay.frontend.from_pytorch(trace(model, inputs), input_infos(inputs))
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for i, tensor in enumerate(inputs):
        module.set_input(f"in{i}", tensor.numpy())
    module.run()
    actual = module.get_output(0).numpy()
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= RELATIVE * np.abs(expected).max()


class _Taking(torch.nn.Module):
    """A model of the transformers package as a function of tensors."""

    def __init__(self, model: torch.nn.Module, output: str) -> None:
        super().__init__()
        self.model = model
        self.output = output

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return getattr(self.model(input_ids=ids, use_cache=False), self.output)


def _llama() -> torch.nn.Module:
    """Rotary positions, root mean square norms, heads that share keys."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=128, max_position_embeddings=64,
    )  # fmt: skip
    return _Taking(LlamaForCausalLM(config), "logits")


def _bart() -> torch.nn.Module:
    """An encoder and a decoder; the inputs are shifted by writing to slices."""
    from transformers import BartConfig, BartModel

    config = BartConfig(
        vocab_size=100, d_model=64, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
        max_position_embeddings=64,
    )  # fmt: skip
    return _Taking(BartModel(config), "last_hidden_state")


@pytest.mark.slow
@pytest.mark.parametrize("make", [_llama, _bart])
def test_small_transformer_agrees_with_pytorch(make: Callable[[], torch.nn.Module]) -> None:
    torch.manual_seed(0)
    ids = torch.randint(3, 100, (1, 16))
    _assert_agrees(make().eval(), ids)


@pytest.mark.slow
def test_windowed_attention_agrees_with_pytorch() -> None:
    """Swin: rolled images, masks written region by region, tables of relative positions."""
    torch.manual_seed(0)
    model = SwinTransformer([4, 4], 24, [2, 2], [2, 4], [7, 7], num_classes=10)
    _assert_agrees(model.eval(), torch.randn(1, 3, 64, 64))


def _assert_agrees(model: torch.nn.Module, example: torch.Tensor) -> None:
    with torch.no_grad():
        expected = model(example).numpy()
    mod, params = relay.frontend.from_pytorch(trace(model, (example,)), input_infos((example,)))
    lib = relay.build(mod, target="llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.set_input("in0", example.numpy())
    module.run()
    actual = module.get_output(0).numpy()
    assert np.abs(actual - expected).max() <= RELATIVE * np.abs(expected).max()
