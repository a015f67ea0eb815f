"""``torch.compile``: torch's own backend "tvm" on this package, and our own one."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import tomllib
import torch

from tvm.contrib.torch_backend import pytvm

torch.manual_seed(0)
MODELS = {
    "mlp": (
        torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)),
        torch.randn(3, 8),
    ),
    "cnn": (
        torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
            torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8 * 16, 5),
        ),
        torch.randn(2, 3, 8, 8),
    ),
    "attention": (
        torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), torch.randn(1, 5, 16)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_compiled_model_agrees_with_eager(name: str) -> None:
    model, example = MODELS[name]
    model.eval()
    # torch's backend takes no open sizes, which a second model of the same class would get
    compiled = torch.compile(model, backend="tvm", dynamic=False)
    with torch.no_grad():
        for data in (example, example * 2):
            torch.testing.assert_close(compiled(data), model(data), rtol=1e-4, atol=1e-5)


def test_compiled_function_gives_several_outputs() -> None:
    @torch.compile(backend="tvm")
    def several(x, y):
        return x @ y, x > 0, x.sum()

    x, y = torch.randn(4, 4), torch.randn(4, 4)
    product, positive, total = several(x, y)
    torch.testing.assert_close(product, x @ y)
    assert torch.equal(positive, x > 0)
    torch.testing.assert_close(total, x.sum())


def _convolutional() -> torch.nn.Module:
    return MODELS["cnn"][0].eval()


def test_backend_is_an_entry_point() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    groups = tomllib.loads(text)["project"]["entry-points"]
    module, _, name = groups["torch_dynamo_backends"]["pytvm"].partition(":")
    assert getattr(importlib.import_module(module), name) is pytvm


@torch.no_grad()
def test_each_shape_is_compiled() -> None:
    model = _convolutional()
    compiled = torch.compile(model, backend=pytvm)
    for batch in (2, 3, 5, 2):
        data = torch.randn(batch, 3, 8, 8)
        torch.testing.assert_close(compiled(data), model(data), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_changed_weights_count() -> None:
    model = torch.nn.Linear(4, 4)
    compiled = torch.compile(model, backend=pytvm)
    data = torch.randn(2, 4)
    torch.testing.assert_close(compiled(data), model(data))
    model.weight.mul_(3.0)
    torch.testing.assert_close(compiled(data), model(data))
    model.weight.add_(1.0)
    torch.testing.assert_close(compiled(data), model(data))


def test_inputs_without_axes_and_written_inputs() -> None:
    @torch.compile(backend=pytvm)
    def scaled(x, factor):
        y = x * factor
        x.add_(1)
        return {"flat": y.view(-1), "more": [x.sum(), x > 0], "size": x.shape[0], "same": x}

    x = torch.ones(3, 4)
    result = scaled(x, torch.tensor(2.0))
    assert torch.equal(result["flat"], torch.full((12,), 2.0))
    assert torch.equal(x, torch.full((3, 4), 2.0))
    assert result["more"][0] == 24 and result["more"][1].all() and result["size"] == 3
    assert result["same"] is x


def test_inputs_that_lie_askew_in_memory_are_read() -> None:
    @torch.compile(backend=pytvm)
    def product(x):
        return x @ x.t()

    x = torch.randn(5, 4)
    torch.testing.assert_close(product(x[1:]), x[1:] @ x[1:].t())
    torch.testing.assert_close(product(x.t()), x.t() @ x)


def test_graph_of_unknown_operators_runs_in_torch_with_one_warning() -> None:
    @torch.compile(backend=pytvm)
    def singular(x):
        return torch.linalg.svdvals(x)

    x = torch.randn(3, 3)
    with pytest.warns(UserWarning, match="leaves a graph to PyTorch.*_linalg_svd"):
        torch.testing.assert_close(singular(x), torch.linalg.svdvals(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        singular(x)


def refusal(call: str) -> str:
    """What a call ends with, in a process of its own.

    After an error of a back end torch leaves a hook behind, with which calls of Python functions
    use the C stack: deep programs of later tests would overflow it.
    """
    program = f"import torch\nfrom tvm.contrib.torch_backend import pytvm\n{call}"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    return done.stderr


def test_training_graphs_are_refused() -> None:
    layer = "torch.compile(torch.nn.Linear(4, 4), backend=pytvm)"
    assert "requires graphs without gradients" in refusal(f"{layer}(torch.randn(2, 4))")


def test_unknown_options_are_refused() -> None:
    function = "torch.compile(lambda x: x + 1, backend=pytvm, options={'opt_levle': 2})"
    assert "opt_level" in refusal(f"{function}(torch.ones(2))")


def test_options_are_used() -> None:
    compiled = torch.compile(lambda x: x * 2 + 1, backend=pytvm, options={"opt_level": 0})
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 3.0))
