"""Programs compiled to files, loaded from them and run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule
from tvm.relay.backend import Executor
from tvm.runtime.executor import AotModule
from tvm.runtime.vm import Executable, VirtualMachine

EXECUTORS: dict[str, Callable[..., Any]] = {"graph": GraphModule, "aot": AotModule}


def saved_ways(
    mod: tvm.IRModule, args: list[np.ndarray], is_graph: bool, level: int
) -> list[tuple[str, Callable[[], Any]]]:
    """The ways to compile a program to files, with their names."""
    if not is_graph:
        return [("vm", partial(run_saved_machine, mod, args, level))]
    return [(kind, partial(run_saved, mod, args, kind, level)) for kind in EXECUTORS]


def run_saved(mod: tvm.IRModule, args: list[np.ndarray], kind: str, level: int) -> list[Any]:
    """The outputs of a library that was exported."""
    config = {"tir.usmp.enable": True, "tir.usmp.algorithm": ALGORITHMS[level % 3]}
    with tvm.transform.PassContext(opt_level=level, config=config if kind == "aot" else {}):
        lib = relay.build(mod, "llvm -opt-level=0", executor=Executor(kind))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "lib.so")
        lib.export_library(path)
        module = EXECUTORS[kind](tvm.runtime.load_module(path)["default"](tvm.cpu()))
        for param, value in zip(mod["main"].params, args, strict=True):
            module.set_input(param.name_hint, value)
        for _ in range(2):  # the second run finds memory as the first left it
            module.run()
        return [module.get_output(i).copyto(tvm.cpu()) for i in range(module.get_num_outputs())]


ALGORITHMS = ("greedy_by_size", "greedy_by_conflicts", "hill_climb")


def run_saved_machine(mod: tvm.IRModule, args: list[np.ndarray], level: int) -> Any:
    """The result of a machine's program and library that were saved."""
    with tvm.transform.PassContext(opt_level=level):
        code, lib = relay.vm.compile(mod, "llvm -opt-level=0").save()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "lib.so")
        lib.export_library(path)
        loaded = Executable.load_exec(bytes(code), tvm.runtime.load_module(path))
        return VirtualMachine(loaded, tvm.cpu()).run(*args)
