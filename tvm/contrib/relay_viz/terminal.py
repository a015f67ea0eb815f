"""Graphs as trees of text; a node that was shown before is named by its number."""

from __future__ import annotations

import sys

from tvm.support.files import write_text

from .interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode


class TermVizParser(DefaultVizParser):
    """Shows expressions as the default does."""


class TermGraph(VizGraph):
    """One function as a tree with its result on top."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: dict[str, VizNode] = {}
        self._below: dict[str, list[str]] = {}
        self._used: set[str] = set()

    def node(self, viz_node: VizNode) -> None:
        self._nodes[viz_node.identity] = viz_node

    def edge(self, viz_edge: VizEdge) -> None:
        self._below.setdefault(viz_edge.end, []).append(viz_edge.start)
        self._used.add(viz_edge.start)

    def render(self) -> str:
        """The tree's text."""
        lines = [f"@{self.name}"]
        roots = [i for i in self._nodes if i not in self._used]
        shown: set[str] = set()
        stack = [(identity, "", place == 0) for place, identity in enumerate(reversed(roots))]
        while stack:
            identity, margin, is_last = stack.pop()
            below = [b for b in self._below.get(identity, []) if b in self._nodes]
            lines.append(margin + ("`--" if is_last else "|--") + self._line(identity, shown))
            if identity in shown:
                continue
            shown.add(identity)
            inner = margin + ("   " if is_last else "|  ")
            stack.extend([(b, inner, place == 0) for place, b in enumerate(reversed(below))])
        return "\n".join(lines) + "\n"

    def _line(self, identity: str, shown: set[str]) -> str:
        node = self._nodes[identity]
        if identity in shown and self._below.get(identity):
            return f"(shown above) {node.type_name} #{identity}"
        detail = ", ".join([line for line in node.detail.split("\n") if line])
        return f"{node.type_name} #{identity}" + (f" ({detail})" if detail else "")


class TermPlotter(Plotter):
    """Prints to the terminal, or to a file."""

    def __init__(self) -> None:
        self._graphs: list[TermGraph] = []

    def create_graph(self, name: str) -> TermGraph:
        self._graphs.append(TermGraph(name))
        return self._graphs[-1]

    def render(self, filename: str | None = None) -> None:
        """Print all trees, to the file if one is named."""
        text = "\n".join([graph.render() for graph in self._graphs])
        if filename is None:
            sys.stdout.write(text)
        else:
            write_text(filename, text)
