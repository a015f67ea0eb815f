"""``torch.compile(backend="tvm")``: torch's own backend, unchanged, on this package."""

from __future__ import annotations

import pytest
import torch

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


@pytest.fixture(autouse=True)
def _forget_earlier_graphs() -> None:
    torch._dynamo.reset()


@pytest.mark.parametrize("name", MODELS)
def test_compiled_model_agrees_with_eager(name: str) -> None:
    model, example = MODELS[name]
    model.eval()
    compiled = torch.compile(model, backend="tvm")
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
