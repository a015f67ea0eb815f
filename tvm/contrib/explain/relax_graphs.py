"""A model of relax as it was imported, and the calls that it became, as graphs.

Both are one function in normal form without control flow: a call a binding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm.contrib.relay_viz.interface import attribute_lines
from tvm.error import OpNotImplemented
from tvm.ir.expr import GlobalVar
from tvm.ir.op import Op
from tvm.relax.expr import (
    Binding,
    Call,
    Constant,
    ExternFunc,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.struct_info import TensorStructInfo, TupleStructInfo
from tvm.relax.transform.call_tir_rewrite import DESTINATION_PASSING
from tvm.relax.transform.static_plan_block_memory import VIEWS
from tvm.tir.expr import IntImm

from .graphs import lay_out, layouts_of, numbers_of, origin, tensor_record
from .record import Graph, Node, Tensor

_CALLS = {*DESTINATION_PASSING, "relax.call_pure_packed"}
_PACKED_VIEWS = {"vm.builtin.reshape"}
_DETAIL = 2000  # characters


def bindings_of(func: Function) -> Iterator[Binding]:
    """The bindings in order."""
    return (binding for block in func.body.blocks for binding in block.bindings)


def marked(func: Function) -> tuple[Function, list[str]]:
    """The function with numbered calls, and the name of each in the model that was imported."""
    names: list[str] = []

    def numbered(binding: Binding) -> Binding:
        if not isinstance(binding, VarBinding) or not isinstance(binding.value, Call):
            return binding
        names.append(binding.var.name_hint)
        return binding.replace(value=binding.value.replace(span=origin(len(names) - 1)))

    blocks = [
        block.replace(bindings=tuple([numbered(binding) for binding in block.bindings]))
        for block in func.body.blocks
    ]
    return func.replace(body=func.body.replace(blocks=tuple(blocks))), names


def check_is_straight(func: Function) -> None:
    """Raise OpNotImplemented unless all shapes are known and the function calls what is no relax."""
    body: Any = func.body
    values = [binding.value for binding in bindings_of(func)]
    for value in (*values, body.body):
        callee = value.op if isinstance(value, Call) else None
        is_call_of_relax = isinstance(callee, (GlobalVar, Var, Function))
        if isinstance(value, (If, Function, SeqExpr)) or is_call_of_relax:
            raise OpNotImplemented(
                "explain requires a function main without control flow and without calls of other "
                f"functions of relax, got {type(value).__name__}",
                at=value,
                hint="explain a function that has one path from its inputs to its results",
            )
    for var in (*func.params, *[binding.var for binding in bindings_of(func)]):
        if not _has_known_shape(var.struct_info):
            raise OpNotImplemented(
                f"explain requires known shapes, got {var.name_hint}: {var.struct_info}",
                hint="give symbolic dimensions values: relax.transform.BindSymbolicVars",
            )


def _has_known_shape(info: Any) -> bool:
    if isinstance(info, TupleStructInfo):
        return all([_has_known_shape(part) for part in info.fields])
    if not isinstance(info, TensorStructInfo):
        return True
    dims = info.dimensions
    return dims is not None and all([isinstance(dim, IntImm) for dim in dims])


@dataclass
class CallGraph:
    """The graph of a function, and what is known of its calls."""

    graph: Graph
    calls: dict[int, Call] = field(default_factory=dict)  # by node
    operands: dict[int, list[int]] = field(default_factory=dict)  # nodes, by node that reads
    constants: dict[int, list[Constant]] = field(default_factory=dict)  # by node that reads
    results: list[int] = field(default_factory=list)  # nodes
    places: dict[Var, list[int]] = field(default_factory=dict)  # the nodes of a variable's value


def call_graph(func: Function, name: str, node_of: Callable[[Call, Var], Node | None]) -> CallGraph:
    """The calls and the inputs of a function without control flow.

    Parameters
    ----------
    func : relax.Function
        The function.
    name : str
        What the graph is called.
    node_of : function
        What is known of a call that is bound to a variable; None if it is no node of its own.
    """
    found = CallGraph(Graph(name))
    for param in func.params:
        found.places[param] = [len(found.graph.nodes)]
        found.graph.nodes.append(Node("input", param.name_hint, tensors_of(param.struct_info)))
    for binding in bindings_of(func):
        value = binding.value
        node = node_of(value, binding.var) if _is_bound_call(binding) else None
        if node is not None:
            _add_call(value, node, found)
            found.places[binding.var] = [len(found.graph.nodes) - 1]
            continue
        parts = value.args if isinstance(value, Call) else [value]
        found.places[binding.var] = _nodes_in(parts, found)
    found.results = _nodes_in([func.body.body], found)
    lay_out(found.graph)
    return found


def _is_bound_call(binding: Binding) -> bool:
    return isinstance(binding.value, Call) and not isinstance(binding, MatchCast)


def _add_call(call: Call, node: Node, found: CallGraph) -> None:
    here = len(found.graph.nodes)
    operands = _nodes_in(call.args, found)
    found.calls[here], found.operands[here] = call, operands
    found.constants[here] = list(_constants_in(call.args))
    node.weights = [t for c in found.constants[here] for t in tensors_of(c.struct_info)]
    found.graph.nodes.append(node)
    found.graph.edges += [(start, here) for start in operands]


def _nodes_in(parts: Sequence[Any], found: CallGraph) -> list[int]:
    """The nodes that values come from."""
    nodes: list[int] = []
    for part in parts:
        if isinstance(part, Var):
            nodes += found.places.get(part, [])
        elif isinstance(part, Tuple):
            nodes += _nodes_in(part.fields, found)
        elif isinstance(part, TupleGetItem):
            nodes += _nodes_in([part.tuple_value], found)
    return list(dict.fromkeys(nodes))


def _constants_in(args: Sequence[Any]) -> Iterator[Constant]:
    for arg in args:
        if isinstance(arg, Constant):
            yield arg
        elif isinstance(arg, Tuple):
            yield from _constants_in(arg.fields)


def is_view(call: Call) -> bool:
    """Whether a call gives memory that it is given, in another shape."""
    return op_name(call) in VIEWS or callee_name(call) in _PACKED_VIEWS


def op_name(call: Call) -> str:
    """The name of the operator; empty where a function is called."""
    return call.op.name if isinstance(call.op, Op) else ""


def callee_name(call: Call) -> str:
    """The name of the loop program or packed function that runs; empty for operators."""
    callee = call.args[0] if op_name(call) in _CALLS else call.op
    if isinstance(callee, ExternFunc):
        return str(callee.global_symbol)
    return callee.name_hint if isinstance(callee, GlobalVar) else ""


def imported_node(call: Call, var: Var) -> Node:
    """What is known of a call of the model as it was imported."""
    kind = callee_name(call) or op_name(call).removeprefix("relax.")
    layout = next(iter(layouts_of(call.attrs)), "")
    detail = "\n".join(attribute_lines(call.attrs))[:_DETAIL]
    return Node(kind, var.name_hint, tensors_of(var.struct_info), layout, detail)


def tensors_of(info: Any) -> list[Tensor]:
    """The tensors of a value; shapes and numbers are none."""
    if isinstance(info, TupleStructInfo):
        return [tensor for part in info.fields for tensor in tensors_of(part)]
    if not isinstance(info, TensorStructInfo):
        return []
    dims: Any = info.dimensions
    return [tensor_record([int(dim) for dim in dims], str(info.dtype))]


def imported_graph(func: Function) -> tuple[CallGraph, dict[int, int]]:
    """The graph of a marked function, and the index of a call's node by the number that `marked` gave."""
    found = call_graph(func, "imported", imported_node)
    index = {n: node for node, call in found.calls.items() for n in numbers_of(call.span)}
    return found, index
