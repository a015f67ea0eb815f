"""What `relay.build` returns: a library, its graph, its constants, and how to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.codegen.model_metadata import ModelMetadata
from tvm.ir.module import IRModule
from tvm.ir.type import TensorType
from tvm.relay.backend.c_interface import ModelInterface
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.function_info import FunctionInfo
from tvm.relay.backend.runtime import Runtime
from tvm.runtime.container import Map
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.support.deprecation import warn_renamed
from tvm.target import Target


@dataclass(frozen=True)
class ExecutorMetadata:
    """What the code around a model's function needs to know."""

    model: ModelMetadata
    executor: Executor
    interface: ModelInterface
    alignments: tuple[int, int] = (16, 16)  # of workspace and of constants, in bytes

    @property
    def mod_name(self) -> str:
        return self.model.mod_name

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs."""
        return [tensor.name for tensor in self.model.inputs]

    @property
    def outputs(self) -> list[str]:
        """Names of the outputs."""
        return [tensor.name for tensor in self.model.outputs]

    @property
    def input_tensor_types(self) -> list[TensorType]:
        """Types of the inputs."""
        return [TensorType(tensor.shape, tensor.dtype) for tensor in self.model.inputs]

    @property
    def workspace_alignment(self) -> int:
        return self.alignments[0]

    @property
    def constant_alignment(self) -> int:
        return self.alignments[1]

    @property
    def devices(self) -> list[str]:
        """The devices that need drivers of their own."""
        return []

    @property
    def interface_api(self) -> str:
        return str(self.executor.attrs.get("interface-api", "packed"))

    @property
    def unpacked_api(self) -> bool:
        return self.executor.flag("unpacked-api")


class ExecutorFactoryModule:
    """The common part of what builds return for the executors."""

    def __init__(
        self, module: Module, ir_mod: IRModule, target: Target, executor: Executor,
        runtime: Runtime, libmod: Module, libmod_name: str, params: Mapping[str, NDArray],
        function_metadata: Mapping[str, FunctionInfo],
    ) -> None:  # fmt: skip
        self.module = module
        self.ir_mod = ir_mod
        self.target = target
        self.executor = executor
        self.runtime = runtime
        self.lib = libmod
        self.libmod_name = libmod_name
        self.params = dict(params)
        self.function_metadata = dict(function_metadata)

    def get_executor_config(self) -> Any:
        """What the executor is configured with."""
        raise NotImplementedError

    def get_devices(self) -> list[str]:
        """The devices that need drivers of their own."""
        return []

    def get_params(self) -> dict[str, NDArray]:
        """The constants by name, without those that the library contains."""
        return self.params

    def get_lib(self) -> Module:
        """The compiled kernels."""
        return self.lib

    def export_library(
        self,
        file_name: str,
        fcompile: Callable[..., Any] | None = None,
        addons: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Write a shared library with kernels, graph and constants."""
        return self.module.export_library(
            str(file_name), fcompile=fcompile, addons=list(addons or []), **kwargs
        )

    def __getitem__(self, item: str) -> Any:
        return self.module[item]


def _named(params: Mapping[str, NDArray]) -> list[Any]:
    """Names and values in turn."""
    return [part for item in params.items() for part in item]


class GraphExecutorFactoryModule(ExecutorFactoryModule):
    """A model for the graph executor.

    `lib["default"](tvm.cpu())` gives an executor; `graph, lib, params = ...` unpacks it as old
    programs do.
    """

    def __init__(
        self,
        ir_mod: IRModule,
        target: Target,
        executor: Executor,
        graph_json_str: str,
        libmod: Module,
        libmod_name: str,
        params: Mapping[str, NDArray],
        function_metadata: Mapping[str, FunctionInfo],
        runtime: Runtime | None = None,
    ) -> None:
        create = get_global_func("tvm.graph_executor_factory.create")
        module = create(graph_json_str, libmod, libmod_name, *_named(params))
        super().__init__(
            module, ir_mod, target, executor, runtime or Runtime("cpp"), libmod, libmod_name, params,
            function_metadata,
        )  # fmt: skip
        self.graph_json = graph_json_str

    def get_graph_json(self) -> str:
        """The execution graph."""
        return self.graph_json

    def get_executor_config(self) -> str:
        return self.graph_json

    def __iter__(self) -> Iterator[Any]:
        """The triple that ``graph, lib, params = relay.build(...)`` of older releases takes apart."""
        warn_renamed(
            "graph, lib, params = relay.build(...)", 'lib = relay.build(...); lib["default"](dev)'
        )
        return iter((self.graph_json, self.lib, self.params))


class AOTExecutorFactoryModule(ExecutorFactoryModule):
    """A model as one function that calls its kernels.

    `AotModule(lib["default"](tvm.cpu()))` runs it.
    """

    def __init__(
        self,
        ir_mod: IRModule,
        lowered_ir_mods: Mapping[Target, IRModule],
        target: Target,
        executor: Executor,
        runtime: Runtime,
        libmod: Module,
        libmod_name: str,
        params: Mapping[str, NDArray],
        function_metadata: Mapping[str, FunctionInfo],
        executor_codegen_metadata: ExecutorMetadata,
        devices: Sequence[str],
    ) -> None:
        create = get_global_func("tvm.aot_executor_factory.create")
        super().__init__(
            create(libmod, libmod_name, *_named(params)), ir_mod, target, executor, runtime, libmod,
            libmod_name, params, function_metadata,
        )  # fmt: skip
        self.lowered_ir_mods = Map(lowered_ir_mods)
        self.executor_codegen_metadata = executor_codegen_metadata
        self.devices = list(devices)

    def get_devices(self) -> list[str]:
        return self.devices

    def get_executor_config(self) -> None:
        """Nothing: the library has all that the executor needs."""
        return
