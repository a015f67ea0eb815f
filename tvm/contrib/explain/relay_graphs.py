"""A model of relay as it was imported, and the kernel calls that it became, as graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm.contrib.relay_viz.interface import attribute_lines
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.span import Span
from tvm.relay.backend.graph import NOP
from tvm.relay.backend.graph import Graph as ExecutionGraph
from tvm.relay.backend.kernels import operators_of
from tvm.relay.backend.lowered_kernel import LoweredKernel
from tvm.relay.backend.lowering import LoweredModel
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.expr_functor import ExprMutator
from tvm.relay.function import Function
from tvm.relay.traverse import nodes_outside_functions, operands
from tvm.relay.ty import flat_types
from tvm.tir.expr import IntImm

from .graphs import ORIGIN, lay_out, layouts_of, number_of, origin, tensor_record
from .record import Graph, Node, Tensor

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
        return Call(new.op, new.args, new.attrs, new.type_args, origin(number))


def marked(mod: IRModule) -> tuple[IRModule, list[str]]:
    """The module with numbered calls in `main`, and the name of each in the model that was imported."""
    marker = _Marker()
    main = marker.visit(mod["main"])
    copied = mod.clone()
    copied["main"] = main
    return copied, marker.names


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
    layout = next(iter(layouts_of(expr.attrs)), "")
    detail = "\n".join(attribute_lines(expr.attrs))[:_DETAIL]
    weights = [t for a in expr.args if isinstance(a, Constant) for t in _tensors(a)]
    return Node(str(kind), name, _tensors(expr), layout, detail, weights)


def _tensors(expr: RelayExpr) -> list[Tensor]:
    return [
        tensor_record([d.value if isinstance(d, IntImm) else -1 for d in ty.shape], str(ty.dtype))
        for ty in flat_types(expr.checked_type)
    ]


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
        outputs = [tensor_record(info.shape, str(info.dtype)) for info in source.outputs]
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
            tensor_record(info.shape, str(info.dtype))
            for ref, at in zip(source.inputs, inputs, strict=True)
            if at < 0
            for info in [execution.info(ref)]
        ]
        graph.edges += [(at, index[-1]) for at in dict.fromkeys(inputs) if at >= 0]
        graph.nodes.append(node)
    lay_out(graph)
    return graph, index


def _anchor_layout(kernel: LoweredKernel) -> str:
    """The layout of a kernel's result, as the last operator that has one says."""
    calls = [c for c in nodes_outside_functions(kernel.source.body) if isinstance(c, Call)]
    found = [layout for c in calls for layout in layouts_of(c.attrs)]
    return found[0] if found else ""


def _details(func: Function) -> str:
    calls = [c for c in nodes_outside_functions(func.body) if isinstance(c, Call)]
    parts = [
        "\n".join([c.op.name, *[f"  {line}" for line in attribute_lines(c.attrs)]])
        for c in calls
        if isinstance(c.op, Op)
    ]
    return "\n".join(parts)[:_DETAIL]
