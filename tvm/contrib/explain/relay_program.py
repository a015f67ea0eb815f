"""A model of relay, compiled for the graph executor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.contrib.debugger import debug_executor
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.pass_context import PassContext
from tvm.relay.backend.build_graph import build_graph
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.executor_factory import GraphExecutorFactoryModule
from tvm.relay.backend.graph import NOP, GraphNode
from tvm.relay.backend.kernels import operators_of
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.backend.lowering import LoweredModel, lower_model
from tvm.relay.backend.machines import Machines
from tvm.relay.backend.runtime import Runtime
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.op.registry import OpPattern
from tvm.relay.progress import Progress
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.traverse import post_order
from tvm.target import Target
from tvm.topi.choice import ranked

from .graphs import link, tensor_record
from .measure import random_arrays
from .program import KernelSource, Program
from .record import Graph, Memory, Weight
from .relay_graphs import built_graph, imported_graph, marked
from .relay_memory import model_weights, planned_memory


@dataclass(frozen=True)
class RelayProgram(Program):
    """What was lowered, and the library of it."""

    target: Target
    kernels: Sequence[KernelSource]
    imported: Graph
    built: Graph
    traffic: Mapping[int, int]
    model: LoweredModel
    factory: GraphExecutorFactoryModule
    index: Sequence[int]  # the node of `built` of each node of the execution graph

    def call_seconds(self, dev: Device, inputs: Mapping[str, Any], repeat: int) -> dict[int, float]:
        factory, nodes = self.factory, self.model.graph.graph.nodes
        module = debug_executor.create(factory.get_graph_json(), factory.lib, dev)
        unset = {
            node.name: tensor_record(node.outputs[0].shape, str(node.outputs[0].dtype))
            for node in nodes
            if node.is_input and node.name not in self.model.graph.params
        }
        for key, value in {**factory.get_params(), **random_arrays(unset), **inputs}.items():
            module.set_input(key, value)
        runs = [
            [call["Duration (us)"].value / 1e6 for call in module.profile().calls]  # type: ignore[union-attr]
            for _ in range(repeat)
        ]
        module.exit()
        calls = [self.index[i] for i, node in enumerate(nodes) if _is_call(node)]
        return dict(zip(calls, np.min(runs, axis=0).tolist(), strict=True))

    def memory(self) -> Memory:
        return planned_memory(self.factory.get_graph_json(), self.model, self.index)

    def weights(self) -> list[Weight]:
        return model_weights(self.model, self.imported, self.built, self.index)


def relay_program(mod: IRModule, target: Any, context: PassContext, step: Progress) -> RelayProgram:
    """Compile a model.

    Parameters
    ----------
    mod : IRModule
        The model, its parameters bound; its function `main`.
    target : str or Target
        The machine.
    context : PassContext
        The options of the passes to kernels, and who watches them.
    step : Progress
        What is told how far the build is.

    Raises
    ------
    NeedsVirtualMachine
        If shapes are open or the model has control flow.
    """
    source, names = marked(infer_types(mod))
    source = infer_types(source)
    with context, ranked():
        model = lower_model(source, Machines.of(target, None), "default", step)
    factory = build_graph(model, Executor("graph"), Runtime("cpp"), step)
    imported, numbers = imported_graph(source["main"], names)
    built, index = built_graph(model, numbers)
    link(imported, built)
    graph = model.graph.graph
    traffic: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):
        if _is_call(node):
            read = sum([graph.info(ref).nbytes for ref in node.inputs])
            traffic[index[number]] = read + sum([info.nbytes for info in node.outputs])
    kernels = [source_of(kernel) for kernel in model.graph.kernels]
    return RelayProgram(
        model.target, kernels, imported, built, traffic, model, factory, index
    )  # fmt: skip


def _is_call(node: GraphNode) -> bool:
    return not node.is_input and node.func != NOP


def source_of(kernel: LoweredKernel) -> KernelSource:
    """What is known of a kernel of the library."""
    operators = tuple([op.name for op in operators_of(kernel.source)])
    heaviest = _heaviest(kernel.source)
    return KernelSource(
        kernel.name, kernel.func, operators, heaviest, kernel.schedule, kernel.choices
    )


def _heaviest(func: Function) -> tuple[OpPattern, str]:
    """The operator of a kernel that fuses least, and its pattern."""
    ops = [n.op for n in post_order(func.body) if isinstance(n, Call) and isinstance(n.op, Op)]
    ranked = [(OpPattern.OPAQUE if op.fuse is None else OpPattern(op.fuse), op.name) for op in ops]
    return max(ranked, key=lambda row: row[0], default=(OpPattern.ELEMWISE, ""))
