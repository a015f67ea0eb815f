"""Which line of its text each statement of a function begins at."""

from __future__ import annotations

from typing import Any

from tvm.ir.script_printer import PrinterConfig
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Stmt

from .function import FunctionPrinter
from .plan import Plan


class LineRecorder(FunctionPrinter):
    """Prints a function and keeps the line at which each statement begins."""

    def __init__(self, func: PrimFunc, first_line: int) -> None:
        super().__init__(PrinterConfig(), Plan(func))
        self.number = first_line - 1
        self.found: dict[int, int] = {}

    def line(self) -> None:
        self.number += 1
        super().line()

    def visit(self, node: Any) -> Any:
        if isinstance(node, Stmt):
            self.found.setdefault(id(node), self.number + 1)
        return super().visit(node)
