"""A few of the architectures that `python -m tests.e2e.model_zoo` runs."""

from __future__ import annotations

import pytest

from . import onnx_zoo
from .model_zoo import MODELS, RELATIVE, difference


@pytest.mark.parametrize("name", ["unet", "detector", "speech", "temporal", "graph", "llama"])
def test_model_agrees_with_torch(name: str) -> None:
    assert difference(name) <= RELATIVE


@pytest.mark.parametrize("name", ["graph", "bert"])
def test_exported_model_agrees_with_torch(name: str) -> None:
    assert difference(name, exported=True) <= RELATIVE


@pytest.mark.parametrize("name", ["diffusion", "speech"])
def test_model_that_torch_writes_to_onnx_agrees(name: str) -> None:
    assert onnx_zoo.difference(name, script=True) <= RELATIVE


def test_list_is_long() -> None:
    assert len(MODELS) >= 60
