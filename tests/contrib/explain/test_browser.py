"""The page works: it opens, searches and selects, and the browser has nothing to complain about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contrib.explain.chromium import Browser
from tests.contrib.explain.conftest import EVIL
from tests.system_tools import needs_tool
from tvm.contrib import explain
from tvm.contrib.explain import Report

VIEWS = ("overview", "graph", "kernels", "roofline", "memory", "passes", "build")
SEARCH = "state.input.value = '{}'; state.input.dispatchEvent(new Event('input')); state.count.textContent"
pytestmark = needs_tool("chromium")


@pytest.fixture(scope="module", params=["report", "relax_report"])
def report(request: pytest.FixtureRequest) -> Report:
    """The report of a model of relay, and that of one of relax."""
    found: Report = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def browser(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("page")
    explain.write_page(report, folder / "page.html")
    with Browser(folder / "profile") as opened:
        opened.open(folder / "page.html", "document.documentElement?.dataset.ready === 'yes'")
        yield opened
        assert opened.errors == []


def show(browser: Browser, place: str) -> None:
    browser.evaluate(f"location.hash = '{place}'")
    browser.wait(f"state.view === '{place.partition('/')[0]}'")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_shows_something(browser: Browser, view: str) -> None:
    show(browser, view)
    assert browser.evaluate("document.querySelectorAll('.view.shown').length") == 1
    assert len(browser.evaluate("document.querySelector('.view.shown').innerText")) > 100
    assert browser.screenshot().startswith(b"\x89PNG")
    assert browser.errors == []


def test_a_name_of_a_model_is_only_text(browser: Browser) -> None:
    assert browser.evaluate("document.querySelector('header .title').textContent") == EVIL
    assert browser.evaluate("document.getElementById('evil')") is None
    assert browser.evaluate("document.title") != "taken"


def test_nodes_are_found_and_chosen(browser: Browser, report: Report) -> None:
    show(browser, "graph")
    assert browser.evaluate(SEARCH.format("softmax")) == "2"  # imported, and built
    assert browser.evaluate(SEARCH.format("")) == ""
    number = next(i for i, n in enumerate(report.imported.nodes) if n.op == "nn.relu")
    show(browser, f"graph/imported/{number}")
    browser.wait("document.querySelector('.view.shown .side h2').textContent === 'relu'")
    (call,) = report.imported.nodes[number].others
    assert browser.evaluate("[...state.views.graph.views.built.linked]") == [call]
    browser.evaluate("document.querySelector('.view.shown .to-kernel').click()")
    browser.wait("state.view === 'kernels'")
    kernel = report.built.nodes[call].kernel
    browser.wait(f"state.views.kernels.current === {kernel}")


def test_a_click_on_the_canvas_chooses_the_node_there(browser: Browser) -> None:
    show(browser, "graph/imported/0")
    browser.wait("state.views.graph.views.imported.picked === 0")
    browser.wait("state.views.graph.views.imported.width > 0")  # the canvas has its size
    box = browser.evaluate(
        "(() => { const v = state.views.graph.views.imported, n = v.graph.nodes[1];"
        " v.centre(1, 1); const b = v.canvas.getBoundingClientRect();"
        " return [b.left + v.x + (v.left(n) + 10) * v.scale, b.top + v.y + (v.top(n) + 10) * v.scale]; })()"
    )
    for kind in ("mousePressed", "mouseReleased"):
        browser.call(
            "Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1
        )
    browser.wait("state.views.graph.views.imported.picked === 1")
    assert browser.evaluate("state.views.graph.views.imported.picked") == 1


def test_a_line_shows_its_lines_in_the_other_forms(browser: Browser, report: Report) -> None:
    number = next(i for i, k in enumerate(report.kernels) if k.choices)
    show(browser, f"kernels/{number}")
    browser.wait(f"state.views.kernels.current === {number}")
    tir = next(code for code in report.kernels[number].codes if code.language == "tir")
    assembly = next(code for code in report.kernels[number].codes if code.language == "assembly")
    line = next(o for o in assembly.lines if o > 0 and tir.lines[o - 1] > 0)
    browser.evaluate(
        "(() => { const p = state.views.kernels.panes; const pane = p.panes.find((x) => x.code.language === 'tir');"
        f" pane.box.scrollTop = {(line - 1) * 18}; pane.draw();"
        f" [...pane.room.children].find((e) => e.querySelector('.no').textContent === '{line}').click(); }})()"
    )
    marked = {
        language: browser.evaluate(
            f"[...state.views.kernels.panes.panes.find((x) => x.code.language === '{language}').on]"
        )
        for language in ("te", "tir", "llvm", "assembly")
    }
    assert marked["tir"] == [line]
    assert marked["assembly"] == [i + 1 for i, o in enumerate(assembly.lines) if o == line]
    assert tir.lines[line - 1] in marked["te"] and marked["llvm"]


def test_tables_and_passes_are_searched(browser: Browser, report: Report) -> None:
    show(browser, "kernels")
    assert browser.evaluate(SEARCH.format("softmax")) == "1"
    show(browser, "passes")
    found = int(browser.evaluate(SEARCH.format("simplifyinference")))
    assert found >= 1
    browser.evaluate(SEARCH.format(""))
