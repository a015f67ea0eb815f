"""What `relay.build` returns: a library, its graph, its constants, and how to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.ir.module import IRModule
from tvm.relay.backend.executor import Executor
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.support.deprecation import warn_renamed
from tvm.target import Target


class ExecutorFactoryModule:
    """The common part of what builds return for the executors."""

    def get_executor_config(self) -> Any:
        """What the executor is configured with."""
        raise NotImplementedError

    def get_params(self) -> dict[str, NDArray]:
        """The constants by name."""
        raise NotImplementedError

    def get_lib(self) -> Module:
        """The compiled kernels."""
        raise NotImplementedError

    def __getitem__(self, item: str) -> Any:
        raise NotImplementedError


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
        function_metadata: Mapping[str, Any],
    ) -> None:
        create = get_global_func("tvm.graph_executor_factory.create")
        named = [part for item in params.items() for part in item]
        self.module: Module = create(graph_json_str, libmod, libmod_name, *named)
        self.ir_mod = ir_mod
        self.target = target
        self.executor = executor
        self.graph_json = graph_json_str
        self.lib = libmod
        self.libmod_name = libmod_name
        self.params = dict(params)
        self.function_metadata = dict(function_metadata)

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

    def get_devices(self) -> list[str]:
        """The devices that need drivers of their own."""
        return []

    def get_params(self) -> dict[str, NDArray]:
        return self.params

    def get_graph_json(self) -> str:
        """The execution graph."""
        return self.graph_json

    def get_executor_config(self) -> str:
        return self.graph_json

    def get_lib(self) -> Module:
        return self.lib

    def __getitem__(self, item: str) -> Any:
        return self.module[item]

    def __iter__(self) -> Iterator[Any]:
        """The triple that ``graph, lib, params = relay.build(...)`` of older releases takes apart."""
        warn_renamed(
            "graph, lib, params = relay.build(...)", 'lib = relay.build(...); lib["default"](dev)'
        )
        return iter((self.graph_json, self.lib, self.params))
