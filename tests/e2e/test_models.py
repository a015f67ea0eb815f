"""Real models through both importers, against PyTorch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tvm
from benchmarks.zoo import MAIN_MODELS, build, export_onnx, input_infos, trace
from tvm import relay
from tvm.contrib import graph_executor

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
