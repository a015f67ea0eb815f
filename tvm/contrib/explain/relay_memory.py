"""The plan of memory of a model of relay, step by step: which tensors live when."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tvm.relay.backend.graph import Graph as ExecutionGraph
from tvm.relay.backend.graph import TensorRef
from tvm.relay.backend.lowering import LoweredModel
from tvm.relay.backend.memory_plan import plan_memory

from .graphs import weight_tensor
from .memory import memory_record
from .record import Graph, Life, Memory, Storage, Weight


def planned_memory(graph_json: str, model: LoweredModel, index: Sequence[int]) -> Memory:
    """What the graph JSON plans.

    Parameters
    ----------
    graph_json : str
        The graph, with the storage of each tensor.
    model : LoweredModel
        The model that it was made from.
    index : list of int
        The node of the built graph of each node of the execution graph, as `built_graph` gave it.
    """
    execution: ExecutionGraph = model.graph.graph
    ids = storage_ids(graph_json)
    params = model.graph.params
    storages = _storages(execution, ids, set(params))
    steps = _steps(execution)
    last = max(steps, default=0)
    spans = _spans(execution, steps, last)
    lives: list[Life] = []
    for ref, storage in zip(execution.entries(), ids, strict=True):
        if index[ref.node] < 0:
            continue
        first, end = spans[ref]
        lives.append(Life(index[ref.node], storage, execution.info(ref).nbytes, first, end))
    return memory_record(storages, lives, last)


def storage_ids(graph_json: str) -> list[int]:
    """The storage of each tensor, in the order of the graph's entries."""
    document: dict[str, Any] = json.loads(graph_json)
    return [int(number) for number in document["attrs"]["storage_id"][1]]


def _storages(execution: ExecutionGraph, ids: Sequence[int], params: set[str]) -> list[Storage]:
    storages = [Storage(size, "intermediate") for size in plan_memory(execution).sizes]
    heads = set(execution.heads)
    for ref, number in zip(execution.entries(), ids, strict=True):
        storage, node = storages[number], execution.nodes[ref.node]
        if node.is_input:
            storage.kind = "weight" if node.name in params else "input"
        elif ref in heads:
            storage.kind = "output"
    return storages


def _steps(execution: ExecutionGraph) -> list[int]:
    """The step of each node: calls are numbered in order, inputs are there from the first."""
    found: list[int] = []
    calls = 0
    for node in execution.nodes:
        found.append(0 if node.is_input else calls)
        calls += not node.is_input
    return found


def _spans(
    execution: ExecutionGraph, steps: Sequence[int], last: int
) -> dict[TensorRef, tuple[int, int]]:
    """The first and the last step of each tensor; results and inputs stay to the end."""
    spans = {ref: (steps[ref.node], steps[ref.node]) for ref in execution.entries()}
    for number, node in enumerate(execution.nodes):
        for ref in node.inputs:
            spans[ref] = spans[ref][0], max(spans[ref][1], steps[number])
    for ref in execution.entries():
        if execution.nodes[ref.node].is_input or ref in execution.heads:
            spans[ref] = spans[ref][0], last
    return spans


def model_weights(
    model: LoweredModel, imported: Graph, built: Graph, index: Sequence[int]
) -> list[Weight]:
    """The constants of the built model, the largest first."""
    execution: ExecutionGraph = model.graph.graph
    readers: dict[int, int] = {}
    for number, node in enumerate(execution.nodes):
        for ref in node.inputs:
            readers.setdefault(ref.node, number)
    found: list[Weight] = []
    for number, node in enumerate(execution.nodes):
        if not node.is_input or node.name not in model.graph.params:
            continue
        reader = index[readers[number]] if number in readers else -1
        origins = built.nodes[reader].others if reader >= 0 else []
        original = sum([w.bytes for o in origins for w in imported.nodes[o].weights])
        found.append(
            Weight(node.name, weight_tensor(model.graph.params[node.name]), reader, original)
        )
    return sorted(found, key=lambda weight: -weight.tensor.bytes)
