"""The cache of lowered kernels: what is found again, and what is lowered anew."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import autotvm, knobs, relay
from tvm.codegen.llvm import parts
from tvm.contrib import graph_executor
from tvm.ir.instrument import PassTimingInstrument
from tvm.ir.op import Op
from tvm.relay.backend import kernels
from tvm.relay.backend.kernel_cache import find_kernel, is_usable
from tvm.relay.backend.kernels import KernelCompiler
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.target import Target

TARGET = Target("llvm")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with knobs.CACHE.scope(True), knobs.CACHE_DIR.scope(tmp_path):
        yield tmp_path


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As outside of tests, where nodes are not checked."""
    monkeypatch.setattr("tvm.relay.backend.kernel_cache.are_nodes_checked", lambda: False)


def function(units: int = 24, scale: float = 0.5) -> relay.Function:
    x = relay.var("x", shape=(8, 16))
    w = relay.var("w", shape=(units, 16))
    body = relay.nn.relu(relay.nn.dense(x, w) * relay.const(scale))
    func = relay.Function([x, w], body).with_attr("Primitive", 1)
    return relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"]


def lowered(func: relay.Function, target: Target = TARGET, name: str = "") -> LoweredKernel:
    return KernelCompiler(target, name).lower(func)


def test_an_equal_function_is_not_lowered_again(
    unchecked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lowered(function())
    monkeypatch.setattr(kernels, "lower_kernel", lambda *_: pytest.fail("it was lowered"))
    again = lowered(function())
    tvm.ir.assert_structural_equal(first.func, again.func)
    assert (first.choices, first.name) == (again.choices, again.name)


def test_other_functions_targets_names_and_options_are_lowered(unchecked: None) -> None:
    first = lowered(function())
    others = [(function(25), TARGET), (function(scale=0.25), TARGET)]
    others += [
        (function(), Target("llvm -mcpu=x86-64-v3")),
        (function(), Target("llvm -mattr=-fma")),
    ]
    for func, target in others:
        assert find_kernel(func, first.name, target) is None
    assert find_kernel(function(), "another_name", TARGET) is None
    with tvm.transform.PassContext(config={"tir.disable_vectorize": True}):
        assert find_kernel(function(), first.name, TARGET) is None
    with tvm.transform.PassContext(opt_level=1):
        assert find_kernel(function(), first.name, TARGET) is None
    assert find_kernel(function(), first.name, TARGET) is not None


def test_what_others_register_is_neither_kept_nor_taken(
    unchecked: None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lowered(function())
    relu = Op.get("nn.relu")
    own = relu.compute
    monkeypatch.setattr(relu, "compute", lambda *given: own(*given))
    assert find_kernel(function(), first.name, TARGET) is None
    lowered(function(26))
    assert len(list(folder.rglob("*.kernel"))) == 1


def test_a_damaged_file_is_lowered_anew(unchecked: None, folder: Path) -> None:
    first = lowered(function())
    (path,) = folder.rglob("*.kernel")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    tvm.ir.assert_structural_equal(first.func, lowered(function()).func)
    path.write_bytes(b"")
    tvm.ir.assert_structural_equal(first.func, lowered(function()).func)


def test_it_is_not_used_where_others_watch_or_choose(unchecked: None) -> None:
    assert is_usable()
    with knobs.CACHE.scope(False):
        assert not is_usable()
    with knobs.DUMP_IR.scope(Path("folder")):
        assert not is_usable()
    with tvm.transform.PassContext(instruments=[PassTimingInstrument()]):
        assert not is_usable()
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, lambda f, *_: f)]}):
        assert not is_usable()
    with autotvm.apply_history_best([]):
        assert not is_usable()
    with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 4}}):
        assert is_usable()


def test_tests_lower_every_kernel() -> None:
    assert not is_usable()


PROGRAM = """
import sys, tvm
from tvm import relay
from tvm.relay.backend import kernels
if sys.argv[1] == "again":
    kernels.lower_kernel = None  # a call would fail
x = relay.var("x", shape=(1, 8, 9, 9))
y = relay.nn.conv2d(x, relay.var("w", shape=(8, 8, 3, 3)), padding=(1, 1))
relay.build(tvm.IRModule.from_expr(relay.nn.relu(y)), "llvm")
"""


def test_another_process_finds_them(folder: Path) -> None:
    for seed, turn in (("1", "first"), ("2", "again")):
        environment = {**os.environ, "TVM_CACHE_DIR": str(folder), "PYTHONHASHSEED": seed}
        environment |= {"TVM_CACHE": "1"}
        command = [sys.executable, "-c", PROGRAM, turn]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert list(folder.rglob("*.kernel"))


# ---- the code of several kernels


def chain(lengths: int = 9) -> tvm.IRModule:
    """As many different kernels, which are compiled in parts."""
    x = relay.var("x", shape=(40,))
    body = x
    for units in range(lengths):
        body = relay.nn.pad(relay.tanh(body), ((0, 1),), float(units))
        body = relay.cumsum(body)  # fuses with nothing
    return tvm.IRModule.from_expr(relay.Function([x], body))


def run(lib: Any) -> np.ndarray:
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=np.linspace(-1, 1, 40, dtype="float32"))
    return module.get_output(0).numpy()


def test_known_kernels_are_not_written_again(
    unchecked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = relay.build(chain(), "llvm")
    with monkeypatch.context() as patched:
        patched.setattr(parts, "compile_unsplit", lambda *_: pytest.fail("it was written"))
        again = relay.build(chain(), "llvm")
        np.testing.assert_array_equal(run(again), run(first))
    texts = [lib.get_lib().get_source("unoptimized") for lib in (first, again)]
    assert texts[0] == texts[1]
    names = [lib.get_lib().get_function("get_func_names")() for lib in (first, again)]
    assert list(names[0]) == list(names[1])


def test_code_is_known_under_the_options_it_was_made_with(
    unchecked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay.build(chain(), "llvm")
    monkeypatch.setattr(parts, "compile_unsplit", lambda *_, **__: pytest.fail("it was written"))
    unsafe = tvm.transform.PassContext(config={"tir.disable_assert": True})
    with unsafe, pytest.raises(pytest.fail.Exception, match="written"):
        relay.build(chain(), "llvm")
    with pytest.raises(pytest.fail.Exception, match="written"):
        relay.build(chain(), "llvm -mattr=-fma")


def test_code_is_known_under_the_options_of_code_generation(
    unchecked: None, tmp_path: Path
) -> None:
    codes = []
    for config in ({}, {"tir.disable_assert": True}):
        compiler = relay.vm.VMCompiler()
        compiler.lower(chain(), "llvm")
        with tvm.transform.PassContext(config=config):
            compiler.codegen()
        compiler.get_exec().lib.save(str(tmp_path / "code.o"))
        codes.append((tmp_path / "code.o").read_bytes())
    assert len(codes[0]) > len(codes[1])  # which checks nothing


def test_code_that_went_is_compiled_again(unchecked: None, folder: Path) -> None:
    first = relay.build(chain(), "llvm")
    for path in folder.rglob("*.o"):
        path.unlink()
    np.testing.assert_array_equal(run(relay.build(chain(), "llvm")), run(first))
