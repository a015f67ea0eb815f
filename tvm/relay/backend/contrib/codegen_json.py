"""A function as a JSON graph, for runtimes that interpret it.

    def @f(%x) { nn.relu(nn.dense(%x, meta[Constant][0])) }
->  {"nodes": [{"op": "input", "name": "x", ..}, {"op": "const", "name": "f_const_0", ..},
               {"op": "kernel", "name": "nn.dense", "inputs": [[0, 0, 0], [1, 0, 0]], ..},
               {"op": "kernel", "name": "nn.relu", "inputs": [[2, 0, 0]], ..}],
     "arg_nodes": [0, 1], "heads": [[3, 0, 0]], "node_row_ptr": [0, 1, 2, 3, 4]}

Attributes are lists that hold one list of strings: `"strides": [["1", "1"]]`. A compiler subclasses
:class:`JSONSerializer` to say what becomes of a composite function.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tvm.error import TVMError
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relay.backend.graph_codegen import tensor_info
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.function import Function
from tvm.relay.traverse import nodes_outside_functions
from tvm.relay.ty import flat_part, flat_types
from tvm.runtime.ndarray import NDArray
from tvm.tir import FloatImm, IntImm


class JSONGraphNodeEntry(NamedTuple):
    """One result of a node."""

    id: int
    index: int  # type: ignore[assignment]  # the format's name, which tuples have too
    version: int = 0


@dataclass
class JSONGraphNode:
    """One node; `kind` is `"input"`, `"const"` or `"kernel"`."""

    name: str
    kind: str
    inputs: list[JSONGraphNodeEntry] = field(default_factory=list)
    attrs: dict[str, list[str]] = field(default_factory=dict)
    num_outputs: int = 1

    def set_attr(self, key: str, value: Any) -> None:
        """Set an attribute; strings, numbers and sequences of them become strings."""
        self.attrs[key] = _strings(value)


class JSONGraph:
    """A graph that grows node by node, whatever language it is written from.

    Parameters
    ----------
    symbol : the function's name.
    """

    def __init__(self, symbol: str) -> None:
        self.symbol = symbol
        self.nodes: list[JSONGraphNode] = []
        self.constants: dict[str, NDArray] = {}
        self._types: list[list[tuple[tuple[int, ...], str]]] = []
        self._entries: dict[int, list[JSONGraphNodeEntry]] = {}
        self._heads: list[JSONGraphNodeEntry] = []

    @property
    def const_names(self) -> list[str]:
        """The names of the constants, in the order in which the runtime gets them."""
        return list(self.constants)

    def get_json(self) -> str:
        """The text."""
        row_ptr = [0]
        for node in self.nodes:
            row_ptr.append(row_ptr[-1] + node.num_outputs)
        graph = {
            "nodes": [self._node(i) for i in range(len(self.nodes))],
            "arg_nodes": [i for i, node in enumerate(self.nodes) if node.kind != "kernel"],
            "heads": self._heads,
            "node_row_ptr": row_ptr,
        }
        return json.dumps(graph, indent=1)

    def append(
        self, node: JSONGraphNode, types: Sequence[tuple[tuple[int, ...], str]]
    ) -> list[JSONGraphNodeEntry]:
        """Append a node whose results have those shapes and dtypes; its entries."""
        node.num_outputs = len(types)
        self.nodes.append(node)
        self._types.append(list(types))
        return [JSONGraphNodeEntry(len(self.nodes) - 1, i) for i in range(len(types))]

    @staticmethod
    def set_attrs(node: JSONGraphNode, attrs: Attrs | Mapping[str, Any] | None) -> None:
        """Copy an operator's attributes."""
        for key, value in attrs.items() if attrs is not None else ():
            node.set_attr(key, value)

    def _node(self, index: int) -> dict[str, Any]:
        node, types = self.nodes[index], self._types[index]
        attrs: dict[str, Any] = {
            "shape": [[list(shape) for shape, _ in types]],
            "dtype": [[dtype for _, dtype in types]],
            **{key: [values] for key, values in node.attrs.items()},
        }
        if node.kind != "kernel":
            if node.num_outputs != 1:  # a tuple
                attrs["num_outputs"] = str(node.num_outputs)
            return {"op": node.kind, "name": node.name, "attrs": attrs}
        attrs["num_inputs"] = str(len(node.inputs))
        attrs["num_outputs"] = str(node.num_outputs)
        return {"op": "kernel", "name": node.name, "inputs": node.inputs, "attrs": attrs}


class JSONSerializer(JSONGraph):
    """Writes one function.

    Parameters
    ----------
    symbol : the function's name, from which the names of its constants are made.
    func : a typed function.
    """

    def __init__(self, symbol: str, func: Function) -> None:
        super().__init__(symbol)
        self.func = func

    def serialize(self) -> JSONSerializer:
        """Visit the function; returns itself."""
        for param in self.func.params:
            node = JSONGraphNode(param.name_hint, "input")
            self._entries[id(param)] = self.add_node(node, param)
        for expr in nodes_outside_functions(self.func.body):
            if id(expr) not in self._entries and not isinstance(expr, (Op, Function)):
                self._entries[id(expr)] = self._visit(expr)
        self._heads = self._entries[id(self.func.body)]
        return self

    def add_node(self, node: JSONGraphNode, expr: RelayExpr) -> list[JSONGraphNodeEntry]:
        """Append a node whose results have the types of `expr`; its entries."""
        infos = [tensor_info(ty) for ty in flat_types(expr.checked_type)]
        return self.append(node, [(info.shape, str(info.dtype)) for info in infos])

    def add_constant(self, constant: Constant) -> list[JSONGraphNodeEntry]:
        """The node of a constant."""
        if id(constant) not in self._entries:
            name = f"{self.symbol}_const_{len(self.constants)}"
            self.constants[name] = constant.data
            self._entries[id(constant)] = self.add_node(JSONGraphNode(name, "const"), constant)
        return self._entries[id(constant)]

    def visit_call(self, call: Call, inputs: list[JSONGraphNodeEntry]) -> list[JSONGraphNodeEntry]:
        """The node of a call of an operator or a composite function."""
        node = JSONGraphNode(self.kernel_name(call), "kernel", inputs)
        if isinstance(call.op, Op):
            self.set_attrs(node, call.attrs)
        else:
            assert isinstance(call.op, Function)
            pattern = call.op.attrs.get("PartitionedFromPattern", "")
            node.set_attr("PartitionedFromPattern", pattern)
        return self.add_node(node, call)

    def kernel_name(self, call: Call) -> str:
        """The operator's name, or that of the composite function."""
        if isinstance(call.op, Op):
            return call.op.name
        composite = call.op.attrs.get("Composite") if isinstance(call.op, Function) else None
        if not composite:
            raise TVMError(
                f"a JSON graph calls operators and composite functions, got a call of {call.op}",
                at=call,
                hint="relay.transform.MergeComposite makes composite functions",
            )
        return str(composite)

    def _visit(self, expr: RelayExpr) -> list[JSONGraphNodeEntry]:
        if isinstance(expr, Constant):
            return self.add_constant(expr)
        if isinstance(expr, Tuple):
            return [entry for f in expr.fields for entry in self._entries[id(f)]]
        if isinstance(expr, TupleGetItem):
            part = flat_part(expr.tuple_value.checked_type, expr.index)
            return self._entries[id(expr.tuple_value)][part]
        if isinstance(expr, Call):
            return self.visit_call(expr, [e for a in expr.args for e in self._entries[id(a)]])
        what = f"the free variable {expr.name_hint}" if isinstance(expr, Var) else type(expr)
        raise TVMError(f"a JSON graph cannot contain {what}", at=expr)


def _strings(value: Any) -> list[str]:
    if isinstance(value, (bool, int)):
        return [str(int(value))]
    if isinstance(value, (IntImm, FloatImm)):
        return _strings(value.value)
    if isinstance(value, float):
        return [repr(value)]
    if isinstance(value, Sequence | Iterable) and not isinstance(value, str):
        return [text for item in value for text in _strings(item)]
    return ["" if value is None else str(value)]
