"""Modules saved in every form that LLVM has, and loaded again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.runtime import Module, load_module


def build(target: str = "llvm") -> Module:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: te.exp(a[i]), name="B")
    schedule = te.create_schedule(b.op)
    schedule[b].parallel(b.op.axis[0])
    return tvm.build(schedule, [a, b], target, name="f")


@pytest.mark.parametrize("suffix", ["ll", "bc"])
def test_llvm_files_are_compiled_when_they_are_loaded(suffix: str, tmp_path: Path) -> None:
    path = str(tmp_path / f"f.{suffix}")
    build().save(path)
    loaded = load_module(path)
    values, out = np.linspace(-1, 1, 100, dtype="float32"), tvm.nd.empty((100,))
    for function in (loaded, loaded["f"]):
        function(tvm.nd.array(values), out)
        np.testing.assert_allclose(out.numpy(), np.exp(values), rtol=1e-5)
    assert loaded.type_key == "llvm" and loaded.is_dso_exportable
    loaded.export_library(tmp_path / "lib.so")
    assert load_module(tmp_path / "lib.so").implements_function("f")
    with pytest.raises(TypeError, match="needs dtype float32, got int32"):
        loaded["f"](tvm.nd.array(values), tvm.nd.empty((100,), "int32"))


def test_saved_forms_are_what_their_names_say(tmp_path: Path) -> None:
    module = build()
    forms = {"o": b"\x7fELF", "ll": b"; ModuleID", "bc": b"BC", "s": b"\t.file"}
    for suffix, start in forms.items():
        module.save(str(tmp_path / f"f.{suffix}"))
        assert (tmp_path / f"f.{suffix}").read_bytes().startswith(start)
    module.save(str(tmp_path / "anything"), "asm")
    assert (tmp_path / "anything").read_bytes().startswith(forms["s"])
    with pytest.raises(tvm.TVMError, match="no format 'xyz'"):
        module.save(str(tmp_path / "f.xyz"))


@pytest.mark.parametrize("suffix", ["ll", "bc"])
def test_damaged_files_are_rejected(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"f.{suffix}"
    build().save(str(path))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(tvm.TVMError, match=rf"cannot load module .*f\.{suffix}: LLVM rejects it"):
        load_module(path)


def test_llvm_files_for_another_machine_are_named(tmp_path: Path) -> None:
    path = str(tmp_path / "f.ll")
    build("llvm -mtriple=riscv64-linux-gnu -mcpu=generic-rv64").save(path)
    with pytest.raises(tvm.TVMError, match="it is for riscv64-.*linux-gnu, and this machine is"):
        load_module(path)
