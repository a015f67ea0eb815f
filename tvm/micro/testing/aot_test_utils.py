"""The runner for models that are compiled ahead of time, and the options to try them with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.testing.aot import AOTTestRunner
from tvm.testing.parametrize import pytest_mark

AOT_DEFAULT_RUNNER = AOTTestRunner()
# for boards in simulators: what is compiled for them runs there alone, so `run_and_check` rejects them
AOT_CORSTONE300_RUNNER = AOTTestRunner(makefile="corstone300")
AOT_USMP_CORSTONE300_RUNNER = AOTTestRunner(
    makefile="corstone300", pass_config={"tir.usmp.enable": True}
)
AOT_APROFILE_AEM_RUNNER = AOTTestRunner(makefile="aprofile_aem")
# programs in C call models by structs with plain pointers inside, or by packed arguments
_OPTIONS = [("packed", False), ("packed", True), ("c", True)]


def parametrize_aot_options(test: Callable[..., Any]) -> Callable[..., Any]:
    """Run a test that takes ``interface_api``, ``use_unpacked_api`` and ``test_runner`` with each."""
    rows = [(*options, AOT_DEFAULT_RUNNER) for options in _OPTIONS]
    names = "interface_api,use_unpacked_api,test_runner"
    marked: Callable[..., Any] = pytest_mark("parametrize", names, rows)(test)
    return marked
