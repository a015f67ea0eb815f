"""A spread of the tests that the onnx package brings; all of them by ``onnx_node_tests``."""

from __future__ import annotations

import re
import unittest

import pytest
from onnx.backend.test import BackendTest

from tvm.contrib import onnx_backend

from .onnx_cases import KINDS, Case, load_cases
from .onnx_node_tests import DOCUMENT, PASSED, run_case

STEP = 10


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return load_cases(*KINDS)


def documented_failures() -> set[str]:
    return set(re.findall(r"^\| (test_\w+) \|", DOCUMENT.read_text(encoding="utf8"), re.MULTILINE))


def failures(cases: dict[str, Case], names: list[str]) -> dict[str, str]:
    results = {name: run_case(cases[name]) for name in names}
    return {name: reason for name, reason in results.items() if reason != PASSED}


def test_a_spread_of_the_tests_passes(cases: dict[str, Case]) -> None:
    known = documented_failures()
    names = [name for name, case in cases.items() if case.kind != "light" and name not in known]
    assert failures(cases, names[::STEP]) == {}


def test_light_models_agree(cases: dict[str, Case]) -> None:
    assert failures(cases, ["test_squeezenet", "test_shufflenet"]) == {}


def test_the_package_s_own_runner_takes_our_back_end(cases: dict[str, Case]) -> None:
    runner = BackendTest(onnx_backend, __name__)
    runner.include("^test_(relu|loop11|string_concat|single_relu_model)_cpu$")
    result = unittest.TestResult()
    runner.enable_report().test_suite.run(result)
    assert result.wasSuccessful(), result.failures + result.errors
    assert result.testsRun - len(result.skipped) == 4


def test_documented_failures_are_tests_of_onnx_and_few(cases: dict[str, Case]) -> None:
    known = documented_failures()
    nodes = {name for name, case in cases.items() if case.kind == "node"}
    assert known <= set(cases)
    assert len(nodes - known) >= 1650
