"""Mistakes in scripts."""

from __future__ import annotations

import ast

from tvm.error import DiagnosticError


class ScriptError(DiagnosticError):
    """A script cannot be read."""


class ParserError(Exception):
    """A mistake at a node of the syntax tree, raised while that is read."""

    def __init__(self, node: ast.AST, msg: str | Exception) -> None:
        super().__init__(msg)
        self.node = node


__all__ = ["ParserError", "ScriptError"]
