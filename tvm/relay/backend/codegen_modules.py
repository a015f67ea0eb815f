"""The code generators of graphs as modules, under the names of release 0.18.

codegen = tvm.get_global_func("relay.build_module._AOTExecutorCodegen")()
codegen["init"](None, [tvm.target.Target("llvm")])
codegen["codegen"](mod, mod["main"], "default")
codegen["get_irmodule"]()            # the kernels and the model's function, by target
"""

from __future__ import annotations

from typing import Any

from tvm._ffi.registry import register_func
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.relay.backend.build_aot import LoweredAot, lower_aot
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.executor_factory import ExecutorMetadata
from tvm.relay.backend.external import ExternalCode
from tvm.relay.backend.function_info import FunctionInfo
from tvm.relay.backend.graph import to_json
from tvm.relay.backend.lowering import LoweredModel, lower_fused
from tvm.relay.backend.memory_plan import plan_memory
from tvm.relay.backend.pools import MemoryPools
from tvm.relay.backend.runtime import Runtime
from tvm.relay.function import Function
from tvm.relay.progress import progress
from tvm.relay.transform import FuseOps, InferType
from tvm.runtime.frontend_module import FunctionModule
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.support.scope import compiling
from tvm.target import Target

_FUNCTIONS = (
    "init", "codegen", "list_params_name", "get_param_by_name", "get_irmodule", "get_graph_json",
    "get_external_modules", "get_devices", "get_function_metadata", "get_executor_codegen_metadata",
)  # fmt: skip


class _Codegen:
    """What both code generators answer."""

    def __init__(self) -> None:
        self.target: Target | None = None
        self.model: LoweredModel | None = None

    def init(self, _: Any, targets: Any) -> None:
        """Choose the machine; the first argument was never used."""
        found = Target.canon_multi_target(targets)
        if not found:
            raise TVMError("the code generator requires a target, got none")
        self.target = found[0]

    def codegen(self, mod: IRModule, func: Function, mod_name: str) -> None:
        """Lower a function, which is fused if it has calls of operators by themselves."""
        if self.target is None:
            raise TVMError("the code generator requires a target: call init first")
        module = mod.clone()
        module["main"] = func
        fused = InferType()(FuseOps()(InferType()(module)))
        with compiling(), progress() as step:
            self.model = lower_fused(fused, self.target, str(mod_name), step)

    @property
    def lowered(self) -> LoweredModel:
        if self.model is None:
            raise TVMError("nothing was lowered: call codegen first")
        return self.model

    def list_params_name(self) -> list[str]:
        """The names of the constants."""
        return list(self.lowered.graph.params)

    def get_param_by_name(self, name: str) -> NDArray:
        """A constant."""
        return self.lowered.graph.params[str(name)]

    def get_irmodule(self) -> dict[Target, IRModule]:
        """The kernels, by target."""
        return {self.lowered.target: self.lowered.kernels, **self.lowered.elsewhere}

    def get_external_modules(self) -> list[Module]:
        """What other compilers make of the functions that they are given."""
        return list(ExternalCode.of(self.lowered.mod, self.lowered.target).modules)


class _AotCodegen(_Codegen):
    """The executor and the runtime are the module's attributes, or the AOT executor in C++."""

    def __init__(self) -> None:
        super().__init__()
        self.aot: LoweredAot | None = None

    def codegen(self, mod: IRModule, func: Function, mod_name: str) -> None:
        super().codegen(mod, func, mod_name)
        executor = mod.get_attr("executor") or Executor("aot")
        runtime = mod.get_attr("runtime") or Runtime("cpp")
        self.aot = lower_aot(self.lowered, executor, runtime, MemoryPools())

    @property
    def planned(self) -> LoweredAot:
        """The model's function among its kernels."""
        if self.aot is None:
            raise TVMError("nothing was lowered: call codegen first")
        return self.aot

    def list_params_name(self) -> list[str]:
        return list(self.planned.params)

    def get_irmodule(self) -> dict[Target, IRModule]:
        return {**super().get_irmodule(), self.lowered.target: self.planned.pooled.mod}

    def get_devices(self) -> list[str]:
        """The names of the devices: the model's function runs on the processor."""
        return ["cpu"]

    def get_function_metadata(self) -> dict[str, FunctionInfo]:
        """What memory the functions need, by name."""
        return dict(self.planned.facts)

    def get_executor_codegen_metadata(self) -> ExecutorMetadata:
        """What the code around the model's function needs to know."""
        return self.planned.metadata


class GraphCodegen(_Codegen):
    """The graph executor's code generator."""

    def get_graph_json(self) -> str:
        """The graph, as the executor reads it."""
        graph = self.lowered.graph.graph
        device_type = self.lowered.target.get_target_device_type()
        return to_json(graph, plan_memory(graph).storage_ids, device_type)


@register_func("relay.build_module._AOTExecutorCodegen", override=True)
def aot_executor_codegen() -> Module:
    """The AOT executor's code generator, as a module of functions."""
    return _as_module("AOTExecutorCodegenModule", _AotCodegen())


@register_func("relay.build_module._GraphExecutorCodegen", override=True)
def graph_executor_codegen() -> Module:
    """The graph executor's code generator, as a module of functions."""
    return _as_module("GraphExecutorCodegenModule", GraphCodegen())


def _as_module(type_key: str, codegen: _Codegen) -> Module:
    module = FunctionModule(type_key)
    for name in dir(codegen):
        if name in _FUNCTIONS:
            module[name] = getattr(codegen, name)
    return module
