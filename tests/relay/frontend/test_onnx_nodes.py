"""A spread of ONNX's own node tests; all of them by ``onnx_node_tests``."""

from __future__ import annotations

import re
from typing import Any

import pytest

from .onnx_node_tests import DOCUMENT, PASSED, load_cases, run_case

STEP = 10


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    return load_cases()


def documented_failures() -> set[str]:
    return set(re.findall(r"^\| (test_\w+) \|", DOCUMENT.read_text(encoding="utf8"), re.MULTILINE))


def test_a_spread_of_the_node_tests_passes(cases: dict[str, Any]) -> None:
    known = documented_failures()
    names = [name for name in cases if name not in known][::STEP]
    results = {name: run_case(cases[name]) for name in names}
    assert {name: reason for name, reason in results.items() if reason != PASSED} == {}


def test_documented_failures_are_tests_of_onnx_and_few(cases: dict[str, Any]) -> None:
    known = documented_failures()
    assert known <= set(cases)
    assert len(cases) - len(known) >= 1650
