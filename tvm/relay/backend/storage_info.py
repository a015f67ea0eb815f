"""Which storage each expression of a fused function gets: `GraphPlanMemory`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relay.backend.graph_codegen import GraphCodegen
from tvm.relay.backend.kernels import kernel_name
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.backend.memory_plan import plan_memory
from tvm.relay.function import Function
from tvm.target import Target
from tvm.target.virtual_device import VirtualDevice
from tvm.tir import PrimFunc
from tvm.tir.stmt import NO_OP


@dataclass(frozen=True)
class StorageInfo:
    """The storage of each tensor of one value."""

    storage_ids: list[int]
    device_types: list[int]
    storage_sizes: list[int]  # in bytes
    virtual_devices: list[VirtualDevice]


@dataclass(frozen=True)
class StaticMemoryPlan:
    """The storage of all values of a function."""

    expr_to_storage_info: dict[RelayExpr, StorageInfo]


def plan_graph_memory(func: Function) -> StaticMemoryPlan:
    """The plan of a typed function of primitive functions: `FuseOps` makes one."""
    codegen = GraphCodegen(lambda kernel: LoweredKernel(kernel_name(kernel), _NOTHING, kernel))
    graph = codegen.run(func).graph
    plan = plan_memory(graph)
    held: dict[int, int] = {}  # the bytes of the largest tensor of each storage
    for ref, storage in plan.storage_ids.items():
        held[storage] = max(held.get(storage, 0), graph.info(ref).nbytes)
    main = VirtualDevice(target=Target.current() or Target("llvm"))

    def info(refs: Any) -> StorageInfo:
        devices = [graph.device(ref) or main for ref in refs]
        ids = [plan.storage_ids[ref] for ref in refs]
        kinds = [place.device_type_int for place in devices]
        return StorageInfo(ids, kinds, [held[i] for i in ids], devices)

    return StaticMemoryPlan({expr: info(refs) for expr, refs in codegen.placed()})


_NOTHING = PrimFunc([], NO_OP)
