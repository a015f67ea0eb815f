"""Run relay functions from Python without building by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm.error import suggest
from tvm.ir.module import IRModule
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.backend.debug_interpreter import Interpreter
from tvm.relay.backend.executor import Executor as BackendExecutor
from tvm.relay.backend.interpreter import Executor, as_array, nested
from tvm.relay.backend.te_compiler import flat_types
from tvm.relay.backend.vm import VMExecutor
from tvm.relay.build_module import bind_params_by_name, build
from tvm.relay.function import Function
from tvm.runtime.device import cpu
from tvm.support.deprecation import warn_renamed
from tvm.target import Target


class GraphExecutor(Executor):
    """Builds a function for the graph executor and calls it."""

    kind = "graph"

    def __init__(self, mod: IRModule, device: Any, target: Any) -> None:
        self.mod = mod
        self.device = device
        self.target = target

    def _make_executor(self, func: Function) -> Callable[..., Any]:
        mod = self.mod.with_functions(self.mod.functions).clone()
        mod["main"] = func
        ret_type = infer_type_of(func, mod).ret_type
        count = len(flat_types(ret_type))
        built = build(mod, self.target, executor=BackendExecutor(self.kind))
        module = built["default"](self.device)
        set_input, execute, output = module["set_input"], module["run"], module["get_output"]

        def run(*args: Any) -> Any:
            for index, arg in enumerate(args):
                set_input(index, as_array(arg))
            execute()
            return nested([output(i).copyto(self.device) for i in range(count)], ret_type)

        return run


class AotExecutor(GraphExecutor):
    """Builds a function for the AOT executor and calls it."""

    kind = "aot"


_KINDS = {"graph": GraphExecutor, "debug": Interpreter, "vm": VMExecutor, "aot": AotExecutor}


def create_executor(
    kind: str = "debug",
    mod: IRModule | None = None,
    device: Any = None,
    target: Any = "llvm",
    params: Mapping[str, Any] | None = None,
    ctx: Any = None,
) -> Executor:
    """An executor whose `evaluate` runs expressions.

    Parameters
    ----------
    kind : "graph" builds for the graph executor, "aot" one function for the whole model; "vm" compiles for the virtual machine, which
        runs control flow, recursion, data types and values of dynamic shape as well; "debug"
        interprets all of that.
    mod : the module with the functions that expressions may call.
    device, target : where to run.
    params : values of parameters of `main`.
    ctx : the name of `device` in older releases.
    """
    if ctx is not None:
        warn_renamed("create_executor(ctx=...)", "create_executor(device=...)")
        device = ctx
    if kind not in _KINDS:
        hint = suggest(kind, _KINDS)
        raise RuntimeError(
            f"create_executor has the kinds {', '.join(_KINDS)}, got {kind!r}; {hint}"
        )
    mod = mod if mod is not None else IRModule()
    if params is not None and "main" in mod:
        mod = mod.clone()
        mod["main"] = bind_params_by_name(mod["main"], params)
    target = Target(target)
    return _KINDS[kind](mod, device if device is not None else cpu(0), target)
