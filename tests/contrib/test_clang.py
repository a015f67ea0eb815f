"""C code of the user as LLVM IR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_tool
from tvm import te, tir
from tvm.contrib import clang

TWICE = 'extern "C" float twice(float x) { return x * 2; }'


def doubled_by(pragma: str, code: str) -> None:
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: tir.call_pure_extern("float32", "twice", a[i]), name="b")
    schedule = te.create_schedule(b.op)
    schedule[b].pragma(b.op.axis[0], pragma, code)
    func = tvm.build(schedule, [a, b], "llvm")
    x = np.arange(8, dtype="float32")
    out = tvm.nd.array(np.zeros_like(x))
    func(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), x * 2)


@needs_tool("clang")
def test_code_becomes_ir_that_schedules_import() -> None:
    doubled_by("import_llvm", clang.create_llvm(TWICE))


@needs_tool("clang")
def test_schedules_import_c_code_for_target_llvm() -> None:
    doubled_by("import_c", "float twice(float x) { int class = 2; return x * class; }")


@needs_tool("clang")
def test_files_in_and_out(tmp_path: Path) -> None:
    source = tmp_path / "twice.cc"
    source.write_text(TWICE)
    text = clang.create_llvm([str(source)], output=str(tmp_path / "twice.ll"), options=["-O0"])
    assert "define" in text and text == (tmp_path / "twice.ll").read_text()
    bitcode = clang.create_llvm(TWICE, output=str(tmp_path / "twice.bc"))
    doubled_by("import_llvm", bitcode)


@needs_tool("clang")
def test_wrong_code_shows_what_clang_says() -> None:
    with pytest.raises(RuntimeError, match="unknown type name 'flaot'"):
        clang.create_llvm("flaot f() { return 1; }")
    with pytest.raises(ValueError, match="needs code or a file, got 'nowhere'"):
        clang.create_llvm("nowhere")
    with pytest.raises(ValueError, match="needs one file or text, got 2"):
        clang.create_llvm([TWICE, TWICE])


def test_missing_clang_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert clang.find_clang(required=False) == []
    with pytest.raises(RuntimeError, match="need clang: install clang"):
        clang.create_llvm(TWICE)
