"""`relay.build`: from a model to a library that runs.

optimise the graph -> fuse -> lower each distinct kernel -> compile all of them -> plan memory
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.codegen import build_module
from tvm.driver import build_lowered
from tvm.driver.build_module import system_lib_attrs
from tvm.error import TVMError, suggest
from tvm.ir.module import IRModule
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.executor_factory import GraphExecutorFactoryModule
from tvm.relay.backend.external import compile_external, external_functions
from tvm.relay.backend.graph import to_json
from tvm.relay.backend.graph_codegen import GraphCodegen, LoweredGraph, kernel_order
from tvm.relay.backend.memory_plan import StoragePlan, plan_memory
from tvm.relay.backend.name_transforms import mangle_module_name
from tvm.relay.backend.runtime import Runtime
from tvm.relay.backend.te_compiler import TECompiler, check_operators
from tvm.relay.expr import Call, Constant, Var, const
from tvm.relay.function import Function, is_primitive
from tvm.relay.pipeline import fusion, optimization
from tvm.relay.progress import Progress, progress
from tvm.relay.traverse import bind
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.support.scope import compiling
from tvm.target import Target

Params = Mapping[str, Any]  # name -> NDArray or numpy array


def bind_params_by_name(func: Function, params: Params) -> Function:
    """`func` with parameters of the given names replaced by constants.

    Raises
    ------
    ValueError
        If two parameters have one name, or a value's shape or dtype does not fit.
    """
    by_name: dict[str, Var] = {}
    for param in func.params:
        if param.name_hint in by_name and param.name_hint in params:
            raise ValueError(f"two parameters of the function are called {param.name_hint!r}")
        by_name[param.name_hint] = param
    binds = {
        by_name[name]: _constant_for(by_name[name], value)
        for name, value in params.items()
        if name in by_name
    }
    result = bind(func, binds) if binds else func
    assert isinstance(result, Function)
    return result


def _constant_for(param: Var, value: Any) -> Constant:
    array = value if isinstance(value, NDArray) else nd.array(np.asarray(value))
    expected = param.type_annotation
    if expected is not None and not getattr(expected, "is_dynamic", True):
        found = (tuple(array.shape), str(array.dtype))
        wanted = (expected.concrete_shape, str(expected.dtype))
        if found != wanted:
            raise ValueError(
                f"parameter {param.name_hint} must be {wanted[1]} of shape {wanted[0]}, "
                f"got {found[1]} of shape {found[0]}"
            )
    return const(array)


def _as_module(mod: Any, params: Params | None) -> IRModule:
    """The module to compile, parameters bound in `main`."""
    if isinstance(mod, Function):
        mod = IRModule.from_expr(mod)
    if not isinstance(mod, IRModule):
        raise ValueError(f"relay.build requires an IRModule, got {type(mod).__name__}")
    if "main" not in mod:
        names = [g.name_hint for g in mod.get_global_vars()]
        raise TVMError(
            f'relay.build requires a function called "main", the module has {names}',
            hint=suggest("main", names),
        )
    if params:
        main = mod["main"]
        mod = mod.with_functions(
            {**mod.functions, mod.get_global_var("main"): bind_params_by_name(main, params)}
        )
    return mod


def _host_target(target: Any, target_host: Any) -> Target:
    targets = Target.canon_multi_target_and_host(
        Target.target_or_current(target) if target is None else target, target_host
    )
    if len(targets) != 1:
        raise TVMError(f"relay.build compiles for one target at a time, got {len(targets)}")
    return targets[0]


@dataclass
class Compiled:
    """All that came out of compiling one model."""

    mod: IRModule
    lowered: LoweredGraph
    plan: StoragePlan
    lib: Module
    graph_json: str
    kernels: IRModule


def optimize(
    mod: IRModule | Function, target: Any = None, params: Params | None = None
) -> tuple[IRModule, dict[str, NDArray]]:
    """Run the graph passes only.

    Returns
    -------
    mod : the optimised module; params : the constants left (they are inside the module).
    """
    found = _host_target(target, None)
    with compiling(), found:
        return optimization()(_as_module(mod, params)), {}


def _compile(
    mod: IRModule, target: Target, runtime: Runtime, mod_name: str, step: Progress
) -> Compiled:
    with target:
        step("optimizing the graph")
        mod = fusion()(optimization()(mod))
    main = mod["main"]
    check_operators([n.op for n in kernel_order(main.body) if _calls_kernel(n)])
    compiler = TECompiler(target, prefix=f"{mangle_module_name(mod_name)}_")
    external = external_functions(mod)
    codegen = GraphCodegen(step.counting("lowering kernels", compiler.lower), external)
    lowered = codegen.run(main)
    step("planning memory")
    plan = plan_memory(lowered.graph)
    kernels = compiler.module().with_attrs(system_lib_attrs(runtime))
    step(f"compiling {len(compiler.kernels)} kernels")
    # a model may only hand on its inputs; its library is then empty
    lib = (build_lowered if compiler.kernels else build_module)(kernels, target)
    for func in external.values():
        lib.import_module(compile_external(func))
    device_type = target.get_target_device_type()
    return Compiled(
        mod, lowered, plan, lib, to_json(lowered.graph, plan.storage_ids, device_type), kernels
    )


def _calls_kernel(node: Any) -> bool:
    return isinstance(node, Call) and is_primitive(node.op)


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
) -> GraphExecutorFactoryModule:
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
    _check_supported(executor, runtime, workspace_memory_pools, constant_memory_pools)
    found = _host_target(target, target_host)
    mod = _as_module(ir_mod, params)
    with compiling(), progress() as step:
        compiled = _compile(mod, found, runtime, mod_name, step)
    metadata = {kernel.name_hint: func for kernel, func in compiled.kernels.functions.items()}
    return GraphExecutorFactoryModule(
        compiled.mod,
        found,
        executor,
        compiled.graph_json,
        compiled.lib,
        mod_name,
        compiled.lowered.params,
        metadata,
    )


def _check_supported(executor: Executor, runtime: Runtime, workspace: Any, constants: Any) -> None:
    if executor.name != "graph":
        raise NotImplementedError(f'relay.build has no executor "{executor.name}" yet, use "graph"')
    if executor.flag("link-params"):
        raise NotImplementedError("relay.build cannot link parameters into the kernels yet")
    if runtime.name != "cpp":
        raise NotImplementedError(f'relay.build has no runtime "{runtime.name}" yet, use "cpp"')
    if workspace is not None or constants is not None:
        raise NotImplementedError("relay.build has no memory pools yet")


class BuildModule:
    """The classic object interface of `build`."""

    def __init__(self) -> None:
        self._factory: GraphExecutorFactoryModule | None = None

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
    ) -> tuple[str, Module, dict[str, NDArray]]:
        """Compile; the graph, the library and the constants."""
        self._factory = build(
            mod, target, target_host, executor, runtime, workspace_memory_pools,
            constant_memory_pools, params, mod_name or "default",
        )  # fmt: skip
        return self.get_graph_json(), self.get_module(), self.get_params()

    def optimize(
        self,
        mod: IRModule,
        target: Any = None,
        target_host: Any = None,
        params: Params | None = None,
    ) -> tuple[IRModule, dict[str, NDArray]]:
        """Run the graph passes only."""
        del target_host
        return optimize(mod, target, params)

    def _built(self) -> GraphExecutorFactoryModule:
        if self._factory is None:
            raise TVMError("nothing was built yet: call build first")
        return self._factory

    def get_graph_json(self) -> str:
        """The execution graph."""
        return self._built().graph_json

    def get_module(self) -> Module:
        """The compiled kernels."""
        return self._built().lib

    def get_params(self) -> dict[str, NDArray]:
        """The constants."""
        return self._built().params

    def get_function_metadata(self) -> dict[str, Any]:
        """The kernels' functions by name."""
        return self._built().function_metadata

    def get_devices(self) -> list[str]:
        """The devices that need drivers of their own."""
        return self._built().get_devices()

    def get_irmodule(self) -> IRModule:
        """The optimised, fused module."""
        return self._built().ir_mod
