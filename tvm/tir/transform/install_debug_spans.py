"""Let statements and expressions know the line of the function's own text that they stand on.

B[i] = A[i]                  ->    B[i] = A[i]        # span: main.tir, line 5

The text is what ``func.script()`` prints.
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.span import SourceName, Span
from tvm.ir.visitor import Rewriter
from tvm.script.printer.lines import LineRecorder
from tvm.tir.expr import Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Stmt
from tvm.tir.transform.common import prim_func_pass


class SpanInstaller(Rewriter):
    """Gives every node the span of the statement that it is in."""

    def __init__(self, source: SourceName, lines: dict[int, int]) -> None:
        self.source, self.lines = source, lines
        self.span: Span | None = None

    def visit(self, node: Any) -> Any:
        if not isinstance(node, (Stmt, PrimExpr)) or isinstance(node, Var):
            return super().visit(node)
        outer = self.span
        line = self.lines.get(id(node)) if isinstance(node, Stmt) else None
        if line is not None:
            self.span = Span(self.source, line, line, 1, 1)
        new = super().visit(node)
        found, self.span = self.span, outer
        return new if found is None else new.replace(span=found)


@prim_func_pass("tir.InstallDebugSpans")
def install_debug_spans(func: PrimFunc) -> PrimFunc:
    """Set the spans of a function's body."""
    name = str(func.get_attr("global_symbol", "main"))
    # the decorator stands behind lines of imports
    recorder = LineRecorder(func, name, 1 + func.script().partition("@")[0].count("\n"))
    source = SourceName(f"{name}.tir")
    return func.with_body(SpanInstaller(source, recorder.found).visit(func.body))


InstallDebugSpans = install_debug_spans.factory
