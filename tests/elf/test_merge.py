"""Objects merged into one: functions compute what they did in objects of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import knobs, relay
from tvm.codegen.llvm import parts
from tvm.codegen.llvm.loaded import symbols_of
from tvm.contrib import graph_executor
from tvm.elf.merge import merge_objects
from tvm.elf.read import read_object

LAYERS = 14


def chain() -> relay.backend.executor_factory.GraphExecutorFactoryModule:
    """Matrix products of different sizes, a kernel each: enough to be compiled in parts."""
    x = y = relay.var("x", shape=(1, 3))
    for i in range(LAYERS):
        weight = np.random.default_rng(i).normal(size=(4 + i, 3 + i)).astype("float32")
        y = relay.tanh(relay.nn.dense(y, relay.const(weight / 4)))
    with knobs.COMPILE_PROCESSES.scope(3):
        return relay.build(tvm.IRModule.from_expr(relay.Function([x], y)), "llvm")


built = pytest.fixture(scope="module")(chain)


def output_of(lib: tvm.runtime.Module) -> np.ndarray:
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=np.array([[0.5, -1.0, 2.0]], "float32"))
    return module.get_output(0).numpy()


def test_parts_compute_what_the_whole_does(
    built: tvm.runtime.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(built.function_metadata) > 2 * parts.FEWEST_FUNCTIONS
    monkeypatch.setattr(parts, "MOST_PARTS", 1)
    np.testing.assert_array_equal(output_of(chain()), output_of(built))


def test_a_library_of_parts_is_exported_and_loaded(
    built: tvm.runtime.Module, tmp_path: Path
) -> None:
    built.export_library(tmp_path / "model.so")
    np.testing.assert_array_equal(
        output_of(tvm.runtime.load_module(tmp_path / "model.so")), output_of(built)
    )


def test_the_source_has_all_parts(built: tvm.runtime.Module) -> None:
    library = built.get_lib()
    for form in ("ll", "asm", "unoptimized"):
        source = library.get_source(form)
        assert all([name in source for name in built.function_metadata if "fused" in name])


def test_merged_object_defines_what_its_parts_do(built: tvm.runtime.Module, tmp_path: Path) -> None:
    built.get_lib().save(str(tmp_path / "kernels.o"))
    code = (tmp_path / "kernels.o").read_bytes()
    again = merge_objects([code])
    for defined in (True, False):
        assert sorted(symbols_of(again, defined)) == sorted(symbols_of(code, defined))
    # a weak definition of several parts is one symbol
    names = [s.name for s in read_object(code, "kernels").symbols if not s.is_local]
    assert len(set(names)) == len(names)
