"""How much memory the model's function and its kernels need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tvm.ir.function import BaseFunc
from tvm.relay.backend.graph_codegen import LoweredGraph
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.backend.lowering import LoweredModel
from tvm.relay.backend.memory_plan import StoragePlan
from tvm.runtime.container import Map
from tvm.target import Target
from tvm.tir import PrimFunc
from tvm.tir.analysis import calculate_constant_bytes, calculate_workspace_bytes
from tvm.tir.buffer import Buffer

MAIN = "__tvm_main__"
DEFAULT_ALIGNMENT = 16


@dataclass(frozen=True)
class FunctionInfo:
    """Bytes of memory by target, and the function in its two forms."""

    workspace_sizes: Mapping[Target, int]
    io_sizes: Mapping[Target, int]
    constant_sizes: Mapping[Target, int]
    tir_primfuncs: Mapping[Target, PrimFunc] = field(default_factory=dict)
    relay_primfuncs: Mapping[Target, BaseFunc] = field(default_factory=dict)


def function_metadata(
    model: LoweredModel,
    intermediate: int,
    alignments: tuple[int, int] = (DEFAULT_ALIGNMENT, DEFAULT_ALIGNMENT),
    main: PrimFunc | None = None,
    workspace: int | None = None,
) -> dict[str, FunctionInfo]:
    """Facts about each kernel by name, and about the whole model as ``__tvm_main__``.

    Parameters
    ----------
    intermediate : bytes of the tensors between kernels.
    alignments : of workspace and of constants, in bytes.
    main : the function of the whole model, if there is one.
    workspace : bytes of the pools in which all allocations have places, if they do.
    """
    target = model.target
    found = {
        kernel.name: kernel_info(kernel.func, _with_record(kernel), target, alignments)
        for kernel in model.graph.kernels
    }
    within = max([info.workspace_sizes[target] for info in found.values()], default=0)
    found[MAIN] = FunctionInfo(
        Map({target: intermediate + within if workspace is None else workspace}),
        Map({target: io_bytes(model.graph)}),
        Map({target: _weight_bytes(model.graph)}),
        Map() if main is None else Map({target: main}),
        Map({target: model.mod["main"]}),
    )
    return found


def _with_record(kernel: LoweredKernel) -> BaseFunc:
    """The kernel's source; with its schedule as an attribute, if that keeps a record of its steps."""
    if kernel.schedule is None or kernel.schedule.record is None:
        return kernel.source
    return kernel.source.with_attr("schedule", kernel.schedule)


def kernel_info(
    func: PrimFunc, source: BaseFunc, target: Target, alignments: tuple[int, int]
) -> FunctionInfo:
    """Facts about one kernel."""
    io = sum([_nbytes(buffer) for buffer in func.buffer_map.values()])
    return FunctionInfo(
        Map({target: calculate_workspace_bytes(func, alignments[0])}),
        Map({target: io}),
        Map({target: calculate_constant_bytes(func, alignments[1])}),
        Map({target: func}),
        Map({target: source}),
    )


def intermediate_bytes(lowered: LoweredGraph, plan: StoragePlan) -> int:
    """Bytes of the tensors that are neither inputs nor constants nor results."""
    graph = lowered.graph
    heads = {plan.storage_ids[ref] for ref in graph.heads}
    inputs = {plan.storage_ids[ref] for ref in graph.entries() if graph.nodes[ref.node].is_input}
    return sum([size for i, size in enumerate(plan.sizes) if i not in heads | inputs])


def io_bytes(lowered: LoweredGraph) -> int:
    """Bytes of inputs and results."""
    graph = lowered.graph
    inputs = [n for n in graph.nodes if n.is_input and n.name not in lowered.params]
    return sum([n.outputs[0].nbytes for n in inputs]) + sum(
        [graph.info(ref).nbytes for ref in graph.heads]
    )


def _weight_bytes(lowered: LoweredGraph) -> int:
    nodes = lowered.graph.nodes
    return sum([n.outputs[0].nbytes for n in nodes if n.is_input and n.name in lowered.params])


def _nbytes(buffer: Buffer) -> int:
    count = 1
    for extent in buffer.shape:
        count *= getattr(extent, "value", 0)
    return count * int(buffer.dtype.itemsize)
