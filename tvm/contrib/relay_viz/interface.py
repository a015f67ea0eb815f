"""What parsers give and plotters take: nodes and edges of graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from tvm.ir.adt import Constructor
from tvm.ir.attrs import Attrs
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.op import Op
from tvm.relay.adt import Match
from tvm.relay.analysis.infer import known_type
from tvm.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relay.function import Function
from tvm.relay.printer import type_text
from tvm.relay.traverse import operands
from tvm.runtime.ndarray import NDArray

UNKNOWN_TYPE = "unknown"
_NAMES = (Op, GlobalVar, Constructor)  # part of the calls that name them
Params = Mapping[str, NDArray]
Ids = Mapping[RelayExpr, str]


class VizNode:
    """One node: its identity in the graph, its kind, and text about it."""

    def __init__(self, node_id: str, node_type: str, node_detail: str) -> None:
        self._id = node_id
        self._type = node_type
        self._detail = node_detail

    @property
    def identity(self) -> str:
        """The name by which edges know the node."""
        return self._id

    @property
    def type_name(self) -> str:
        """The kind of the node, or the operator that it calls."""
        return self._type

    @property
    def detail(self) -> str:
        """Lines about the node."""
        return self._detail

    def __repr__(self) -> str:
        detail = self._detail.replace("\n", ", ")
        return f"VizNode(identity: {self._id}, type_name: {self._type}, detail: {detail}"


class VizEdge:
    """A value that one node uses of another."""

    def __init__(self, start_node: str, end_node: str) -> None:
        self._start_node = start_node
        self._end_node = end_node

    @property
    def start(self) -> str:
        """The node that makes the value."""
        return self._start_node

    @property
    def end(self) -> str:
        """The node that uses it."""
        return self._end_node


class VizParser(ABC):
    """Says how expressions are shown."""

    @abstractmethod
    def get_node_edges(
        self, node: RelayExpr, relay_param: Params, node_to_id: Ids
    ) -> tuple[VizNode | None, list[VizEdge]]:
        """The node for an expression, None to leave it out, and the edges that end at it.

        Parameters
        ----------
        node : the expression.
        relay_param : values of parameters by name.
        node_to_id : the identities of all expressions of the function.
        """


class VizGraph(ABC):
    """Collects what is to be drawn of one function."""

    @abstractmethod
    def node(self, viz_node: VizNode) -> None:
        """Add a node."""

    @abstractmethod
    def edge(self, viz_edge: VizEdge) -> None:
        """Add an edge."""


class Plotter(ABC):
    """Draws graphs."""

    @abstractmethod
    def create_graph(self, name: str) -> VizGraph:
        """A new graph for the function of that name."""

    @abstractmethod
    def render(self, filename: str) -> None:
        """Draw all graphs, to a file."""


class DefaultVizParser(VizParser):
    """Shows calls with their attributes and types, variables with theirs, constants small."""

    def get_node_edges(
        self, node: RelayExpr, relay_param: Params, node_to_id: Ids
    ) -> tuple[VizNode | None, list[VizEdge]]:
        """The node and its edges."""
        for kind in type(node).__mro__:
            if (show := _SHOW.get(kind)) is not None:
                name, detail, below = show(node, relay_param)
                edges = [
                    VizEdge(node_to_id[o], node_to_id[node])
                    for o in below
                    if not isinstance(o, _NAMES)
                ]
                return VizNode(node_to_id[node], name, detail), edges
        if isinstance(node, _NAMES):
            return None, []
        return VizNode(node_to_id[node], UNKNOWN_TYPE, f"don't know how to show {type(node)}"), []


def attribute_lines(attrs: Attrs | None) -> list[str]:
    """`name: value` of each attribute."""
    return [] if attrs is None else [f"{key}: {attrs[key]}" for key in attrs.keys()]  # noqa: SIM118


def _typed(node: RelayExpr, *lines: str) -> str:
    ty = known_type(node)
    return "\n".join([*lines, *([] if ty is None else [f"type: {type_text(ty)}"])])


def _var(node: Var, params: Params) -> tuple[str, str, tuple[RelayExpr, ...]]:
    kind = "Param" if node.name_hint in params else "Input"
    ty = f"type: {type_text(node.type_annotation)}" if node.type_annotation else "type: ?"
    return f"Var({kind})", f"name_hint: {node.name_hint}\n{ty}", ()


def _call(node: Call, _: Params) -> tuple[str, str, tuple[RelayExpr, ...]]:
    op = node.op
    if isinstance(op, Op):
        return op.name, _typed(node, *attribute_lines(node.attrs)), node.args
    if isinstance(op, GlobalVar):
        return f"Call @{op.name_hint}", _typed(node), node.args
    if isinstance(op, Constructor):
        return op.name_hint, _typed(node), node.args
    if isinstance(op, Function):
        name = op.attrs.get("Composite") or op.attrs.get("Name") or "fn"
        return f"Call {name}", _typed(node), (op, *node.args)
    return f"Call {getattr(op, 'name_hint', '')}".rstrip(), _typed(node), (op, *node.args)


def _function(node: Function, _: Params) -> tuple[str, str, tuple[RelayExpr, ...]]:
    lines = [f"{key}: {value}" for key, value in node.attrs.items()]
    return "Function", _typed(node, *lines), (node.body,)


def _constant(node: Constant, _: Params) -> tuple[str, str, tuple[RelayExpr, ...]]:
    text = f"shape: {tuple(node.data.shape)}\ndtype: {node.data.dtype}"
    if not node.data.shape:
        text += f"\nvalue: {node.data.numpy().item()}"
    return "Const", text, ()


def _item(node: TupleGetItem, _: Params) -> tuple[str, str, tuple[RelayExpr, ...]]:
    return "TupleGetItem", _typed(node, f"idx: {node.index}"), (node.tuple_value,)


def _plain(name: str) -> Callable[..., tuple[str, str, tuple[RelayExpr, ...]]]:
    return lambda node, _: (name, _typed(node), operands(node))


_SHOW: dict[type, Callable[..., tuple[str, str, tuple[RelayExpr, ...]]]] = {
    Var: _var,
    Call: _call,
    Function: _function,
    Constant: _constant,
    TupleGetItem: _item,
    Tuple: _plain("Tuple"),
    Let: _plain("Let"),
    If: _plain("If"),
    Match: _plain("Match"),
    RefCreate: _plain("RefCreate"),
    RefRead: _plain("RefRead"),
    RefWrite: _plain("RefWrite"),
}
