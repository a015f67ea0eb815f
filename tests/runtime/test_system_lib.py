"""System libraries: functions and models that are linked into a program and register themselves."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.runtime.native_library import RUNTIME_OPTIONS
from tvm import relay, te
from tvm.contrib import cc, graph_executor
from tvm.elf.link import link_shared
from tvm.relay.backend import Runtime
from tvm.runtime import Module, system_lib


def build(prefix: str | None, added: int = 1, name: str = "add") -> Module:
    options = {"system-lib": True} | ({} if prefix is None else {"system-lib-prefix": prefix})
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + added, name="B")
    schedule = te.create_schedule(b.op)
    schedule[b].parallel(b.op.axis[0])
    return tvm.build(schedule, [a, b], "llvm", runtime=Runtime("cpp", options), name=name)


def load_into_process(module: Module, path: Path) -> None:
    module.export_library(path, options=RUNTIME_OPTIONS)
    ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)


def result_of(function: object) -> list[float]:
    out = tvm.nd.empty((4,))
    function(tvm.nd.array(np.zeros(4, "float32")), out)  # type: ignore[operator]
    return list(out.numpy())


def test_functions_register_themselves(tmp_path: Path) -> None:
    load_into_process(build(None, name="system_add"), tmp_path / "lib.so")
    library = system_lib()
    assert result_of(library["system_add"]) == [1] * 4
    assert library.type_key == "library" and not library.implements_function("system_subtract")


def test_modules_of_system_libraries_run_before_they_are_linked() -> None:
    module = build("early_")
    assert result_of(module["add"]) == [1] * 4
    assert result_of(module) == [1] * 4
    assert module.get_function("__tvm_is_system_module")()
    assert module.get_function("__tvm_get_system_lib_prefix")() == "early_"
    assert "llvm" in module.get_function("_get_target_string")()


def test_a_prefix_separates_libraries(tmp_path: Path) -> None:
    for added in (1, 2):
        load_into_process(build(f"by{added}_", added), tmp_path / f"lib{added}.so")
    for added in (1, 2):
        library = system_lib(f"by{added}_")
        assert result_of(library["add"]) == [added] * 4
        assert result_of(library[f"by{added}_add"]) == [added] * 4
        assert result_of(library) == [added] * 4, "the entry function has the prefix too"


def test_a_name_that_has_the_prefix_keeps_it(tmp_path: Path) -> None:
    load_into_process(build("kept_", name="kept_add"), tmp_path / "lib.so")
    assert result_of(system_lib("kept_")["kept_add"]) == [1] * 4
    assert result_of(system_lib("kept_")["add"]) == [1] * 4


def test_a_prefix_must_begin_a_name() -> None:
    with pytest.raises(tvm.TVMError, match=r"beginning of a C name, got 'no good'"):
        build("no good")


def test_linkers_that_need_system_libraries_say_so(tmp_path: Path) -> None:
    def link(*_args: object, **_options: object) -> None:
        pass

    link.need_system_lib = True  # type: ignore[attr-defined]
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i], name="B")
    plain = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    with pytest.raises(ValueError, match=r"link links system libraries: build with runtime="):
        plain.export_library(tmp_path / "lib.so", fcompile=link)
    build(None).export_library(tmp_path / "lib.so", fcompile=link)


def test_a_model_in_a_system_library(tmp_path: Path) -> None:
    x = relay.var("x", shape=(1, 8), dtype="float32")
    w = relay.var("w", shape=(4, 8), dtype="float32")
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    weight = np.arange(32, dtype="float32").reshape(4, 8)
    runtime = Runtime("cpp", {"system-lib": True, "system-lib-prefix": "dense_"})
    factory = relay.build(module, "llvm", runtime=runtime, params={"w": weight})
    load_into_process(factory.module, tmp_path / "model.so")
    executor = graph_executor.GraphModule(system_lib("dense_")["default"](tvm.cpu()))
    executor.run(x=np.ones((1, 8), "float32"))
    np.testing.assert_allclose(executor.get_output(0).numpy()[0], weight.sum(1))


def test_system_libraries_need_no_compiler(tmp_path: Path) -> None:
    build("linked_").export_library(
        tmp_path / "lib.so", fcompile=cc.cross_compiler(_link_without_compiler)
    )
    # the library looks for the runtime in the process
    runtime = ctypes.CDLL(tvm._ffi.libinfo.find_lib_path()[0], ctypes.RTLD_GLOBAL)
    assert runtime.TVMBackendRegisterSystemLibSymbol
    ctypes.CDLL(str(tmp_path / "lib.so"))
    assert result_of(system_lib("linked_")["add"]) == [1] * 4


def _link_without_compiler(output: str, objects: list[str], options: list[str]) -> None:
    assert options == []
    link_shared(output, objects)


class FunctionRegistry(ctypes.Structure):
    """As the classic runtime in C declares it."""

    _fields_ = (("names", ctypes.c_void_p), ("functions", ctypes.POINTER(ctypes.c_void_p)))


class RegistryModule(ctypes.Structure):
    """As the classic runtime in C declares it."""

    _fields_ = (("registry", ctypes.POINTER(FunctionRegistry)),)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_the_classic_runtime_in_c_finds_a_table_of_functions(target: str, tmp_path: Path) -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    runtime = Runtime("crt", {"system-lib": True})
    module = tvm.build(te.create_schedule(b.op), [a, b], target, runtime=runtime, name="inc")
    path = str(tmp_path / "lib.so")
    module.export_library(path)
    library = ctypes.CDLL(path)
    library.TVMSystemLibEntryPoint.restype = ctypes.POINTER(RegistryModule)
    registry = library.TVMSystemLibEntryPoint().contents.registry.contents
    names = ctypes.string_at(registry.names, 64).split(b"\0\0")[0]
    assert names[:2] == b"\x01\x00" and names[2:].split(b"\0")[0] == b"inc"
    assert registry.functions[0] == ctypes.cast(library.inc, ctypes.c_void_p).value
