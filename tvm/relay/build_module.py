"""`relay.build`: from a model to a library that runs.

optimise the graph -> fuse -> lower each distinct kernel -> compile all of them -> plan memory
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tvm.error import TVMError, suggest
from tvm.ir.module import IRModule
from tvm.ir.type import FuncType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.backend.build_aot import AotOptions, build_aot
from tvm.relay.backend.build_graph import build_graph
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.executor_factory import (
    AOTExecutorFactoryModule,
    ExecutorMetadata,
    GraphExecutorFactoryModule,
)
from tvm.relay.backend.executors import Executor as Evaluator
from tvm.relay.backend.executors import as_array, nested
from tvm.relay.backend.interpreter import Interpreter
from tvm.relay.backend.lowering import lower_model
from tvm.relay.backend.machines import Machines
from tvm.relay.backend.pools import MemoryPools
from tvm.relay.backend.runtime import Runtime
from tvm.relay.backend.target_hooks import external_targets
from tvm.relay.backend.vm import VMExecutor
from tvm.relay.function import Function
from tvm.relay.pipeline import optimization
from tvm.relay.program import Params, as_module, bind_params_by_name
from tvm.relay.progress import progress
from tvm.relay.ty import flat_types
from tvm.runtime.device import cpu
from tvm.runtime.module import Module, load_module
from tvm.runtime.ndarray import NDArray
from tvm.support.deprecation import warn_renamed
from tvm.support.scope import compiling
from tvm.target import Target


def optimize(
    mod: IRModule | Function,
    target: Any = None,
    params: Params | None = None,
    target_host: Any = None,
) -> tuple[IRModule, dict[str, NDArray]]:
    """Run the graph passes only.

    Parameters
    ----------
    mod : IRModule or relay.Function
        The program.
    target : str, Target, dict or list
        As `build` takes it; the current target by default.
    params : dict of str to NDArray, optional
        Values of the parameters of `main`.
    target_host : str or Target, optional
        The machine of the host code.

    Returns
    -------
    tuple of IRModule and dict
        The optimised module, whose constants are inside; the dictionary is empty.
    """
    machines = Machines.of(target, target_host)
    with compiling(), machines.main:
        return optimization()(machines.copied(as_module(mod, params))), {}


def build(
    ir_mod: IRModule | Function,
    target: Any = None,
    target_host: Any = None,
    executor: Executor | None = None,
    runtime: Runtime | None = None,
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    params: Params | None = None,
    mod_name: str = "default",
) -> GraphExecutorFactoryModule | AOTExecutorFactoryModule:
    """Compile a model.

    Parameters
    ----------
    ir_mod : the module; its function `main` is compiled.
    target : the machine; by default the current target.
    target_host : the machine of the host code, if it is another one.
    executor : `Executor("graph")` by default.
    runtime : `Runtime("cpp")` by default.
    params : values of parameters of `main`, by name: NDArrays or numpy arrays.
    mod_name : part of the names of the kernels, and the name under which the library has the model.

    Returns
    -------
    A factory: `graph_executor.GraphModule(lib["default"](dev))` runs the model.
    """
    executor = executor or Executor("graph")
    runtime = runtime or Runtime("cpp")
    _check_kind(executor, Executor)
    _check_kind(runtime, Runtime)
    if executor.name == "aot":
        AotOptions.of(executor).check(runtime)
    pools = MemoryPools(workspace_memory_pools, constant_memory_pools)
    if executor.name != "aot" and (pools.workspace or pools.constants):
        raise TVMError(
            f"memory pools are for the AOT executor, got the executor {executor.name!r}",
            hint='executor=relay.backend.Executor("aot")',
        )
    machines = Machines.of(target, target_host)
    mod = as_module(ir_mod, params)
    with compiling(), external_targets(target), progress() as step:
        # the AOT executor's function holds the constants itself
        link = executor.name == "graph" and executor.flag("link-params")
        model = lower_model(mod, machines, mod_name, step, link, executor.name == "aot")
        if executor.name == "aot":
            return build_aot(model, executor, runtime, pools, step)
        return build_graph(model, executor, runtime, step)


def _build_module_no_factory(
    mod: IRModule | Function,
    target: Any = None,
    target_host: Any = None,
    params: Params | None = None,
    mod_name: str = "default",
) -> Any:
    """Compile a model; the factory's runtime module alone, which other processes can be sent."""
    return build(mod, target, target_host, params=params, mod_name=mod_name).module


class BuildModule:
    """The classic object interface of `build`: the steps one at a time, and what came out of them."""

    def __init__(self) -> None:
        self._factory: GraphExecutorFactoryModule | AOTExecutorFactoryModule | None = None
        self._optimized: tuple[IRModule, dict[str, NDArray]] | None = None

    def build(
        self,
        mod: IRModule,
        target: Any = None,
        target_host: Any = None,
        executor: Executor | None = None,
        runtime: Runtime | None = None,
        workspace_memory_pools: Any = None,
        constant_memory_pools: Any = None,
        params: Params | None = None,
        mod_name: str | None = None,
    ) -> tuple[str | None, Module, dict[str, NDArray]]:
        """Compile; the graph (None for the AOT executor), the library and the constants."""
        self._factory = build(
            mod, target, target_host, executor, runtime, workspace_memory_pools,
            constant_memory_pools, params, mod_name or "default",
        )  # fmt: skip
        return self._factory.get_executor_config(), self.get_module(), self.get_params()

    def optimize(
        self,
        mod: IRModule,
        target: Any = None,
        target_host: Any = None,
        params: Params | None = None,
    ) -> tuple[IRModule, dict[str, NDArray]]:
        """Run the graph passes only: the module, and the constants that it leaves outside."""
        self._optimized = optimize(mod, target, params, target_host)
        return self._optimized

    def _built(self) -> GraphExecutorFactoryModule | AOTExecutorFactoryModule:
        if self._factory is None:
            raise TVMError("nothing was built yet: call build first")
        return self._factory

    def get_graph_json(self) -> str:
        """The execution graph."""
        built = self._built()
        if not isinstance(built, GraphExecutorFactoryModule):
            raise TVMError(f"a model for the executor {built.executor.name!r} has no graph")
        return built.graph_json

    def get_module(self) -> Module:
        """The compiled kernels."""
        return self._built().lib

    def get_params(self) -> dict[str, NDArray]:
        """The constants that are outside of the code."""
        if self._factory is None and self._optimized is not None:
            return self._optimized[1]
        return self._built().params

    def get_function_metadata(self) -> dict[str, Any]:
        """A FunctionInfo for each kernel by name, and for the model as `__tvm_main__`."""
        return self._built().function_metadata

    def get_executor_codegen_metadata(self) -> ExecutorMetadata | None:
        """What the code around an AOT model's function knows; None for the graph executor."""
        return getattr(self._built(), "executor_codegen_metadata", None)

    def get_devices(self) -> list[str]:
        """The devices that need drivers of their own."""
        return self._built().get_devices()

    def get_irmodule(self) -> IRModule:
        """The optimised, fused module."""
        return self._built().ir_mod


class GraphExecutor(Evaluator):
    """Builds a function for the graph executor and calls it."""

    kind = "graph"

    def __init__(self, mod: IRModule, device: Any, target: Any) -> None:
        self.mod = mod
        self.device = device
        self.target = target

    def _make_executor(self, func: Function) -> Callable[..., Any]:
        mod = self.mod.with_functions(self.mod.functions).clone()
        mod["main"] = func
        func_type = infer_type_of(func, mod)
        assert isinstance(func_type, FuncType)
        ret_type = func_type.ret_type
        count = len(flat_types(ret_type))
        built = build(mod, self.target, executor=Executor(self.kind))
        module = _loaded(built)["default"](self.device)
        set_input, execute, output = module["set_input"], module["run"], module["get_output"]

        def run(*args: Any) -> Any:
            for index, arg in enumerate(args):
                set_input(index, as_array(arg))
            execute()
            return nested([output(i).copyto(self.device) for i in range(count)], ret_type)

        return run


def _loaded(built: GraphExecutorFactoryModule | AOTExecutorFactoryModule) -> Any:
    """A model that can be called: one in C is compiled first."""
    lib = built.get_lib()
    if all([part.type_key != "c" for part in (lib, *lib.imported_modules)]):
        return built
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.so")
        built.export_library(path)
        return load_module(path)


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
) -> Evaluator:
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
    if not isinstance(kind, str) or kind not in _KINDS:
        hint = suggest(str(kind), _KINDS)
        raise RuntimeError(
            f"create_executor has the kinds {', '.join(_KINDS)}, got {kind!r}; {hint}"
        )
    mod = mod if mod is not None else IRModule()
    if params is not None and "main" in mod:
        mod = mod.clone()
        mod["main"] = bind_params_by_name(mod["main"], params)
    target = Target(target)
    return _KINDS[kind](mod, device if device is not None else cpu(0), target)


def _check_kind(value: object, wanted: type[Executor | Runtime]) -> None:
    if not isinstance(value, wanted):
        name = wanted.__name__
        raise TypeError(
            f'build requires a relay.backend.{name} such as {name}("{next(iter(wanted.kinds))}"), '
            f"got {value!r}"
        )
