"""The plugin for pytest, in a session of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tvm.testing

PROGRAM = """
import pytest
import tvm.testing

rows, columns = tvm.testing.parameters((1, 8), (16, 3), ids=["flat", "tall"])
dtype = tvm.testing.parameter("float32", "int8")

def test_sets_go_together(rows, columns):
    assert (rows, columns) in [(1, 8), (16, 3)]

def test_one_column_alone(rows, dtype):
    assert rows in (1, 16)

def test_targets(target, dev):
    assert target == "llvm" and dev.exist

@tvm.testing.exclude_targets("llvm")
def test_no_target(target):
    assert False

@tvm.testing.known_failing_targets("llvm")
def test_fails(target):
    assert False

@tvm.testing.skip_parameterizations("tall", reason="too tall")
@tvm.testing.xfail_parameterizations("flat", reason="too flat")
def test_cases(rows, columns):
    assert False

@tvm.testing.parametrize_targets("llvm")
def test_given(target, dev):
    assert target == "llvm"

@tvm.testing.parametrize_targets("cuda", "llvm")
def test_given_but_not_enabled(target, dev):
    assert target == "llvm"

@pytest.mark.parametrize("extent, target", [(4, "llvm")])
def test_given_beside_others(extent, target):
    assert extent == 4

@tvm.testing.fixture
def name_of_target(target):
    return f"for {target}"

@tvm.testing.parametrize_targets("llvm")
def test_given_to_a_fixture(name_of_target):
    assert name_of_target == "for llvm"

class TestInside:
    width, height = tvm.testing.parameters((1, 2), (3, 4))

    @tvm.testing.skip_if_32bit(reason="wide")
    def test_inside(self, width, height):
        assert height == width + 1
"""


def test_targets_and_sets_of_values(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tvm.testing.plugin"]\n')
    (tmp_path / "test_program.py").write_text(PROGRAM)
    run = [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider"]
    run += ["--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert "13 passed, 3 skipped, 2 xfailed" in done.stdout, done.stdout + done.stderr


def test_sets_of_different_lengths_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"sets of one length, got lengths \[1, 2\]"):
        tvm.testing.parameters((1,), (1, 2))


def test_truth_values() -> None:
    assert tvm.testing.strtobool("Yes") and not tvm.testing.strtobool("off")
    with pytest.raises(ValueError, match="got 'maybe'"):
        tvm.testing.strtobool("maybe")


KEPT = """
import tvm.testing

size = tvm.testing.parameter(2, 3)
calls = []

@tvm.testing.fixture(cache_return_value=True)
def zeros(size):
    calls.append(size)
    return [0] * size

@tvm.testing.fixture
def double():
    return lambda value: 2 * value

@tvm.testing.fixture(cache_return_value=True)
def doubled(size, double):
    return double(size)

def test_functions_are_arguments(doubled, size):
    assert doubled == 2 * size

class TestKept:
    @tvm.testing.fixture(cache_return_value=True)
    def ones(self, zeros):
        return [1 for _ in zeros]

    def test_first(self, ones, zeros, size):
        assert zeros == [0] * size and ones == [1] * size
        zeros.append(7)

    def test_second(self, ones, zeros, size):
        assert zeros == [0] * size and ones == [1] * size
        assert sorted(set(calls)) == sorted(calls)  # each size once
"""


def test_kept_results_depend_on_parameters_and_are_copied(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tvm.testing.plugin"]\n')
    (tmp_path / "test_program.py").write_text(KEPT)
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    run += ["--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert "6 passed" in done.stdout, done.stdout
