"""`relay.build`: from a model to a library that runs.

optimise the graph -> fuse -> lower each distinct kernel -> compile all of them -> plan memory
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.error import TVMError, suggest
from tvm.ir.module import IRModule
from tvm.relay.backend.build_aot import AotOptions, build_aot
from tvm.relay.backend.build_graph import build_graph
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.executor_factory import (
    AOTExecutorFactoryModule,
    GraphExecutorFactoryModule,
)
from tvm.relay.backend.lowering import lower_model
from tvm.relay.backend.runtime import Runtime
from tvm.relay.expr import Constant, Var, const
from tvm.relay.function import Function
from tvm.relay.pipeline import optimization
from tvm.relay.progress import progress
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
    if executor.name == "aot":
        AotOptions.of(executor).check(runtime)
    if workspace_memory_pools is not None or constant_memory_pools is not None:
        raise NotImplementedError("relay.build has no memory pools yet")
    found = _host_target(target, target_host)
    mod = _as_module(ir_mod, params)
    with compiling(), progress() as step:
        model = lower_model(mod, found, mod_name, step)
        if executor.name == "aot":
            return build_aot(model, executor, runtime, step)
        return build_graph(model, executor, runtime, step)


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
