"""Expressions of hybrid scripts: from Python's syntax to values and TIR."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NoReturn

from tvm.error import TVMError, suggest
from tvm.ir.expr import PrimExpr
from tvm.tir import math_op, op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import INT32, BufferLoad, FloatImm, IntImm, as_expr, const

from .calls import CALLS
from .error import HybridError

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: op.add, ast.Sub: op.subtract, ast.Mult: op.multiply, ast.FloorDiv: op.floordiv,
    ast.Mod: op.floormod, ast.BitAnd: math_op.bitwise_and, ast.BitOr: math_op.bitwise_or,
    ast.BitXor: math_op.bitwise_xor, ast.LShift: math_op.shift_left,
    ast.RShift: math_op.shift_right, ast.Pow: math_op.power,
    ast.Div: lambda a, b: op.true_divide(a, b),
}  # fmt: skip
COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: op.less, ast.LtE: op.less_equal, ast.Gt: op.greater, ast.GtE: op.greater_equal,
    ast.Eq: op.equal, ast.NotEq: op.not_equal,
}  # fmt: skip


class Scalar:
    """A variable of the script: memory of one element."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer

    def load(self) -> PrimExpr:
        return BufferLoad(self.buffer, (const(0, INT32),))


class ExpressionParser(ast.NodeVisitor):
    """Finds out what expressions mean; ``names`` are the values known so far."""

    names: dict[str, Any]

    def reject(self, node: ast.AST | None, required: str, found: str, hint: str = "") -> NoReturn:
        """Raise the error of a piece of the script."""
        raise NotImplementedError

    def expression(self, node: ast.expr | None) -> Any:
        assert node is not None
        try:
            return self.visit(node)
        except HybridError:
            raise
        except (TVMError, TypeError, ValueError) as error:
            return self.reject(node, "operands that fit", f"{ast.unparse(node)}: {error}")

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    # what constants and indices were in the syntax trees of older versions of Python
    visit_Num = visit_Str = visit_NameConstant = visit_Constant

    def visit_Index(self, node: Any) -> Any:
        return self.expression(node.value)

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self.names:
            self.reject(node, "names that are defined", node.id, suggest(node.id, self.names))
        value = self.names[node.id]
        if isinstance(value, Scalar):
            return value.load()
        if isinstance(value, list):
            return tuple(value)
        return value

    def visit_Tuple(self, node: ast.Tuple | ast.List) -> Any:
        return tuple([self.expression(item) for item in node.elts])

    def visit_List(self, node: ast.List) -> Any:
        return self.visit_Tuple(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        value = self.expression(node.value)
        if isinstance(value, Buffer) and node.attr in ("shape", "dtype"):
            return tuple(value.shape) if node.attr == "shape" else str(value.dtype)
        return self.reject(node, "shape or dtype of a tensor", ast.unparse(node))

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        value = self.expression(node.value)
        if isinstance(value, Buffer):
            return BufferLoad(value, self._indices(node, value))
        index = self.expression(node.slice)
        for position in index if isinstance(index, tuple) else (index,):
            value = self._item(node, value, as_number(position))
        return value

    def _item(self, node: ast.Subscript, value: Any, index: Any) -> Any:
        if not isinstance(value, (tuple, list)) or not isinstance(index, int):
            self.reject(node, "a tensor, or a tuple and a constant", ast.unparse(node))
        if not -len(value) <= index < len(value):
            self.reject(node, f"an index below {len(value)}", str(index))
        return value[index]

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        combine = BINARY.get(type(node.op))
        if combine is None:
            self.reject(node, SUBSET, f"the operator {type(node.op).__name__}")
        assert combine is not None
        a, b = self.expression(node.left), self.expression(node.right)
        return combine(as_expr(a) if not isinstance(b, PrimExpr) else a, b)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.expression(node.operand)
        if isinstance(node.op, ast.USub):
            return -value
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Not):
            return op.logical_not(as_expr(value))
        return math_op.bitwise_not(as_expr(value))

    def visit_Compare(self, node: ast.Compare) -> Any:
        values = [self.expression(item) for item in (node.left, *node.comparators)]
        parts = []
        for kind, a, b in zip(node.ops, values, values[1:], strict=False):
            compare = COMPARE.get(type(kind))
            if compare is None:
                self.reject(node, "comparisons of numbers", ast.unparse(node))
            assert compare is not None
            parts.append(compare(as_expr(a) if not isinstance(b, PrimExpr) else a, b))
        return op.all(*parts)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        values = [as_expr(self.expression(item)) for item in node.values]
        return op.all(*values) if isinstance(node.op, ast.And) else op.any(*values)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        condition = as_expr(self.expression(node.test))
        if isinstance(condition, IntImm):
            return self.expression(node.body if condition.value else node.orelse)
        a, b = self.expression(node.body), self.expression(node.orelse)
        return math_op.if_then_else(condition, a, b)

    def visit_Call(self, node: ast.Call) -> Any:
        name = called_name(node)
        args = [self.expression(arg) for arg in node.args]
        function = CALLS.get(name or "")
        if function is None:
            hint = suggest(str(name), [*CALLS, "allocate", "output_tensor"])
            self.reject(node, "calls of known functions", str(name or ast.unparse(node)), hint)
        assert function is not None
        return function(str(name), args)

    def _indices(self, node: ast.Subscript, buffer: Buffer) -> tuple[PrimExpr, ...]:
        index = self.expression(node.slice)
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) != len(buffer.shape):
            self.reject(node, f"{len(buffer.shape)} indices of {buffer.name}", f"{len(indices)}")
        return tuple([as_expr(item) for item in indices])


SUBSET = "the hybrid subset of Python"


def called_name(node: ast.expr | None) -> str | None:
    """The name of the function that an expression calls; ``tir.sqrt`` is ``sqrt``."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else None


def as_number(value: Any) -> Any:
    return value.value if isinstance(value, (IntImm, FloatImm)) else value
