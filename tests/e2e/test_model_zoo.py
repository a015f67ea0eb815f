"""A few of the architectures that `python -m tests.e2e.model_zoo` runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import onnx_zoo, open_zoo
from .model_zoo import MODELS, RELATIVE, difference
from .zoo_table import Outcome, read_log, write_table


@pytest.mark.parametrize("name", ["unet", "detector", "speech", "temporal", "graph", "llama"])
def test_model_agrees_with_torch(name: str) -> None:
    assert difference(name) <= RELATIVE


@pytest.mark.parametrize("name", ["graph", "bert"])
def test_exported_model_agrees_with_torch(name: str) -> None:
    assert difference(name, exported=True) <= RELATIVE


@pytest.mark.parametrize("name", ["diffusion", "speech"])
def test_model_that_torch_writes_to_onnx_agrees(name: str) -> None:
    assert onnx_zoo.difference(name, script=True) <= RELATIVE


@pytest.mark.parametrize("name", ["temporal", "bert"])
def test_exported_program_of_open_sizes_agrees_at_several_sizes(name: str) -> None:
    assert open_zoo.difference(name) <= RELATIVE


def test_table_has_what_the_log_says_last(tmp_path: Path) -> None:
    log, page = tmp_path / "log", tmp_path / "page.md"
    outcomes = [
        Outcome("net", "traced", 1.0, 1e-4, 2.0), Outcome("net", "traced", 1e-6, 1e-4, 2.0),
        Outcome("net", "exported", float("inf"), 1e-4, 1.0, "an operator | is missing"),
    ]  # fmt: skip
    log.write_text("".join(f"{outcome.as_json()}\n" for outcome in outcomes))
    write_table(page, read_log(log))
    text = page.read_text()
    assert "1 of 1 through `torch.jit.trace`, 0 of 1 through `torch.export`" in text
    assert "| net | 1.0e-06 | **differs**: an operator \\| is missing |" in text


def test_list_is_long() -> None:
    assert len(MODELS) >= 60
