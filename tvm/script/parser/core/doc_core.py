"""The syntax tree of a script: Python's own, under its classic module."""

from __future__ import annotations

import ast

AST = ast.AST

globals().update(
    {
        name: value
        for name, value in vars(ast).items()
        if isinstance(value, type) and issubclass(value, AST)
    }
)
