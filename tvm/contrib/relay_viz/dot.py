"""Graphs in Graphviz's language; `dot` draws them if it is installed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import which

from tvm.error import TVMError
from tvm.support.files import write_text

from .interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode

Attributes = Mapping[str, str]
_TEXT_SUFFIXES = ("", ".dot", ".gv")


class DotVizParser(DefaultVizParser):
    """Shows expressions as the default does (classic name)."""


class DotGraph(VizGraph):
    """One function as a cluster."""

    def __init__(
        self,
        name: str,
        graph_attr: Attributes | None = None,
        node_attr: Attributes | None = None,
        edge_attr: Attributes | None = None,
        get_node_attr: Callable[[VizNode], Attributes] | None = None,
    ) -> None:
        self.name = name
        self.graph_attr = dict(graph_attr or {})
        self.node_attr = {"shape": "box", "style": "rounded", **dict(node_attr or {})}
        self.edge_attr = dict(edge_attr or {})
        self.get_node_attr = get_node_attr or (lambda node: {})
        self.lines: list[str] = []

    def node(self, viz_node: VizNode) -> None:
        label = f"{viz_node.type_name}\n{viz_node.detail}".rstrip()
        attrs = {"label": label, **self.get_node_attr(viz_node)}
        self.lines.append(f"{_quoted(self._id(viz_node.identity))}{_attributes(attrs)};")

    def edge(self, viz_edge: VizEdge) -> None:
        start, end = self._id(viz_edge.start), self._id(viz_edge.end)
        self.lines.append(f"{_quoted(start)} -> {_quoted(end)};")

    def _id(self, identity: str) -> str:
        return f"{self.name}/{identity}"

    def text(self) -> list[str]:
        """The cluster's lines."""
        head = [f"subgraph {_quoted('cluster_' + self.name)} {{", f"  label={_quoted(self.name)};"]
        head += [f"  {key}={_quoted(value)};" for key, value in self.graph_attr.items()]
        head += [f"  node{_attributes(self.node_attr)};", f"  edge{_attributes(self.edge_attr)};"]
        return [*head, *["  " + line for line in self.lines], "}"]


class DotPlotter(Plotter):
    """Writes Graphviz text, or has `dot` draw it.

    Parameters
    ----------
    graph_attr, node_attr, edge_attr : attributes of every graph, node and edge.
    get_node_attr : from a node to its own attributes.
    """

    def __init__(
        self,
        graph_attr: Attributes | None = None,
        node_attr: Attributes | None = None,
        edge_attr: Attributes | None = None,
        get_node_attr: Callable[[VizNode], Attributes] | None = None,
    ) -> None:
        self._attrs = (graph_attr, node_attr, edge_attr, get_node_attr)
        self._graphs: list[DotGraph] = []

    def create_graph(self, name: str) -> DotGraph:
        self._graphs.append(DotGraph(name, *self._attrs))
        return self._graphs[-1]

    def text(self) -> str:
        """All graphs in Graphviz's language."""
        inner = ["  " + line for graph in self._graphs for line in graph.text()]
        return "\n".join(["digraph relay {", *inner, "}"]) + "\n"

    def render(self, filename: str = "relay_viz.dot") -> None:
        """Write the text (`.dot`, `.gv`), or a drawing in the suffix's format; without a suffix both.

        The drawing is a PDF then, and is left out where there is no program to draw it.
        """
        path = Path(filename)
        if path.suffix in _TEXT_SUFFIXES:
            write_text(path, self.text())
            if path.suffix or which("dot") is None:
                return
            path = path.with_suffix(".pdf")
        if (dot := which("dot")) is None:
            raise TVMError(
                f"DotPlotter requires the program `dot` to draw {path.name}",
                hint="install graphviz, or write the text: render('graph.dot')",
            )
        command = [dot, f"-T{path.suffix[1:]}", "-o", str(path)]
        done = subprocess.run(command, input=self.text(), capture_output=True, text=True)
        if done.returncode:
            raise TVMError(f"dot cannot draw {path.name}: {done.stderr.strip()}")


def _quoted(text: object) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _attributes(attrs: Attributes) -> str:
    return f" [{', '.join([f'{key}={_quoted(value)}' for key, value in attrs.items()])}]"
