"""The graph of a model as it was imported, and that of the kernel calls that it became.

Every call of the imported model gets a place of its own for its span, `#12`. Passes carry spans along,
so that each kernel call still knows the calls that it was made from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tvm.contrib.relay_viz.interface import attribute_lines
from tvm.contrib.relay_viz.layered import layered_layout
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.span import SourceName, Span
from tvm.relay.backend.graph import NOP, TensorInfo
from tvm.relay.backend.graph import Graph as ExecutionGraph
from tvm.relay.backend.kernels import operators_of
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.backend.lowering import LoweredModel
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.expr_functor import ExprMutator
from tvm.relay.function import Function
from tvm.relay.traverse import nodes_outside_functions, operands
from tvm.relay.ty import flat_types
from tvm.runtime.ndarray import NDArray
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.expr import IntImm

from .record import Graph, Node, Tensor

_LAYOUTS = ("out_layout", "dst_layout", "data_layout", "layout")
ORIGIN = re.compile(r"#(\d+)")
_DETAIL = 2000  # characters


class _Marker(ExprMutator):
    """Gives every call a span of its own; keeps the names that spans had."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def visit_call(self, call: Call) -> Call:
        new = self._rewrite_operands(call)
        span = call.span
        number = len(self.names)
        self.names.append(span.source_name.name if isinstance(span, Span) else "")
        return Call(
            new.op, new.args, new.attrs, new.type_args, Span(SourceName(f"#{number}"), 0, 0, 0, 0)
        )


def marked(mod: IRModule) -> tuple[IRModule, list[str]]:
    """The module with numbered calls in `main`, and the name of each in the model that was imported."""
    marker = _Marker()
    main = marker.visit(mod["main"])
    copied = mod.clone()
    copied["main"] = main
    return copied, marker.names


def number_of(span: object) -> int | None:
    """The number that `marked` gave."""
    found = ORIGIN.fullmatch(span.source_name.name) if isinstance(span, Span) else None
    return int(found[1]) if found else None


def imported_graph(main: Function, names: Sequence[str]) -> tuple[Graph, dict[int, int]]:
    """The calls of a typed, marked function, and its inputs.

    Returns
    -------
    tuple of Graph and dict of int to int
        The graph, and the index of a call's node by the number that `marked` gave.
    """
    graph = Graph("imported")
    index: dict[int, int] = {}
    places: dict[int, list[int]] = {}  # id of an expression -> the nodes whose values it has
    for param in main.params:
        places[id(param)] = [len(graph.nodes)]
        graph.nodes.append(Node("input", param.name_hint, _tensors(param)))
    for expr in nodes_outside_functions(main.body):
        if id(expr) in places or isinstance(expr, (Op, Var, Constant, GlobalVar, Function)):
            continue
        below = [place for o in operands(expr) for place in places.get(id(o), [])]
        if isinstance(expr, (Tuple, TupleGetItem)):
            places[id(expr)] = list(dict.fromkeys(below))
            continue
        here = len(graph.nodes)
        places[id(expr)] = [here]
        if (number := number_of(expr.span)) is not None:
            index[number] = here
        graph.nodes.append(_operator(expr, names))
        graph.edges += [(start, here) for start in dict.fromkeys(below)]
    lay_out(graph)
    return graph, index


def _operator(expr: RelayExpr, names: Sequence[str]) -> Node:
    number = number_of(expr.span)
    name = names[number] if number is not None else ""
    if not isinstance(expr, Call):
        return Node(type(expr).__name__, name, _tensors(expr))
    op = expr.op
    kind = getattr(op, "name", None) or getattr(op, "name_hint", None) or "function"
    layout = next((str(expr.attrs[k]) for k in _LAYOUTS if _has(expr.attrs, k)), "")
    detail = "\n".join(attribute_lines(expr.attrs))[:_DETAIL]
    weights = [t for a in expr.args if isinstance(a, Constant) for t in _tensors(a)]
    return Node(str(kind), name, _tensors(expr), layout, detail, weights)


def _has(attrs: Any, key: str) -> bool:
    return attrs is not None and key in attrs.keys() and bool(str(attrs[key]))  # noqa: SIM118


def _tensors(expr: RelayExpr) -> list[Tensor]:
    return [
        _tensor([d.value if isinstance(d, IntImm) else -1 for d in ty.shape], str(ty.dtype))
        for ty in flat_types(expr.checked_type)
    ]


def _tensor(shape: Sequence[int], dtype: str) -> Tensor:
    info = TensorInfo(tuple([max(d, 0) for d in shape]), as_dtype(dtype))
    return Tensor(list(shape), dtype, info.nbytes)


def built_graph(model: LoweredModel, imported: Mapping[int, int]) -> tuple[Graph, list[int]]:
    """The kernel calls and the inputs of a lowered model.

    Parameters
    ----------
    model : LoweredModel
        The model.
    imported : dict of int to int
        The indices that `imported_graph` gave.

    Returns
    -------
    tuple of Graph and list of int
        The graph, and for each node of the execution graph the index of the node here; -1 for weights,
        and that of its input for what only gives it another shape.
    """
    execution: ExecutionGraph = model.graph.graph
    kernels = {kernel.name: i for i, kernel in enumerate(model.graph.kernels)}
    graph = Graph("built")
    index: list[int] = []
    for source in execution.nodes:
        if source.is_input and source.name in model.graph.params:
            index.append(-1)
            continue
        inputs = [index[ref.node] for ref in source.inputs]
        if source.func == NOP and inputs[0] >= 0:
            index.append(inputs[0])
            continue
        index.append(len(graph.nodes))
        outputs = [_tensor(info.shape, str(info.dtype)) for info in source.outputs]
        if source.is_input:
            graph.nodes.append(Node("input", source.name, outputs))
            continue
        node = Node(str(source.func), source.name, outputs)
        node.kernel = kernels.get(str(source.func), -1)
        if node.kernel >= 0:
            kernel = model.graph.kernels[node.kernel]
            node.op = " + ".join([op.name for op in operators_of(kernel.source)])
            node.layout, node.detail = _anchor_layout(kernel), _details(kernel.source)
        numbers = [int(n) for n in ORIGIN.findall(source.attrs.get("sources", ""))]
        node.others = [imported[n] for n in dict.fromkeys(numbers) if n in imported]
        node.weights = [
            _tensor(info.shape, str(info.dtype))
            for ref, at in zip(source.inputs, inputs, strict=True)
            if at < 0
            for info in [execution.info(ref)]
        ]
        graph.edges += [(at, index[-1]) for at in dict.fromkeys(inputs) if at >= 0]
        graph.nodes.append(node)
    lay_out(graph)
    return graph, index


def link(imported: Graph, built: Graph) -> None:
    """Let the imported nodes know the calls that serve them, and name calls after what they serve."""
    for number, node in enumerate(built.nodes):
        for other in node.others:
            imported.nodes[other].others.append(number)
        names = [imported.nodes[other].name for other in node.others]
        if any(names):
            node.name = ", ".join(dict.fromkeys([name for name in names if name]))
    varies = [node.op == "input" for node in imported.nodes]
    for start, end in imported.edges:  # in order: what a node uses stands before it
        varies[end] |= varies[start]
    for node, is_varying in zip(imported.nodes, varies, strict=True):
        node.is_folded = not is_varying and not node.others


def _anchor_layout(kernel: LoweredKernel) -> str:
    """The layout of a kernel's result, as the last operator that has one says."""
    calls = [c for c in nodes_outside_functions(kernel.source.body) if isinstance(c, Call)]
    found = [str(c.attrs[k]) for c in calls for k in _LAYOUTS if _has(c.attrs, k)]
    return found[0] if found else ""


def _details(func: Function) -> str:
    calls = [c for c in nodes_outside_functions(func.body) if isinstance(c, Call)]
    parts = [
        "\n".join([c.op.name, *[f"  {line}" for line in attribute_lines(c.attrs)]])
        for c in calls
        if isinstance(c.op, Op)
    ]
    return "\n".join(parts)[:_DETAIL]


def lay_out(graph: Graph) -> None:
    """Give the nodes their places, and the edges their bends."""
    layout = layered_layout(len(graph.nodes), graph.edges)
    for node, x, layer in zip(graph.nodes, layout.x, layout.layer, strict=True):
        node.x, node.y = round(x, 3), float(layer)
    graph.bends = [
        [round(value, 3) for bend in layout.bends.get(i, []) for value in bend]
        for i in range(len(graph.edges))
    ]


def weight_tensor(array: NDArray) -> Tensor:
    """What is known of a constant."""
    return _tensor([int(d) for d in array.shape], str(array.dtype))
