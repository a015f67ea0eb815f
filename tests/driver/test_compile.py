"""`tvm.compile`: the newer releases' name for building loop programs and relax."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import relax, relay, te
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

DATA = np.arange(4, dtype="float32")


@T.prim_func
def doubled(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")) -> None:
    for i in range(4):
        with T.block("b"):
            v = T.axis.spatial(4, i)
            b[v] = a[v] * T.float32(2)


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y


def result_of(function: object) -> np.ndarray:
    out = tvm.runtime.tensor(np.zeros_like(DATA))
    function(tvm.runtime.tensor(DATA), out)
    return out.numpy()


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_loop_programs_are_called_by_name_or_at_once(target: str, tmp_path: Path) -> None:
    executable = tvm.compile(tvm.IRModule({"doubled": doubled}), target)
    assert isinstance(executable, tvm.runtime.Executable)
    assert executable.jit() is executable.jit() and executable.jit(force_recompile=True)
    executable.export_library(tmp_path / "twice.so")
    loaded = tvm.runtime.load_module(tmp_path / "twice.so")
    for function in (executable["doubled"], loaded["doubled"], tvm.compile(doubled, target)):
        np.testing.assert_array_equal(result_of(function), DATA * 2)


def test_te_programs_are_functions_first() -> None:
    x = te.placeholder((4,), name="x")
    func = te.create_prim_func([x, te.compute((4,), lambda i: x[i] * 2.0)])
    passes = tvm.tir.transform.Simplify()
    found = result_of(tvm.compile(func, target="llvm", tir_pipeline=passes))
    np.testing.assert_array_equal(found, DATA * 2)


@pytest.mark.parametrize("pipeline", ["default", "default_build", relax.get_pipeline("zero")])
def test_models_in_relax_run_on_the_virtual_machine(pipeline: object) -> None:
    if not isinstance(pipeline, str):
        pipeline = tvm.transform.Sequential([pipeline, relax.get_pipeline("default_build")])
    executable = tvm.compile(Model, "llvm", relax_pipeline=pipeline)
    assert isinstance(executable, relax.VMExecutable)
    machine = relax.VirtualMachine(executable, tvm.cpu())
    np.testing.assert_array_equal(machine["main"](tvm.nd.array(DATA)).numpy(), DATA * 2)


def test_what_cannot_be_compiled_says_what_can() -> None:
    x = relay.var("x", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([x], x + x))
    with pytest.raises(TypeError, match="got Function: tvm.relay.build compiles relay"):
        tvm.compile(mod)
    with pytest.raises(TypeError, match="a PrimFunc or an IRModule, got str"):
        tvm.compile("main")
    with pytest.raises(ValueError, match="\"default\", a pass or None, got 'fast'"):
        tvm.compile(doubled, tir_pipeline="fast")
    with pytest.raises(ValueError, match="there is no pipeline 'fast'"):
        tvm.compile(Model, relax_pipeline="fast")


def test_names_of_newer_releases() -> None:
    """Their programs make arrays by `tvm.runtime`, and pipelines for a target."""
    executable = tvm.compile(Model, "llvm", relax_pipeline=relax.get_default_pipeline("llvm"))
    given = tvm.runtime.empty((4,), "float32").copyfrom(DATA)
    found = relax.VirtualMachine(executable, tvm.cpu())["main"](given)
    shared = tvm.runtime.from_dlpack(found.to_dlpack())
    np.testing.assert_array_equal(shared.numpy(), DATA + DATA)
    assert tvm.runtime.empty((2, 3), "int8").shape == (2, 3)
