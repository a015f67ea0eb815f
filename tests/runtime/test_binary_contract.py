"""Exported libraries keep the contract with every runtime: names, context, embedded modules, calls.

A small C program stands for another runtime. It is compiled for two processors, and each library is
linked in two ways.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_tool
from tvm import relay, te
from tvm.contrib import cc
from tvm.elf.link import link_shared
from tvm.runtime import Module

LOADER = Path(__file__).parent / "cpp" / "loader.c"
CALLED_BY_CODE = {
    "__tvm_module_ctx", "__TVMFuncCall", "__TVMAPISetLastError", "__TVMBackendGetFuncFromEnv",
    "__TVMBackendAllocWorkspace", "__TVMBackendFreeWorkspace", "__TVMBackendParallelLaunch",
}  # fmt: skip
N = 1000  # too many for the stack
LINKERS = {"own": link_shared, "gcc": None}
AARCH64 = pytest.param(
    "aarch64", marks=needs_tool("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "qemu-aarch64")
)


class Machine:
    """Where a library runs: a target, a compiler, and the command that starts a program."""

    def __init__(self, name: str, folder: Path) -> None:
        cross = name != "host"
        tool = f"{name}-linux-gnu-" if cross else ""
        self.target = f"llvm -mtriple={name}-linux-gnu" if cross else "llvm"
        self.linker = f"{tool}g++"
        self.start = [f"qemu-{name}", "-L", f"/usr/{name}-linux-gnu"] if cross else []
        self.loader = folder / f"loader_{name}"
        command = [f"{tool}gcc", "-std=c11", "-O1", "-Wall", "-Werror", "-D_GNU_SOURCE"]
        subprocess.run([*command, str(LOADER), "-o", str(self.loader), "-ldl"], check=True)

    def load(self, library: Path, function: str, size: int) -> list[str]:
        """The lines that the loader prints."""
        command = [*self.start, self.loader, library, function, str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()


@pytest.fixture(scope="module", params=["host", AARCH64])
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(request.param, tmp_path_factory.mktemp("loader"))


@pytest.fixture(params=list(LINKERS))
def export(request: pytest.FixtureRequest, machine: Machine, tmp_path: Path) -> Callable[..., Path]:
    """Writes a module as a library, in one of the two ways."""
    link = LINKERS[request.param]

    def write(module: Module) -> Path:
        path = tmp_path / "lib.so"
        if link is None:
            module.export_library(path, cc=machine.linker)
        else:
            module.export_library(path, fcompile=link)
        return path

    return write


def everything_called(target: str) -> Module:
    """Code that needs all of its context: tasks, workspace, a packed call."""
    a = te.placeholder((N,), name="A")
    tens = te.extern(
        (N,), [a], lambda ins, outs: tvm.tir.call_packed("times_ten", ins[0], outs[0]), name="T"
    )
    root = te.compute((N,), lambda i: te.sqrt(tens[i]), name="R")
    out = te.compute((N,), lambda i: te.exp(-a[i]) + root[i], name="B")
    schedule = te.create_schedule(out.op)
    schedule[out].parallel(out.op.axis[0])
    return tvm.build(schedule, [a, out], target, name="work")


def facts(lines: list[str], title: str) -> list[str]:
    return [line[len(title) + 1 :] for line in lines if line.split(" ", 1)[0] == title]


@pytest.mark.parametrize("function", ["work", "-"])
def test_a_foreign_loader_runs_the_code(
    machine: Machine, export: Callable[..., Path], function: str
) -> None:
    lines = machine.load(export(everything_called(machine.target)), function, N)
    assert set(facts(lines, "slot")) == CALLED_BY_CODE
    values = np.array(facts(lines, "values")[0].split(), "float32")
    x = np.arange(N, dtype="float32")
    np.testing.assert_allclose(values, np.exp(-x) + np.sqrt(10 * x), rtol=1e-5)
    allocated, launched, called = facts(lines, "allocated")[0].split()[::2]
    assert int(allocated) >= 1 and (launched, called) == ("1", "1")
    assert facts(lines, "status") == ["0", "-1"]
    assert "float32" in facts(lines, "error")[0] and "float64" in facts(lines, "error")[0]


def test_a_foreign_loader_finds_the_model(machine: Machine, export: Callable[..., Path]) -> None:
    x = relay.var("x", shape=(6,), dtype="float32")
    w = relay.var("w", shape=(6,), dtype="float32")
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.exp(x) * w))
    params = {"w": np.arange(6, dtype="float32")}
    factory = relay.build(module, machine.target, params=params, mod_name="model")
    kernel = "tvmgen_model_fused_exp_multiply"
    # the loader has one input and one output
    unary = relay.build(
        tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))), machine.target, mod_name="model"
    )
    lines = machine.load(export(unary.module), "tvmgen_model_fused_exp", 6)
    values = np.array(facts(lines, "values")[0].split(), "float32")
    np.testing.assert_allclose(values, np.exp(np.arange(6, dtype="float32")), rtol=1e-5)

    library = export(factory.module)
    lines = machine.load(library, kernel, 6)
    assert facts(lines, "entries") == ["3"]
    assert facts(lines, "entry") == ["GraphExecutorFactory", "_lib", "_import_tree"]
    graph = json.loads(facts(lines, "graph")[0])
    assert set(graph) == {"nodes", "arg_nodes", "heads", "attrs", "node_row_ptr"}
    assert [node["attrs"]["func_name"] for node in graph["nodes"] if node["op"] == "tvm_op"] == [
        kernel
    ]
    (names,) = facts(lines, "params")
    assert names.split()[:2] == ["1", "1"]
    magic, checksum, form = facts(lines, "array")[0].split(" ", 2)
    assert magic == "DD5E40F096B4A13F" and int(checksum) != 0
    assert form == "device 1,0 type 2,32,1 shape 6 bytes 24"
    assert facts(lines, "model") == ["model"]
    assert facts(lines, "rows") == ["0 1 1"] and facts(lines, "children") == ["1"]
    assert facts(lines, "left") == ["24"]  # the checksum, which others leave alone


def names_of(library: Path, kind: str) -> set[str]:
    """Dynamic symbols that a library defines or wants, without their versions."""
    done = subprocess.run(
        ["nm", "-D", f"--{kind}-only", library], capture_output=True, text=True, check=True
    )
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}


@needs_tool("nm", "readelf")
def test_libraries_name_no_runtime(machine: Machine, export: Callable[..., Path]) -> None:
    library = export(everything_called(machine.target))
    assert names_of(library, "defined") >= CALLED_BY_CODE | {"__tvm_main__", "work"}
    wanted = names_of(library, "undefined")
    assert not [name for name in wanted if "TVM" in name or name.startswith("__tvm")]
    needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True)
    assert "tvm" not in needed.stdout.lower().replace("__tvm", "")


@AARCH64.marks[0]
def test_code_for_another_machine_says_so_when_called() -> None:
    module = everything_called("llvm -mtriple=aarch64-linux-gnu")
    assert module.implements_function("work") and not module.is_runnable
    with pytest.raises(
        tvm.TVMError,
        match=r"'work' cannot be called: it is for aarch64-.*linux-gnu, and this machine",
    ):
        module["work"](None, None)


def test_objects_for_another_machine_find_their_linker(tmp_path: Path) -> None:
    # the compiler of this machine cannot link them, our own linker can
    assert shutil.which("g++")
    everything_called("llvm -mtriple=aarch64-linux-gnu").export_library(tmp_path / "lib.so")
    with pytest.raises(tvm.TVMError, match=r"lib\.so: it is for AArch64, and this machine is"):
        tvm.runtime.load_module(tmp_path / "lib.so")
    with pytest.raises(RuntimeError, match="install aarch64-linux-gnu-gcc"):
        everything_called("llvm -mtriple=aarch64-linux-gnu").export_library(
            tmp_path / "lib.so", cc=cc.get_cc()
        )
