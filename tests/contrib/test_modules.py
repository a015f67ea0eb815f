"""Modules of contrib are there without an import of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tvm


def test_modules_come_at_their_first_use() -> None:
    program = (
        "import sys, tvm; assert 'tvm.contrib.graph_executor' not in sys.modules; "
        "print(tvm.contrib.graph_executor.GraphModule.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "GraphModule", done.stderr


def test_other_names_are_rejected() -> None:
    with pytest.raises(AttributeError, match="'tvm.contrib' has no attribute 'grap_executor'"):
        _ = tvm.contrib.grap_executor
