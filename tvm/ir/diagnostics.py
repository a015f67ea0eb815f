"""Diagnostics: what is wrong with a program, gathered and shown by a renderer of the user's choice.

override_renderer(lambda context: editor.show(context.diagnostics))
relay.parse(text)  # the renderer sees the mistake, then DiagnosticError is raised
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tvm.error import DiagnosticError

from .module import IRModule
from .node import Node
from .span import SourceMap, Span


class DiagnosticLevel(enum.IntEnum):
    """How grave a diagnostic is; the smaller, the graver."""

    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


class Diagnostic(Node):
    """One remark about a program.

    Parameters
    ----------
    level : DiagnosticLevel or int
    span : Span or None
        Where in the source.
    message : str
    """

    level: int
    span: Span | None
    message: str


class DiagnosticContext:
    """Gathers the diagnostics of a module.

    Parameters
    ----------
    module : IRModule
    renderer : DiagnosticRenderer
        Shows the diagnostics.
    """

    def __init__(self, module: IRModule, renderer: DiagnosticRenderer) -> None:
        self.module = module
        self.renderer = renderer
        self.diagnostics: list[Diagnostic] = []

    def emit(self, diagnostic: Diagnostic) -> None:
        """Gather one diagnostic."""
        self.diagnostics.append(diagnostic)

    def render(self) -> None:
        """Show what was gathered.

        Raises
        ------
        DiagnosticError
            If an error or a bug is among it.
        """
        self.renderer.render(self)
        grave = [d for d in self.diagnostics if d.level <= DiagnosticLevel.ERROR]
        if grave:
            raise DiagnosticError("\n".join(d.message for d in grave))


class DiagnosticRenderer:
    """Shows the diagnostics of a context.

    Parameters
    ----------
    render_func : callable
        Takes the :class:`DiagnosticContext`.
    """

    def __init__(self, render_func: Callable[[DiagnosticContext], Any]) -> None:
        self.render_func = render_func

    def render(self, ctx: DiagnosticContext) -> None:
        """Show all diagnostics of the context."""
        self.render_func(ctx)


def _write(context: DiagnosticContext) -> None:
    """The renderer in place of none: lines of standard error, with the source underlined."""
    sources = getattr(context.module, "source_map", SourceMap())
    for diagnostic in context.diagnostics:
        level = DiagnosticLevel(diagnostic.level).name.lower()
        print(f"{level}: {diagnostic.message}", file=sys.stderr)
        for line in sources.excerpt(diagnostic.span):
            print(f"  {line}", file=sys.stderr)


# the renderer that a user put in place of the default
_OVERRIDE: list[DiagnosticRenderer] = []


def get_renderer() -> DiagnosticRenderer:
    """The renderer in use: the user's, or the one that writes to standard error."""
    return _OVERRIDE[-1] if _OVERRIDE else DiagnosticRenderer(_write)


def override_renderer(render_func: Callable[[DiagnosticContext], Any] | None) -> None:
    """Let a function show the diagnostics of parsers and of type inference.

    Parameters
    ----------
    render_func : callable or None
        Takes the :class:`DiagnosticContext`; None brings the default back.
    """
    _OVERRIDE[:] = [] if render_func is None else [DiagnosticRenderer(render_func)]


@contextmanager
def reported(module: IRModule | None = None) -> Iterator[None]:
    """Show a user's own renderer the mistake that ends the block.

    The default renderer is not asked: the error that is raised says the same.
    """
    try:
        yield
    except DiagnosticError as error:
        if _OVERRIDE and not error.is_reported:
            error.is_reported = True
            context = DiagnosticContext(IRModule() if module is None else module, get_renderer())
            span = error.span or getattr(error.at, "span", None)
            context.emit(Diagnostic(DiagnosticLevel.ERROR, span, str(error)))
            context.renderer.render(context)
        raise
