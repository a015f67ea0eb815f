"""The pattern language: what a piece of a program looks like.

    conv = is_op("nn.conv2d")(wildcard(), is_constant())
    pattern = is_op("nn.relu")(conv.optional(lambda x: is_op("nn.bias_add")(x, wildcard())))

A pattern object that occurs twice stands for one and the same expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.node import Node, child, ignored, leaf
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype

# how to match and to partition; the matcher stands above this file
_ENGINE: dict[str, Callable[..., Any]] = {}


def register_engine(**functions: Callable[..., Any]) -> None:
    """Tell what the methods `match` and `partition` of patterns call."""
    _ENGINE.update(functions)


def _every(_: RelayExpr) -> bool:
    return True


class DFPattern(Node, key="DFPattern"):
    """The base of patterns; Python's operators build patterns of calls."""

    def __call__(self, *args: DFPattern | Sequence[DFPattern] | None) -> CallPattern:
        """A call of this with the given arguments; with None instead, any arguments."""
        if len(args) == 1 and (args[0] is None or isinstance(args[0], (list, tuple))):
            return CallPattern(self, None if args[0] is None else _patterns(args[0]))
        return CallPattern(self, _patterns(args))  # type: ignore[arg-type]

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("divide")(self, other)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The pattern as text, of use to readers only."""
        del show_meta_data, annotate
        return str(self)

    def match(self, expr: RelayExpr) -> bool:
        """Whether `expr` looks like this."""
        return bool(_ENGINE["match"](self, expr))

    def partition(
        self,
        expr: RelayExpr,
        attrs: Mapping[str, Any] | None = None,
        check: Callable[[RelayExpr], bool] = _every,
    ) -> RelayExpr:
        """`expr` with each match, if `check` is true of it, moved into a function."""
        result = _ENGINE["partition"](self, expr, attrs, check)
        assert isinstance(result, RelayExpr)
        return result

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """This, with attributes of these values: of the call, the operator or the function."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Type) -> TypePattern:
        """This, of exactly that type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """This, a tensor of that dtype."""
        return DataTypePattern(self, as_dtype(dtype))

    def has_shape(self, shape: Sequence[Any]) -> ShapePattern:
        """This, a tensor of that shape."""
        return ShapePattern(self, shape)

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """This, computed from `parent` along `path` alone."""
        return DominatorPattern(parent, path if path is not None else wildcard(), self)

    def optional(self, option_constructor: Any) -> AltPattern:
        """`option_constructor(self)` where it is there, this otherwise."""
        return AltPattern(option_constructor(self), self)


def _patterns(values: Sequence[DFPattern] | None) -> tuple[DFPattern, ...] | None:
    return None if values is None else tuple(values)


class ExprPattern(DFPattern, key="relay.dataflow_pattern.ExprPattern"):
    """One given expression, or one structurally equal to it."""

    expr: RelayExpr


class VarPattern(DFPattern, key="relay.dataflow_pattern.VarPattern"):
    """A variable; of any name if the name is empty."""

    name: str = ""

    def __init__(self, name_hint: str = "") -> None:
        self._init(name_hint)


class ConstantPattern(DFPattern, key="relay.dataflow_pattern.ConstantPattern"):
    """A constant."""


class WildcardPattern(DFPattern, key="relay.dataflow_pattern.WildcardPattern"):
    """Anything; or, redirected, another pattern, which may contain this one."""

    pattern: DFPattern | None = ignored(default=None)

    def redirect_to(self, pat: DFPattern) -> None:
        """Stand for `pat` from now on: the way to write a recursive pattern."""
        object.__setattr__(self, "pattern", pat)


class CallPattern(DFPattern, key="relay.dataflow_pattern.CallPattern"):
    """A call; of any arguments if they are None."""

    op: DFPattern
    args: tuple[DFPattern, ...] | None = child(convert=_patterns)


class FunctionPattern(DFPattern, key="relay.dataflow_pattern.FunctionPattern"):
    """A function; of any parameters if they are None."""

    params: tuple[DFPattern, ...] | None = child(convert=_patterns)
    body: DFPattern


class IfPattern(DFPattern, key="relay.dataflow_pattern.IfPattern"):
    """A conditional."""

    cond: DFPattern
    true_branch: DFPattern
    false_branch: DFPattern


class LetPattern(DFPattern, key="relay.dataflow_pattern.LetPattern"):
    """A let."""

    var: DFPattern
    value: DFPattern
    body: DFPattern


class TuplePattern(DFPattern, key="relay.dataflow_pattern.TuplePattern"):
    """A tuple; of any fields if they are None."""

    fields: tuple[DFPattern, ...] | None = child(convert=_patterns)


class TupleGetItemPattern(DFPattern, key="relay.dataflow_pattern.TupleGetItemPattern"):
    """A field of a tuple; any field if the index is None."""

    tuple: DFPattern
    index: int | None = None

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self._init(tuple_value, index)


class AltPattern(DFPattern, key="relay.dataflow_pattern.AltPattern"):
    """The left one, or else the right one."""

    left: DFPattern
    right: DFPattern


class TypePattern(DFPattern, key="relay.dataflow_pattern.TypePattern"):
    """A pattern with a type."""

    pattern: DFPattern
    type: Type

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        self._init(pattern, ttype)


class DataTypePattern(DFPattern, key="relay.dataflow_pattern.DataTypePattern"):
    """A pattern with a dtype."""

    pattern: DFPattern
    dtype: DType = leaf(convert=as_dtype)


class ShapePattern(DFPattern, key="relay.dataflow_pattern.ShapePattern"):
    """A pattern with a shape."""

    pattern: DFPattern
    shape: Sequence[Any] = leaf(convert=tuple)


class AttrPattern(DFPattern, key="relay.dataflow_pattern.AttrPattern"):
    """A pattern with attributes."""

    pattern: DFPattern
    attrs: Mapping[str, Any] = leaf(convert=dict)


class DominatorPattern(DFPattern, key="relay.dataflow_pattern.DominatorPattern"):
    """`child`, every operand of which comes from `parent` along expressions like `path`."""

    parent: DFPattern
    path: DFPattern
    child: DFPattern


def is_var(name: str = "") -> VarPattern:
    """A variable, of that name if one is given."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """A constant."""
    return ConstantPattern()


def is_expr(expr: RelayExpr) -> ExprPattern:
    """An expression equal to `expr`."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """An operator; call the pattern to match calls of it."""
    return ExprPattern(Op.get(op_name))


def is_tuple(fields: Sequence[DFPattern] | None) -> TuplePattern:
    """A tuple of such fields."""
    return TuplePattern(_patterns(fields))


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of such a tuple."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """A conditional."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """A let."""
    return LetPattern(var, value, body)


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """Something of that type."""
    return TypePattern(pattern if pattern is not None else wildcard(), ttype)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """Something of that dtype."""
    return DataTypePattern(pattern if pattern is not None else wildcard(), as_dtype(dtype))


def has_shape(shape: Sequence[Any], pattern: DFPattern | None = None) -> ShapePattern:
    """Something of that shape."""
    return ShapePattern(pattern if pattern is not None else wildcard(), shape)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """Something with those attributes."""
    return AttrPattern(pattern if pattern is not None else wildcard(), attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """`child`, computed from `parent` along `path` alone."""
    return DominatorPattern(parent, path, child)
