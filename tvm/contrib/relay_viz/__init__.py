"""Pictures of relay programs: in the terminal, as Graphviz text, as a page for the browser.

viz = relay_viz.RelayVisualizer(mod, relay_param=params, plotter=relay_viz.HtmlPlotter())
viz.render("model.html")
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.function import Function
from tvm.relay.traverse import post_order
from tvm.runtime.ndarray import NDArray

from .dot import DotGraph, DotPlotter, DotVizParser
from .html import HtmlPlotter
from .interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode, VizParser
from .terminal import TermPlotter, TermVizParser

__all__ = [
    "DefaultVizParser",
    "DotGraph",
    "DotPlotter",
    "DotVizParser",
    "HtmlPlotter",
    "Plotter",
    "RelayVisualizer",
    "TermPlotter",
    "TermVizParser",
    "VizEdge",
    "VizGraph",
    "VizNode",
    "VizParser",
]


class RelayVisualizer:
    """Draws the functions of a module.

    Parameters
    ----------
    relay_mod : the module; `main` is drawn first.
    relay_param : values of parameters by name, which are shown apart from inputs.
    plotter : what draws, in the terminal by default.
    parser : what says how an expression is shown.
    """

    def __init__(
        self,
        relay_mod: IRModule,
        relay_param: Mapping[str, NDArray] | None = None,
        plotter: Plotter | None = None,
        parser: VizParser | None = None,
    ) -> None:
        self._plotter = plotter if plotter is not None else TermPlotter()
        if parser is None:
            parser = (
                TermVizParser() if isinstance(self._plotter, TermPlotter) else DefaultVizParser()
            )
        self._parser = parser
        self._params = dict(relay_param or {})
        functions = {g: f for g, f in relay_mod.functions.items() if isinstance(f, Function)}
        for gvar, func in sorted(functions.items(), key=lambda item: item[0].name_hint != "main"):
            self._add(gvar.name_hint, func)

    def _add(self, name: str, func: Function) -> None:
        graph = self._plotter.create_graph(name)
        order = post_order(func)
        node_to_id: dict[RelayExpr, str] = {n: str(i) for i, n in enumerate(order)}
        for expr in order:
            node, edges = self._parser.get_node_edges(expr, self._params, node_to_id)
            if node is not None:
                graph.node(node)
            for edge in edges:
                graph.edge(edge)

    def render(self, filename: str | None = None) -> None:
        """Draw: to the file, or in the plotter's own way without one."""
        if filename is None:
            self._plotter.render()  # type: ignore[call-arg]
        else:
            self._plotter.render(filename=filename)
