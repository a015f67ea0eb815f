"""Reading text as a syntax tree, and walking it."""

from __future__ import annotations

import ast
from ast import NodeTransformer, NodeVisitor, parse
from typing import Any

globals().update(
    {
        name: value
        for name, value in vars(ast).items()
        if isinstance(value, type) and issubclass(value, ast.AST)
    }
)


def to_doc(node: Any) -> Any:
    """A node of Python's tree as one of a script's, which it is."""
    return node


def from_doc(node: Any) -> Any:
    """A node of a script's tree as one of Python's, which it is."""
    return node


__all__ = ["NodeTransformer", "NodeVisitor", "from_doc", "parse", "to_doc"]
