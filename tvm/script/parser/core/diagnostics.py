"""Where a script's text is, and errors that show the place in it."""

from __future__ import annotations

import ast
import inspect
from types import FrameType, FunctionType
from typing import Any

from .error import ScriptError
from .source import SourceText, source_of_file, source_of_text


class Source:
    """The text of a function, of a class, or of a program in a string.

    Parameters
    ----------
    program : function, class or str
    frame : FrameType, optional
        The scope in which a class is defined, where several of its name stand in the file.
    line : int, optional
        The line of the class's definition, by default the frame's.

    Attributes
    ----------
    source_name : str
        The file.
    start_line, start_column : int
        Where the text begins in the file.
    source : str
        The text, as it stands there.
    full_source : str
        The text of the whole file.
    text : SourceText
        The file with its syntax tree.
    """

    def __init__(
        self, program: Any, frame: FrameType | None = None, line: int | None = None
    ) -> None:
        self.node: ast.FunctionDef | ast.ClassDef | None = None
        if isinstance(program, str):
            self.text = source_of_text(program)
            first, last = 1, len(self.text.lines)
        else:
            self.text, self.node = _definition(program, frame, line)
            decorators = [decorator.lineno for decorator in self.node.decorator_list]
            first, last = min([self.node.lineno, *decorators]), self.node.end_lineno or 0
        self.source_name = self.text.name
        self.start_line = first
        self.start_column = 0 if self.node is None else self.node.col_offset
        self.source = "".join(self.text.lines[first - 1 : last])
        self.full_source = "".join(self.text.lines)

    def as_ast(self) -> ast.Module:
        """The syntax tree; its lines count in the file."""
        if self.node is None:
            return self.text.tree
        return ast.Module(body=[self.node], type_ignores=[])


def _definition(
    program: Any, frame: FrameType | None, line: int | None
) -> tuple[SourceText, ast.FunctionDef | ast.ClassDef]:
    if isinstance(program, FunctionType):
        text = source_of_file(program.__code__.co_filename, frame)
        node: Any = text.definitions.get(program.__code__.co_firstlineno)
        if not isinstance(node, ast.FunctionDef):
            raise ScriptError(
                f"the definition of {program.__name__} cannot be found in {text.name}"
            )
        return text, node
    if not isinstance(program, type):
        raise TypeError(f"a script requires a function or a class, got {type(program).__name__}")
    if frame is not None:
        text = source_of_file(frame.f_code.co_filename, frame)
        return text, _class_at(text, program.__name__, line or frame.f_lineno)
    text = source_of_file(inspect.getsourcefile(program) or "")
    return text, _class_at(text, program.__name__, inspect.getsourcelines(program)[1])


def _class_at(text: SourceText, name: str, line: int) -> ast.ClassDef:
    """The class whose definition is at a line (of its decorator or its head)."""
    for first, node in text.definitions.items():
        if isinstance(node, ast.ClassDef) and node.name == name and first <= line <= node.lineno:
            return node
    raise ScriptError(f"the definition of class {name} cannot be found in {text.name}")


class Diagnostics:
    """Raises the errors of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text

    def error(self, node: ast.AST, message: str) -> None:
        """Raise an error that shows a node.

        Raises
        ------
        DiagnosticError
        """
        raise self.text.error(message, node)


def findsource(obj: Any) -> tuple[list[str], int]:
    """The lines of the file in which something is defined, and the index of the first."""
    return inspect.findsource(obj)


def getsourcelines(obj: Any) -> tuple[list[str], int]:
    """The lines of a definition, and the number of the first."""
    return inspect.getsourcelines(obj)


__all__ = ["Diagnostics", "Source", "findsource", "getsourcelines"]
