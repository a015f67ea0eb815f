"""A model with functions of other compilers, run in every way after it was exported and loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.runtime.executor import AotModule
from tvm.runtime.vm import Executable, VirtualMachine

AOT = relay.backend.Executor("aot")


def set_external(func: relay.Function, compiler: str, symbol: str) -> relay.Function:
    """The attributes that make a function one of another compiler."""
    func = func.with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    return func.with_attr("Compiler", compiler).with_attr("global_symbol", symbol)


def exported(lib: tvm.runtime.Module, folder: Path) -> tvm.runtime.Module:
    path = str(folder / f"{len(list(folder.iterdir()))}.so")
    lib.export_library(path, fcompile=False, options=["-O0", "-std=c++17"])
    return tvm.runtime.load_module(path)


def graph_result(mod: tvm.IRModule, inputs: Mapping[str, np.ndarray], folder: Path) -> np.ndarray:
    lib = exported(relay.build(mod, "llvm"), folder)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(**inputs)
    return module.get_output(0).numpy()


def aot_result(mod: tvm.IRModule, inputs: Mapping[str, np.ndarray], folder: Path) -> np.ndarray:
    lib = exported(relay.build(mod, "llvm", executor=AOT), folder)
    module = AotModule(lib["default"](tvm.cpu()))
    module.run(**inputs)
    return module.get_output(0).numpy()


def vm_result(mod: tvm.IRModule, inputs: Mapping[str, np.ndarray], folder: Path) -> np.ndarray:
    code, lib = relay.vm.compile(mod, "llvm").save()
    executable = Executable.load_exec(code, exported(lib, folder))
    return VirtualMachine(executable, tvm.cpu()).run(*inputs.values()).numpy()


RUNS = {"graph": graph_result, "aot": aot_result, "vm": vm_result}
