"""A lowered model for the AOT executor: kernels and the function that calls them, in one library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tvm.codegen.model_metadata import ATTRIBUTE, ModelMetadata
from tvm.driver.build_module import runtime_attrs
from tvm.error import TVMError
from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.relay.backend.aot_function import AotFunction, aot_function
from tvm.relay.backend.c_interface import ModelInterface, c_interface_text, packed_interface_text
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.executor_factory import AOTExecutorFactoryModule, ExecutorMetadata
from tvm.relay.backend.function_info import MAIN, FunctionInfo, function_metadata
from tvm.relay.backend.kernels import build_kernels
from tvm.relay.backend.lowering import LoweredModel
from tvm.relay.backend.memory_plan import plan_memory
from tvm.relay.backend.pools import MemoryPools, PooledModel, assign_pool_offsets
from tvm.relay.backend.runtime import Runtime
from tvm.relay.backend.utils import CallType
from tvm.relay.progress import COMPILING, Progress
from tvm.runtime.csource import csource_module
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.tir import PrimFunc
from tvm.tir.analysis import calculate_workspace_bytes
from tvm.tir.usmp.transform import allocate_arguments
from tvm.tir.usmp.utils import INPUT, OUTPUT

KERNEL_ALIGNMENT = 64


@dataclass(frozen=True)
class AotOptions:
    """The executor's options, with their defaults."""

    interface_api: str = "packed"
    unpacked_api: bool = False
    link_params: bool = True
    workspace_alignment: int = 16
    constant_alignment: int = 16

    @staticmethod
    def of(executor: Executor) -> AotOptions:
        """The options that an executor was made with."""
        attrs: Mapping[str, Any] = executor.attrs
        return AotOptions(
            str(attrs.get("interface-api", "packed")),
            bool(attrs.get("unpacked-api", False)),
            bool(attrs.get("link-params", True)),
            int(attrs.get("workspace-byte-alignment", 16)),
            int(attrs.get("constant-byte-alignment", 16)),
        )

    @property
    def call_type(self) -> CallType:
        """How the model's function calls kernels."""
        return CallType.Unpacked if self.unpacked_api else CallType.CPacked

    @property
    def alignments(self) -> tuple[int, int]:
        """Of workspace and of constants in bytes: kernels rely on more than some ask for."""
        return (
            max(self.workspace_alignment, KERNEL_ALIGNMENT),
            max(self.constant_alignment, KERNEL_ALIGNMENT),
        )

    def check(self, runtime: Runtime) -> None:
        """Reject what does not go together."""
        if self.interface_api not in ("packed", "c"):
            raise TVMError(f'interface-api must be "packed" or "c", got {self.interface_api!r}')
        if runtime.name == "cpp" and (self.unpacked_api or self.interface_api != "packed"):
            raise TVMError(
                f"Need unpacked-api == false (got: {self.unpacked_api:d}) and interface-api == "
                f'"packed" (got: {self.interface_api}) when targeting c++ runtime',
                hint='Runtime("crt") is for programs in C',
            )
        if self.interface_api == "c" and not self.unpacked_api:
            raise TVMError(
                f'Either need interface_api == "packed" (got: {self.interface_api}) or unpacked-api '
                f"== true (got: {self.unpacked_api:d}) when targeting c runtime",
            )
        for alignment in (self.workspace_alignment, self.constant_alignment):
            if alignment <= 0 or alignment & (alignment - 1):
                raise TVMError(f"byte alignments must be powers of two, got {alignment}")


@dataclass(frozen=True)
class LoweredAot:
    """A model's function and its kernels before code generation."""

    pooled: PooledModel
    params: Mapping[str, NDArray]  # that are not constants of the code
    facts: dict[str, FunctionInfo]
    metadata: ExecutorMetadata


def build_aot(
    model: LoweredModel,
    executor: Executor,
    runtime: Runtime,
    pools: MemoryPools,
    step: Progress,
) -> AOTExecutorFactoryModule:
    """Write the model's function, and compile it with the kernels."""
    step("planning memory")
    lowered = lower_aot(model, executor, runtime, pools)
    metadata = lowered.metadata
    step(f"compiling {len(model.graph.kernels)} kernels", COMPILING)
    lib = compile_library(
        lowered.pooled.mod,
        metadata.model,
        metadata.interface,
        model,
        AotOptions.of(executor),
        runtime,
    )
    return AOTExecutorFactoryModule(
        model.mod,
        {model.target: lowered.pooled.mod},
        model.target,
        executor,
        runtime,
        lib,
        model.mod_name,
        lowered.params,
        lowered.facts,
        metadata,
        ["cpu"],
    )


def lower_aot(
    model: LoweredModel, executor: Executor, runtime: Runtime, pools: MemoryPools
) -> LoweredAot:
    """Write the model's function."""
    options = AotOptions.of(executor)
    _check_devices(model, options, pools)
    main = _main_function(model, pools, options, runtime)
    pooled = _pooled_model(model, main, runtime, pools, options)
    facts = _facts(model, main, pooled, options)
    interface = ModelInterface(
        model.mod_name,
        main.inputs,
        main.outputs,
        facts[MAIN].workspace_sizes[model.target],
        pooled.arguments(options.alignments[0]),
    )
    if pools.hold_arguments:
        facts[MAIN] = replace(facts[MAIN], io_sizes={model.target: 0})
        interface = _pooled_interface(interface, pooled)
    metadata = replace(
        main.metadata(model.mod_name),
        workspace_pools=pooled.workspace,
        constants=pooled.constants,
    )
    about = ExecutorMetadata(metadata, executor, interface, options.alignments)
    params = {} if options.link_params else model.graph.params
    return LoweredAot(pooled, params, facts, about)


def _main_function(
    model: LoweredModel, pools: MemoryPools, options: AotOptions, runtime: Runtime
) -> AotFunction:
    """The function that calls the kernels."""
    # in pools, each tensor has an offset of its own
    plan = None if pools.are_used else plan_memory(model.graph.graph)
    # programs in C have no registry of functions: those of external compilers are linked
    looked_up = model.external.values() if runtime.name == "cpp" else ()
    external = frozenset([str(f.attrs["global_symbol"]) for f in looked_up])
    return aot_function(
        model.graph, plan, model.mod_name, options.call_type, external, options.link_params,
        model.target.get_target_device_type(),
    )  # fmt: skip


def _pooled_model(
    model: LoweredModel,
    main: AotFunction,
    runtime: Runtime,
    pools: MemoryPools,
    options: AotOptions,
) -> PooledModel:
    """All functions of the model; their memory in pools, if there are any."""
    func = _without_arguments(main, options) if pools.hold_arguments else main.func
    functions = {**dict(model.kernels.functions_items()), GlobalVar(main.name): func}
    attrs = {**runtime_attrs(runtime), "unpacked_api": options.unpacked_api}
    lowered = IRModule(functions, attrs=attrs)
    if not pools.are_used:
        return PooledModel(lowered, (), (), {})
    return assign_pool_offsets(lowered, main.name, model.target, pools, options.alignments)


def _check_devices(model: LoweredModel, options: AotOptions, pools: MemoryPools) -> None:
    """Reject what models on several devices cannot have."""
    if not any([node.device for node in model.graph.graph.nodes]):
        return
    if options.unpacked_api or pools.are_used:
        found = "memory pools" if pools.are_used else "the unpacked interface"
        raise TVMError(
            f"a model for several devices requires calls with arrays and memory of each, got {found}",
            hint='Executor("aot") with Runtime("cpp") runs it',
        )


def _without_arguments(main: AotFunction, options: AotOptions) -> PrimFunc:
    """The model's function with its inputs and outputs among its allocations."""
    if options.interface_api != "c":
        raise TVMError(
            'tir.usmp.use_workspace_io is only compatible with interface-api "c", whose functions '
            f"tell where inputs and outputs are; got {options.interface_api!r}",
            hint='Executor("aot", {"interface-api": "c", "unpacked-api": True})',
        )
    inputs, outputs = [[t.name for t in tensors] for tensors in (main.inputs, main.outputs)]
    return allocate_arguments(main.func, inputs, outputs)


def _pooled_interface(interface: ModelInterface, pooled: PooledModel) -> ModelInterface:
    """The interface of a model whose inputs and outputs are in its pools."""
    inputs = pooled.offsets(INPUT, interface.inputs, interface.pools)
    outputs = pooled.offsets(OUTPUT, interface.outputs, interface.pools)
    return replace(interface, offsets=(inputs, outputs))


def _facts(
    model: LoweredModel, main: AotFunction, pooled: PooledModel, options: AotOptions
) -> dict[str, FunctionInfo]:
    intermediate = calculate_workspace_bytes(main.func, options.alignments[0])
    workspace = sum([pool.shape[0] for pool in pooled.workspace]) if pooled.pools else None
    return function_metadata(
        model, intermediate, options.alignments, pooled.mod[main.name], workspace
    )


def compile_library(
    lowered: IRModule,
    metadata: ModelMetadata,
    interface: ModelInterface,
    model: LoweredModel,
    options: AotOptions,
    runtime: Runtime,
) -> Module:
    """The model's function and its kernels as code; for programs in C, behind the function they call."""
    # the executor of libraries reads it; a program in C may have several models
    if runtime.name == "cpp":
        lowered = lowered.with_attr(ATTRIBUTE, metadata)
    lib = build_kernels(lowered, model.target, model.elsewhere)
    lib = model.link_external(lib, runtime, options.unpacked_api)
    if runtime.name == "cpp":
        return lib
    if options.interface_api == "c":
        text = c_interface_text(interface)
    else:
        text = packed_interface_text(interface, options.unpacked_api)
    entry = csource_module(text, "c", [interface.run])
    entry.import_module(lib)
    return entry
