"""Graphs as one page for the browser, which needs nothing else: drawn in SVG, details on a click."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html import escape

from tvm.support.files import write_text

from .interface import Plotter, VizEdge, VizGraph, VizNode

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 150, 30, 16, 34


@dataclass
class HtmlGraph(VizGraph):
    """One function, laid out in layers: what a node uses stands above it."""

    name: str
    nodes: dict[str, VizNode] = field(default_factory=dict)
    edges: list[VizEdge] = field(default_factory=list)

    def node(self, viz_node: VizNode) -> None:
        self.nodes[viz_node.identity] = viz_node

    def edge(self, viz_edge: VizEdge) -> None:
        self.edges.append(viz_edge)

    def _layers(self) -> dict[str, int]:
        """One more than the layer of the lowest node used; nodes come after what they use."""
        below: dict[str, list[str]] = {}
        for edge in self.edges:
            below.setdefault(edge.end, []).append(edge.start)
        layer: dict[str, int] = {}
        for identity in self.nodes:
            used = [layer[b] for b in below.get(identity, []) if b in layer]
            layer[identity] = max(used, default=-1) + 1
        users: dict[str, list[str]] = {}
        for edge in self.edges:
            users.setdefault(edge.start, []).append(edge.end)
        for identity in reversed(list(self.nodes)):  # parameters stand just above their users
            if not below.get(identity) and identity in users:
                layer[identity] = min([layer[u] for u in users[identity] if u in layer]) - 1
        return layer

    def svg(self) -> str:
        """The drawing."""
        layer = self._layers()
        columns: dict[int, int] = {}
        place: dict[str, tuple[int, int]] = {}
        for identity in self.nodes:
            row = layer[identity]
            place[identity] = (columns.get(row, 0), row)
            columns[row] = columns.get(row, 0) + 1
        wide = max(columns.values(), default=1)

        def corner(identity: str) -> tuple[float, float]:
            column, row = place[identity]
            margin = (wide - columns[row]) / 2
            return (column + margin) * (_WIDTH + _GAP_X) + 8, row * (_HEIGHT + _GAP_Y) + 8

        parts = [
            self._edge(corner(e.start), corner(e.end))
            for e in self.edges
            if e.start in place and e.end in place
        ]
        parts += [self._node(node, corner(identity)) for identity, node in self.nodes.items()]
        width = wide * (_WIDTH + _GAP_X) + 16
        height = (max(columns, default=0) + 1) * (_HEIGHT + _GAP_Y) + 16
        return f'<svg width="{width}" height="{height}">{"".join(parts)}</svg>'

    def _edge(self, start: tuple[float, float], end: tuple[float, float]) -> str:
        x0, y0 = start[0] + _WIDTH / 2, start[1] + _HEIGHT
        x1, y1 = end[0] + _WIDTH / 2, end[1]
        middle = (y0 + y1) / 2
        return f'<path d="M{x0} {y0} C{x0} {middle} {x1} {middle} {x1} {y1}"/>'

    def _node(self, node: VizNode, corner: tuple[float, float]) -> str:
        x, y = corner
        kind = node.type_name.split("(")[0].lower()
        style = kind if kind in ("var", "const", "function") else "call"
        key = escape(json.dumps([self.name, node.identity]), quote=True)
        label = escape(node.type_name[:22])
        return (
            f'<g class="{style}" data-key="{key}"><rect x="{x}" y="{y}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" rx="6"/><text x="{x + _WIDTH / 2}" y="{y + 20}">{label}</text>'
            f"<title>{escape(node.detail)}</title></g>"
        )

    def details(self) -> dict[str, str]:
        """The text about each node, by its key."""
        return {
            json.dumps([self.name, i]): f"{n.type_name}\n{n.detail}" for i, n in self.nodes.items()
        }


class HtmlPlotter(Plotter):
    """Writes one page with all functions."""

    def __init__(self) -> None:
        self._graphs: list[HtmlGraph] = []

    def create_graph(self, name: str) -> HtmlGraph:
        self._graphs.append(HtmlGraph(name))
        return self._graphs[-1]

    def text(self) -> str:
        """The page."""
        sections = "".join([f"<h2>@{escape(g.name)}</h2>{g.svg()}" for g in self._graphs])
        details = {key: text for g in self._graphs for key, text in g.details().items()}
        data = json.dumps(details).replace("</", "<\\/")
        return _PAGE.replace("%SECTIONS%", sections).replace("%DETAILS%", data)

    def render(self, filename: str = "relay_viz.html") -> None:
        """Write the page."""
        write_text(filename, self.text())


_PAGE = """<!doctype html>
<html><head><meta charset="utf-8"><title>relay</title><style>
body { font: 13px sans-serif; margin: 0 0 0 12px; }
h2 { font-size: 15px; }
rect { stroke: #555; fill: #dbe9ff; } .var rect { fill: #fff3c4; } .const rect { fill: #eee; }
.function rect { fill: #d8f5d8; } g.hit rect { stroke: #d00; stroke-width: 3; }
text { text-anchor: middle; pointer-events: none; } path { fill: none; stroke: #999; }
g { cursor: pointer; }
#panel { position: fixed; right: 0; top: 0; width: 300px; height: 100%; padding: 10px;
  background: #fafafa; border-left: 1px solid #ccc; overflow: auto; box-sizing: border-box; }
#panel pre { white-space: pre-wrap; }
</style></head><body>
<div id="panel"><input id="find" placeholder="operator or name"><pre id="detail"></pre></div>
%SECTIONS%
<script>
const details = %DETAILS%;
const nodes = [...document.querySelectorAll("g[data-key]")];
for (const g of nodes) g.onclick = () => {
  nodes.forEach(n => n.classList.remove("hit"));
  g.classList.add("hit");
  document.getElementById("detail").textContent = details[g.dataset.key];
};
document.getElementById("find").oninput = event => {
  const word = event.target.value.toLowerCase();
  for (const g of nodes)
    g.classList.toggle("hit", word !== "" && details[g.dataset.key].toLowerCase().includes(word));
};
</script></body></html>
"""
