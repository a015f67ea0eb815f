"""Evaluate the expressions of a script.

The usual kinds of expressions are evaluated node by node, so that an error has its exact place.
Lambdas, comprehensions and the like are compiled by Python; there ``and``, ``or``, ``not``, chained
comparisons and conditional expressions are replaced by calls, since they ask for truth values.
"""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.expr import ExprOp

from . import dispatch
from .error import ParserError, ScriptError
from .source import SourceText

AND, OR, NOT, CHOOSE = "__tir_and__", "__tir_or__", "__tir_not__", "__tir_if__"
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
SYMBOLIC_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: op.equal,
    ast.NotEq: op.not_equal,
    ast.Lt: op.less,
    ast.LtE: op.less_equal,
    ast.Gt: op.greater,
    ast.GtE: op.greater_equal,
}
# what an expression may raise because of the script, rather than of a fault here
SCRIPT_FAULTS = (
    TVMError, ArithmeticError, AttributeError, LookupError, NameError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip
_BUILTINS = vars(builtins)
_MISSING = object()


class Evaluator:
    """Evaluates expressions with ``variables`` as their names."""

    def __init__(self, source: SourceText | None, variables: dict[str, Any]) -> None:
        self.source = source
        self.variables = variables

    def value(self, node: ast.expr) -> Any:
        """The value of an expression.

        Raises
        ------
        ScriptError
            With the place of the innermost part that failed.
        """
        method: Callable[[Evaluator, Any], Any] = _METHODS.get(type(node), _compiled)
        try:
            return method(self, node)
        except ScriptError:
            raise
        except SCRIPT_FAULTS as error:
            if self.source is None:
                raise
            raise self.source.error(str(error), node) from error

    def name(self, node: ast.Name) -> Any:
        found = self.variables.get(node.id, _MISSING)
        if found is _MISSING:
            found = _BUILTINS.get(node.id, _MISSING)
        if found is _MISSING:
            raise NameError(f"name {node.id!r} is not defined")
        return found

    def constant(self, node: ast.Constant) -> Any:
        return node.value

    def attribute(self, node: ast.Attribute) -> Any:
        return getattr(self.value(node.value), node.attr)

    def subscript(self, node: ast.Subscript) -> Any:
        return self.value(node.value)[self.value(node.slice)]

    def bounds(self, node: ast.Slice) -> slice:
        parts = (node.lower, node.upper, node.step)
        return slice(*[None if part is None else self.value(part) for part in parts])

    def sequence(self, node: ast.Tuple | ast.List) -> Any:
        values: list[Any] = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                values += self.value(item.value)
            else:
                values.append(self.value(item))
        return values if type(node) is ast.List else tuple(values)

    def mapping(self, node: ast.Dict) -> Any:
        result: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            if key is None:
                result.update(self.value(item))
            else:
                result[self.value(key)] = self.value(item)
        return result

    def call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        args: list[Any] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                args += self.value(arg.value)
            else:
                args.append(self.value(arg))
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                keywords.update(self.value(keyword.value))
            else:
                keywords[keyword.arg] = self.value(keyword.value)
        return function(*args, **keywords)

    def binary(self, node: ast.BinOp) -> Any:
        combine = BINARY.get(type(node.op))
        if combine is None:
            raise TypeError(f"{type(node.op).__name__} is no operator of the language")
        operands = self.value(node.left), self.value(node.right)
        return (dispatch.find_op(type(node.op), operands) or combine)(*operands)

    def unary(self, node: ast.UnaryOp) -> Any:
        operand = self.value(node.operand)
        if (foreign := dispatch.find_op(type(node.op), (operand,))) is not None:
            return foreign(operand)
        if isinstance(node.op, ast.USub):
            return -operand
        if isinstance(node.op, ast.Not):
            return negation(operand)
        return ~operand if isinstance(node.op, ast.Invert) else +operand

    def boolean(self, node: ast.BoolOp) -> Any:
        combine = both if isinstance(node.op, ast.And) else either
        result = self.value(node.values[0])
        for item in node.values[1:]:
            result = combine(result, partial(self.value, item))
        return result

    def compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Any = True
        for kind, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            answer = compared(kind, left, right)
            result = both(result, lambda answer=answer: answer)  # type: ignore[misc]
            left = right
        return result

    def choice(self, node: ast.IfExp) -> Any:
        return choose(
            self.value(node.test), lambda: self.value(node.body), lambda: self.value(node.orelse)
        )


def _compiled(evaluator: Evaluator, node: ast.expr) -> Any:
    tree = ast.Expression(_Symbolic().visit(node))
    return eval(compile(tree, "<expression of a script>", "eval"), evaluator.variables)


_METHODS: dict[type, Callable[[Evaluator, Any], Any]] = {
    ast.Name: Evaluator.name,
    ast.Constant: Evaluator.constant,
    ast.Attribute: Evaluator.attribute,
    ast.Subscript: Evaluator.subscript,
    ast.Slice: Evaluator.bounds,
    ast.Tuple: Evaluator.sequence,
    ast.List: Evaluator.sequence,
    ast.Dict: Evaluator.mapping,
    ast.Call: Evaluator.call,
    ast.BinOp: Evaluator.binary,
    ast.UnaryOp: Evaluator.unary,
    ast.BoolOp: Evaluator.boolean,
    ast.Compare: Evaluator.compare,
    ast.IfExp: Evaluator.choice,
}


class ExprEvaluator:
    """The classic way to evaluate an expression."""

    @staticmethod
    def eval(parser: Any, value_table: dict[str, Any], node: ast.expr) -> Any:
        """The value of an expression.

        Parameters
        ----------
        parser : Parser, optional
            Whose source errors refer to.
        value_table : dict of str to object
            The names that the expression may use.
        node : expr
        """
        source = None if parser is None else parser.diag.text
        return Evaluator(source, value_table).value(node)


def eval_expr(parser: Any, node: ast.expr, dict_globals: dict[str, Any] | None = None) -> Any:
    """The value of an expression; see :class:`ExprEvaluator`."""
    return ExprEvaluator.eval(parser, {} if dict_globals is None else dict_globals, node)


def eval_assign(parser: Any, target: ast.expr, source: Any) -> dict[str, Any]:
    """The names that an assignment of a value to a target defines, with their values."""
    return dict(assigned(target, source, parser))


def assigned(target: ast.expr, value: Any, parser: Any = None) -> Iterator[tuple[str, Any]]:
    """Names and values of an assignment; tuples are taken apart as Python does.

    Raises
    ------
    ParserError
        If the value does not fit the target.
    """
    if isinstance(target, ast.Name):
        yield target.id, value
        return
    if not isinstance(target, (ast.Tuple, ast.List)):
        raise ParserError(target, "an assignment requires a name or an element of a buffer")
    try:
        values = list(value)
    except SCRIPT_FAULTS as error:
        text = f"an assignment to several names requires several values, got {value}"
        raise ParserError(target, text) from error
    starred = [i for i, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
    count = len(target.elts)
    if len(values) < count - len(starred) or (not starred and len(values) != count):
        raise ParserError(target, f"an assignment requires {count} values, got {len(values)}")
    if starred:
        first, rest = starred[0], count - starred[0] - 1
        middle = values[first : len(values) - rest]
        values = [*values[:first], middle, *values[len(values) - rest :]]
    for part, item in zip(target.elts, values, strict=True):
        yield from assigned(part.value if isinstance(part, ast.Starred) else part, item, parser)


# ---- operators that ask for truth values


def both(first: Any, *later: Callable[[], Any]) -> Any:
    """``and``: a node if a value is symbolic, else what Python gives."""
    result = first
    for value in later:
        if not isinstance(result, PrimExpr) and not result:
            return result
        result = _combined(op.logical_and, result, value())
    return result


def either(first: Any, *later: Callable[[], Any]) -> Any:
    """``or``, like :func:`both`."""
    result = first
    for value in later:
        if not isinstance(result, PrimExpr) and result:
            return result
        result = _combined(op.logical_or, result, value())
    return result


def _combined(combine: Callable[[Any, Any], PrimExpr], left: Any, right: Any) -> Any:
    """Without a symbolic value before it, the last value decides as it does in Python."""
    return combine(left, right) if isinstance(left, PrimExpr) else right


def compared(kind: ast.cmpop, left: Any, right: Any) -> Any:
    """A comparison; ``0 < n`` stays that, where Python would ask for ``n > 0``."""
    if (foreign := dispatch.find_op(type(kind), (left, right))) is not None:
        return foreign(left, right)
    if isinstance(left, (int, float)) and isinstance(right, ExprOp):
        build = SYMBOLIC_COMPARE.get(type(kind))
        if build is not None:
            return build(left, right)
    return COMPARE[type(kind)](left, right)


def negation(value: Any) -> Any:
    """``not``"""
    return op.logical_not(value) if isinstance(value, PrimExpr) else not value


def choose(condition: Any, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
    """``a if condition else b``"""
    if isinstance(condition, PrimExpr):
        return op.if_then_else(condition, if_true(), if_false())
    return if_true() if condition else if_false()


HELPERS: dict[str, Any] = {AND: both, OR: either, NOT: negation, CHOOSE: choose}


class _Symbolic(ast.NodeTransformer):
    """Replaces those operators by calls of the functions above."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        first, *later = node.values
        name = AND if isinstance(node.op, ast.And) else OR
        return _call(name, [first, *[_delayed(value) for value in later]], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call(NOT, [node.operand], node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return _call(CHOOSE, [node.test, _delayed(node.body), _delayed(node.orelse)], node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        operands = [node.left, *node.comparators]
        pairs: list[ast.expr] = [
            ast.copy_location(ast.Compare(a, [o], [b]), node)
            for a, o, b in zip(operands, node.ops, operands[1:], strict=False)
        ]
        return _call(AND, [pairs[0], *[_delayed(pair) for pair in pairs[1:]]], node)


def _delayed(node: ast.expr) -> ast.expr:
    """``lambda: node``: evaluated only if it is needed, as Python does."""
    nothing = ast.arguments([], [], None, [], [], None, [])
    return ast.copy_location(ast.Lambda(nothing, node), node)


def _call(name: str, args: list[ast.expr], at: ast.expr) -> ast.expr:
    function = ast.copy_location(ast.Name(name, ast.Load()), at)
    return ast.copy_location(ast.Call(function, args, []), at)
