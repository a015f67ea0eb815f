"""Where a program's text is, and errors that show the place in it."""

from __future__ import annotations

import ast
import linecache
from types import CellType, FrameType, FunctionType
from typing import Any

from tvm.ir.span import SourceName, Span

from .error import ScriptError


class SourceText:
    """The lines and the syntax tree of a file or text."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name = name
        self.lines = lines
        text = "".join(lines)
        try:
            self.tree = ast.parse(text, name)
        except SyntaxError as error:
            raise self._syntax_error(error) from None
        self.definitions = {_first_line(node): node for node in _definitions(self.tree)}

    def _syntax_error(self, error: SyntaxError) -> ScriptError:
        line, column = error.lineno or 1, (error.offset or 1) - 1
        place = ast.Pass(lineno=line, col_offset=column, end_lineno=line, end_col_offset=column + 1)
        return self.error(f"the script is no valid Python: {error.msg}", place)

    def message(self, text: str, line: int, start: int, end: int) -> str:
        """The error's text with the line and a caret below."""
        shown = self.lines[line - 1].rstrip("\n") if line <= len(self.lines) else ""
        # columns count bytes of UTF-8
        encoded = shown.encode()
        start, end = len(encoded[:start].decode()), len(encoded[:end].decode())
        gutter = " " * len(str(line))
        underline = " " * start + "^" * max(1, min(end, len(shown)) - start)
        return (
            f"{text}\n{gutter} --> {self.name}:{line}:{start + 1}\n{gutter} |\n"
            f"{line} | {shown}\n{gutter} | {underline}"
        )

    def error(self, text: str, node: ast.AST) -> ScriptError:
        """An error at a node."""
        line = getattr(node, "lineno", 1)
        start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
        end_line = getattr(node, "end_lineno", None) or line
        shown = self.message(text, line, start, end if end_line == line else 10_000)
        error = ScriptError(shown)
        error.span = Span(SourceName(self.name), line, end_line, start + 1, (end or 0) + 1)
        return error


Definition = ast.FunctionDef | ast.ClassDef


def _definitions(tree: ast.Module) -> list[Definition]:
    """Functions and classes, wherever they are nested."""
    found: list[Definition] = []
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.append(node)
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending += getattr(node, name, ())
    return found


def _first_line(node: Definition) -> int:
    return min([node.lineno, *[decorator.lineno for decorator in node.decorator_list]])


_FILES: dict[str, tuple[list[str], SourceText]] = {}


def source_of_file(name: str, frame: FrameType | None = None) -> SourceText:
    """The source of a file, read once as long as it stays the same."""
    lines = linecache.getlines(name, frame.f_globals if frame is not None else None)
    if not lines:
        raise ScriptError(
            f"the source of a script is required, but {name} cannot be read",
            hint="use tvm.script.from_source for a program in a string",
        )
    known = _FILES.get(name)
    if known is None or known[0] != lines:
        known = _FILES[name] = (lines, SourceText(name, lines))
    return known[1]


def source_of_text(text: str) -> SourceText:
    """The source that a string is."""
    lines = text.splitlines(keepends=True)
    indent = min([len(line) - len(line.lstrip()) for line in lines if line.strip()], default=0)
    return SourceText("<script>", [line[indent:] if line.strip() else line for line in lines])


def closure_of(func: FunctionType) -> dict[str, Any]:
    """The variables of enclosing functions that a definition uses, those that have a value."""
    cells = zip(func.__code__.co_freevars, func.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def decorated_classes(source: SourceText, *decorators: str) -> set[int]:
    """The first lines of the classes with a decorator of one of these names."""
    return {
        line
        for line, node in source.definitions.items()
        if isinstance(node, ast.ClassDef)
        and any(name in ast.unparse(item) for item in node.decorator_list for name in decorators)
    }
