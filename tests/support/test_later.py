"""Names of a package that a layer above it defines."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tvm.support.later import names_from_above, provide


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    low, high = ModuleType("tests_low"), ModuleType("tests_high")
    high.answer = 42  # type: ignore[attr-defined]
    low.__getattr__ = names_from_above("tests_low")  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "tests_low", low)
    monkeypatch.setitem(sys.modules, "tests_high", high)
    provide("tests_low", {"answer": "tests_high:answer", "high": "tests_high"})
    return low


def test_names_are_found_where_they_were_said_to_be(package: ModuleType) -> None:
    assert package.answer == 42
    assert package.high is sys.modules["tests_high"]
    assert "answer" in vars(package)


def test_other_names_are_errors_of_the_package(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="module 'tests_low' has no attribute 'question'"):
        _ = package.question
