"""The skeleton of a lowered function: loops, guards, memory, stores; for goldens that stay stable."""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.ir.visitor import Visitor


def outline(func: tir.PrimFunc | tir.Stmt) -> str:
    """One line a statement, indented by nesting; indices and values are left out."""
    writer = _Outline()
    writer.visit(func.body if isinstance(func, tir.PrimFunc) else func)
    return "\n".join(writer.lines)


def lowered(schedule: te.Schedule, args: list[Any]) -> str:
    """The outline of a schedule's function."""
    return outline(te.schedule.lower_schedule(schedule, args))


def expect(text: str) -> str:
    """A golden written as an indented block."""
    lines = text.strip("\n").splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[margin:] for line in lines).rstrip()


class _Outline(Visitor):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def line(self, text: str, *inner: Any) -> None:
        self.lines.append("  " * self.depth + text)
        self.depth += 1
        for stmt in inner:
            self.visit(stmt)
        self.depth -= 1

    def visit_for(self, loop: tir.For) -> None:
        extent = loop.extent.value if isinstance(loop.extent, tir.IntImm) else "?"
        self.line(f"for {loop.loop_var.name} in {loop.kind.name.lower()}({extent})", loop.body)

    def visit_if_then_else(self, stmt: tir.IfThenElse) -> None:
        call = stmt.condition
        is_likely = isinstance(call, tir.Call) and call.op.name == "tir.likely"
        self.line("if likely" if is_likely else "if", stmt.then_case)

    def visit_buffer_realize(self, stmt: tir.BufferRealize) -> None:
        extents = [b.extent.value if isinstance(b.extent, tir.IntImm) else "?" for b in stmt.bounds]
        scope = stmt.buffer.scope()
        suffix = "" if scope == "global" else f" in {scope}"
        self.line(f"realize {stmt.buffer.name}{extents}{suffix}", stmt.body)

    def visit_attr_stmt(self, stmt: tir.AttrStmt) -> None:
        node = stmt.node.var if isinstance(stmt.node, tir.IterVar) else stmt.node
        value = stmt.value.value if hasattr(stmt.value, "value") else "?"
        name = getattr(node, "name", "reducer")
        self.line(f"attr {name} {stmt.attr_key} = {value}", stmt.body)

    def visit_let_stmt(self, stmt: tir.LetStmt) -> None:
        self.line(f"let {stmt.var.name}", stmt.body)

    def visit_buffer_store(self, stmt: tir.BufferStore) -> None:
        self.line(f"store {stmt.buffer.name}")

    def visit_evaluate(self, stmt: tir.Evaluate) -> None:
        self.line("evaluate")
