"""Diagnostics and their renderers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tvm
from tvm import relay
from tvm.error import DiagnosticError
from tvm.ir.diagnostics import (
    Diagnostic,
    DiagnosticContext,
    DiagnosticLevel,
    DiagnosticRenderer,
    get_renderer,
    override_renderer,
)


@pytest.fixture
def seen() -> Iterator[list[DiagnosticContext]]:
    contexts: list[DiagnosticContext] = []
    override_renderer(contexts.append)
    yield contexts
    override_renderer(None)


def test_a_context_renders_what_was_emitted_and_raises_for_errors() -> None:
    shown: list[str] = []
    renderer = DiagnosticRenderer(
        lambda context: shown.extend(d.message for d in context.diagnostics)
    )
    context = DiagnosticContext(tvm.IRModule(), renderer)
    context.emit(Diagnostic(DiagnosticLevel.NOTE, None, "a remark"))
    context.render()
    assert shown == ["a remark"]
    context.emit(Diagnostic(DiagnosticLevel.ERROR, None, "a mistake"))
    with pytest.raises(DiagnosticError, match="a mistake"):
        context.render()


def test_the_default_renderer_underlines_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    mod = tvm.IRModule()
    name = mod.source_map.add("program", "let %x = 1;\n%y")
    context = DiagnosticContext(mod, get_renderer())
    context.emit(Diagnostic(DiagnosticLevel.WARNING, tvm.ir.Span(name, 2, 2, 1, 3), "odd"))
    context.render()
    assert capsys.readouterr().err == "warning: odd\n  %y\n  ^^\n"


def test_a_renderer_of_the_users_sees_mistakes_in_sources(seen: list[DiagnosticContext]) -> None:
    with pytest.raises(DiagnosticError):
        relay.parse('#[version = "0.0.5"]\ndef @main() { add(1, %x) }', "mine")
    (diagnostic,) = seen[0].diagnostics
    assert diagnostic.level == DiagnosticLevel.ERROR
    assert diagnostic.span.source_name.name == "mine"
    assert (diagnostic.span.line, diagnostic.span.column) == (2, 22)
    assert seen[0].module.source_map.excerpt(diagnostic.span)[1].strip() == "^^"


def test_a_renderer_of_the_users_sees_wrong_types_once(seen: list[DiagnosticContext]) -> None:
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(4, 5))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.add(x, y)))
    with pytest.raises(DiagnosticError, match="add"):
        relay.transform.InferType()(mod)
    assert len(seen) == 1


def test_spans_of_several_sources_have_no_excerpt() -> None:
    span = relay.SequentialSpan((relay.Span(relay.SourceName("pass"), 0, 0, 0, 0),))
    assert tvm.IRModule().source_map.excerpt(span) == []
