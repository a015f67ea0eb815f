"""The execution graph: inputs and kernel calls in order, tensors as edges.

It is made from a fused main function; the memory planner numbers its storage, and `to_json`
writes the classic graph JSON that the executors read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from math import prod

from tvm._ffi.registry import get_global_func
from tvm.support.dtype import DType
from tvm.target.virtual_device import VirtualDevice


@dataclass(frozen=True, slots=True)
class TensorRef:
    """One output of one node."""

    node: int
    index: int = 0


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What is known of a tensor at compile time."""

    shape: tuple[int, ...]
    dtype: DType

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return bytes_of_elements(prod(self.shape), self.dtype)


def bytes_of_elements(count: int, dtype: DType) -> int:
    """Bytes of so many elements; booleans have one each, other ones below a byte are packed."""
    bits = 8 if dtype.bits == 1 else dtype.bits
    return (count * max(bits * dtype.lanes, 1) + 7) // 8


@dataclass(slots=True)
class GraphNode:
    """An input (`func` is None) or a kernel call."""

    name: str
    outputs: list[TensorInfo]
    func: str | None = None  # the kernel; NOP: the output is the input's storage
    inputs: list[TensorRef] = field(default_factory=list)
    attrs: dict[str, str] = field(default_factory=dict)
    device: VirtualDevice | None = None  # where its outputs are, if not with the main target

    @property
    def is_input(self) -> bool:
        return self.func is None


NOP = "__nop"
COPY = "__copy"  # from where its input is to where its output is


@dataclass(slots=True)
class Graph:
    """Nodes in order of execution, and the results."""

    nodes: list[GraphNode] = field(default_factory=list)
    heads: list[TensorRef] = field(default_factory=list)
    output_names: list[str] = field(default_factory=list)  # of the heads; empty if they have none

    def add(self, node: GraphNode) -> int:
        """Append a node; its index."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def entries(self) -> list[TensorRef]:
        """All tensors in the order of the JSON's attribute lists."""
        return [TensorRef(i, j) for i, n in enumerate(self.nodes) for j in range(len(n.outputs))]

    def device(self, ref: TensorRef) -> VirtualDevice | None:
        """Where a tensor is; None for where the main target's are."""
        return self.nodes[ref.node].device

    def info(self, ref: TensorRef) -> TensorInfo:
        """Shape and dtype of a tensor."""
        return self.nodes[ref.node].outputs[ref.index]


def to_json(graph: Graph, storage_ids: dict[TensorRef, int], device_type: int) -> str:
    """The classic graph JSON; `device_type` is the main target's."""
    entries = graph.entries()
    infos = [graph.info(ref) for ref in entries]
    row_ptr = [0]
    for node in graph.nodes:
        row_ptr.append(row_ptr[-1] + len(node.outputs))
    document = {
        "nodes": [_node_json(node) for node in graph.nodes],
        "arg_nodes": [i for i, node in enumerate(graph.nodes) if node.is_input],
        "heads": [_ref_json(ref) for ref in graph.heads],
        "attrs": {
            "dltype": ["list_str", [str(info.dtype) for info in infos]],
            "device_index": [
                "list_int",
                [_type_of(graph.device(ref), device_type) for ref in entries],
            ],
            "storage_id": ["list_int", [storage_ids[ref] for ref in entries]],
            "shape": ["list_shape", [list(info.shape) for info in infos]],
        },
        "node_row_ptr": row_ptr,
    }
    if graph.output_names:
        # the last member: classic runtimes stop reading here
        document["metadata"] = {"output_names": graph.output_names}
    return str(get_global_func("runtime.WithChecksum")(json.dumps(document, indent=2)))


def _type_of(device: VirtualDevice | None, main: int) -> int:
    return main if device is None else device.device_type_int


def _ref_json(ref: TensorRef) -> list[int]:
    return [ref.node, ref.index, 0]


def _node_json(node: GraphNode) -> dict[str, object]:
    if node.is_input:
        return {"op": "null", "name": node.name, "inputs": []}
    return {
        "op": "tvm_op",
        "name": node.name,
        "attrs": {
            "num_outputs": str(len(node.outputs)),
            "num_inputs": str(len(node.inputs)),
            "flatten_data": "0",
            "func_name": node.func,
            **node.attrs,
        },
        "inputs": [_ref_json(ref) for ref in node.inputs],
    }
