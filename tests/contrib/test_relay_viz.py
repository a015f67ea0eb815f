"""Pictures of relay programs."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_tool
from tvm import relay
from tvm.contrib import relay_viz
from tvm.contrib.relay_viz.interface import DefaultVizParser, VizEdge, VizNode


def network() -> tuple[tvm.IRModule, dict[str, Any]]:
    x, w = relay.var("x", shape=(1, 4)), relay.var("weight", shape=(3, 4))
    hidden = relay.nn.relu(relay.nn.dense(x, w))
    body = relay.Tuple([hidden + relay.const(1.0), hidden])
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], body)))
    return mod, {"weight": tvm.nd.array(np.zeros((3, 4), "float32"))}


def test_terminal_shows_each_node_once(capsys: pytest.CaptureFixture[str]) -> None:
    mod, params = network()
    relay_viz.RelayVisualizer(mod, params).render()
    text = capsys.readouterr().out
    assert text.startswith("@main\n`--Function")
    assert text.count("nn.dense #") == 1
    assert "(shown above) nn.relu" in text
    assert "Var(Param)" in text
    assert "Var(Input)" in text


def test_terminal_plotter_writes_a_file(tmp_path: Path) -> None:
    mod, params = network()
    relay_viz.RelayVisualizer(mod, params, relay_viz.TermPlotter()).render(str(tmp_path / "t.txt"))
    assert "nn.dense" in (tmp_path / "t.txt").read_text()


def test_dot_text_has_nodes_edges_and_their_attributes(tmp_path: Path) -> None:
    mod, params = network()

    def color(node: VizNode) -> dict[str, str]:
        return {
            "fillcolor": "green" if node.type_name == "nn.dense" else "white",
            "style": "filled",
        }

    plotter = relay_viz.DotPlotter(graph_attr={"color": "red"}, get_node_attr=color)
    relay_viz.RelayVisualizer(mod, params, plotter).render(str(tmp_path / "g.dot"))
    text = (tmp_path / "g.dot").read_text()
    assert 'subgraph "cluster_main"' in text
    assert 'color="red"' in text
    assert text.count('fillcolor="green"') == 1
    assert " -> " in text


@needs_tool("dot")
def test_dot_draws(tmp_path: Path) -> None:
    mod, params = network()
    plotter = relay_viz.DotPlotter()
    relay_viz.RelayVisualizer(mod, params, plotter).render(str(tmp_path / "g.svg"))
    assert "<svg" in (tmp_path / "g.svg").read_text()
    relay_viz.RelayVisualizer(mod, params, plotter).render(str(tmp_path / "hello"))
    assert "digraph" in (tmp_path / "hello").read_text()
    assert (tmp_path / "hello.pdf").read_bytes().startswith(b"%PDF")


def test_page_needs_nothing_else(tmp_path: Path) -> None:
    mod, params = network()
    plotter = relay_viz.HtmlPlotter()
    relay_viz.RelayVisualizer(mod, params, plotter).render(str(tmp_path / "g.html"))
    page = (tmp_path / "g.html").read_text()
    assert "http" not in page.replace("http-equiv", "")
    tags: list[str] = []

    class Counter(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            tags.append(tag)

    Counter().feed(page)
    nodes = [n for n in relay.analysis.post_order(mod["main"]) if not isinstance(n, tvm.ir.Op)]
    assert tags.count("rect") == len(nodes)
    assert tags.count("path") >= len(nodes) - 1


def test_parser_of_ones_own_decides_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    class Quiet(DefaultVizParser):
        def get_node_edges(self, node: Any, relay_param: Any, node_to_id: Any) -> Any:
            if isinstance(node, relay.Var):
                return None, []
            shown, edges = super().get_node_edges(node, relay_param, node_to_id)
            assert all(isinstance(e, VizEdge) for e in edges)
            return shown, edges

    mod, params = network()
    relay_viz.RelayVisualizer(mod, params, relay_viz.TermPlotter(), Quiet()).render()
    assert "Var" not in capsys.readouterr().out


def test_programs_with_control_flow_and_several_functions_are_drawn() -> None:
    mod = relay.parse("""
    type Box { Full(float32), Empty, }
    def @f(%b: Box) -> float32 { match (%b) { Full(%v) => %v, Empty => 0f, } }
    def @main(%x: float32, %c: bool) -> float32 {
      let %r = ref(%x);
      let %u = ref_write(%r, if (%c) { @f(Full(%x)) } else { 1f });
      ref_read(%r)
    }""")
    for plotter in (relay_viz.DotPlotter(), relay_viz.HtmlPlotter()):
        relay_viz.RelayVisualizer(mod, plotter=plotter)
        text = plotter.text()
        assert "Match" in text
        assert "RefWrite" in text
        assert "unknown" not in text
