"""Where the variables of a hybrid script come from, and how they are used.

for i in range(n):
    t = a[i]        ->    {"t": (its first store, the loop, {Load})}
    b[i] = t + t
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from .error import HybridError
from .expressions import called_name

Usage = dict[str, tuple[ast.AST, ast.AST, set[type]]]


class PyVariableUsage(ast.NodeVisitor):
    """Fills ``status``: the first store of each variable, the scope around it, and how it is used later.

    Parameters
    ----------
    args : list
        What the script is called with.
    symbols, closure_vars : dict
        What other names in it mean.
    """

    def __init__(
        self, args: Sequence[Any], symbols: Mapping[str, Any], closure_vars: Mapping[str, Any]
    ) -> None:
        self.args, self.symbols, self.closure_vars = args, symbols, closure_vars
        self.status: Usage = {}
        self._scopes: list[ast.FunctionDef | ast.For] = []
        self._augmented = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """The parameters, then the body."""
        if self._scopes:
            self._reject(node, "one function", f"{node.name} inside of it")
        self._scopes.append(node)
        if len(node.args.args) != len(self.args):
            self._reject(node, f"{len(node.args.args)} arguments", str(len(self.args)))
        for statement in node.body:
            self.visit(statement)
        self._scopes.pop()

    def visit_For(self, node: ast.For) -> None:
        """What the loop goes over, then its body."""
        if not isinstance(node.target, ast.Name):
            self._reject(node, "one variable of a loop", ast.unparse(node.target))
        self.visit(node.iter)
        self._scopes.append(node)
        for statement in node.body:
            self.visit(statement)
        self._scopes.pop()

    def visit_Call(self, node: ast.Call) -> None:
        """The arguments; functions are no variables."""
        if called_name(node) is None:
            self._reject(node, "calls of functions by name", ast.unparse(node.func))
        for part in (*node.args, *[keyword.value for keyword in node.keywords]):
            self.visit(part)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """The target must be there before."""
        self._augmented = True
        self.visit(node.target)
        self._augmented = False
        self.visit(node.value)

    def visit_Name(self, node: ast.Name) -> None:
        """One use of a variable."""
        function = self._scopes[0]
        assert isinstance(function, ast.FunctionDef)
        is_store = isinstance(node.ctx, ast.Store)
        targets = [scope.target for scope in self._scopes if isinstance(scope, ast.For)]
        loops = [target.id for target in targets if isinstance(target, ast.Name)]
        if node.id in loops and is_store:
            self._reject(node, "loop variables that stay as they are", f"a store into {node.id}")
        if node.id in loops or node.id in [param.arg for param in function.args.args]:
            return
        if node.id in self.status:
            _, scope, uses = self.status[node.id]
            if not any([scope is outer for outer in self._scopes]):
                self._reject(node, "variables inside the loop that defines them", node.id)
            uses.add(type(node.ctx))
            return
        if not is_store:
            if node.id not in self.symbols and node.id not in self.closure_vars:
                self._reject(node, "names that are defined", node.id)
            return
        if self._augmented:
            self._reject(node, "variables that are defined before they are changed", node.id)
        self.status[node.id] = (node, self._scopes[-1], set())

    def _reject(self, node: ast.AST, required: str, found: str) -> None:
        name = getattr(self._scopes[0], "name", "the script") if self._scopes else "the script"
        raise HybridError(name, getattr(node, "lineno", 1), required, found)


def determine_variable_usage(
    root: ast.AST,
    args: Sequence[Any],
    symbols: Mapping[str, Any],
    closure_vars: Mapping[str, Any],
) -> Usage:
    """How the variables of a script are used.

    Parameters
    ----------
    root : ast node
        The script's syntax tree.
    args : list
        What it is called with.
    symbols, closure_vars : dict
        What other names in it mean.

    Returns
    -------
    dict
        Name to (first store, function or loop around it, kinds of later uses).
    """
    visitor = PyVariableUsage(args, symbols, closure_vars)
    visitor.visit(root)
    return visitor.status
