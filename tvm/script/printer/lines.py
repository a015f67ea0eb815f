"""Which line of its text each statement of a function begins at."""

from __future__ import annotations

from typing import Any

from tvm.ir.script_printer import PrinterConfig
from tvm.support import deep
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Stmt

from .doc import Doc, StmtBlockDoc
from .doc_printer import DocPrinter
from .docsifier import IRDocsifier, Path
from .script import document


class _Statements(IRDocsifier):
    """Knows which statement each document is of."""

    def __init__(self, config: PrinterConfig) -> None:
        super().__init__(config)
        self.statements: dict[int, list[Stmt]] = {}  # id of a document -> its statements
        self.docs: list[Doc] = []  # keeps those documents, so that their ids stay theirs

    def doc(self, node: Any, path: Path) -> Doc:
        result = super().doc(node, path)
        if isinstance(node, Stmt):
            first = result.stmts[0] if isinstance(result, StmtBlockDoc) else result
            self.statements.setdefault(id(first), []).append(node)
            self.docs.append(first)
        return result


class LineRecorder(DocPrinter):
    """Prints a function and keeps the line at which each statement begins.

    ``text`` is the function without the lines above its decorator, ``found`` the line by the
    identity of a statement, counted from ``first_line``.
    """

    @deep
    def __init__(self, func: PrimFunc, name: str, first_line: int) -> None:
        super().__init__(4, ())
        self._statements = _Statements(PrinterConfig(name=name))
        self._number = first_line
        self._pieces = 0
        self.found: dict[int, int] = {}
        program = document(func, self._statements)
        assert isinstance(program, StmtBlockDoc)
        self.print(program.stmts[-1])
        self.text = "".join(self.out)

    def print(self, doc: Doc) -> None:
        for stmt in self._statements.statements.get(id(doc), ()):
            self.found.setdefault(id(stmt), self._line_number())
        super().print(doc)

    def _line_number(self) -> int:
        self._number += sum([piece.count("\n") for piece in self.out[self._pieces :]])
        self._pieces = len(self.out)
        return self._number
