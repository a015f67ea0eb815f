"""Comparing expressions with patterns, through the variables that they are bound to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Any

from tvm.arith import Analyzer
from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
from tvm.relax.expr import (
    Call,
    Constant,
    DataflowVar,
    ExternFunc,
    Function,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.struct_info_relations import (
    BaseCheckResult,
    CallDeriver,
    prove_equal,
    tir_vars_in,
)
from tvm.relay.dataflow_pattern.backtracking import Backtracking, has_attributes
from tvm.support import deep
from tvm.tir import Var as TirVar
from tvm.tir.stmt_functor import substitute

from . import pattern as patterns
from .pattern import DFPattern

_COMMUTATIVE = {"relax.add", "relax.multiply"}
Values = Mapping[Var, RelayExpr]


class Matcher(Backtracking[DFPattern]):
    """One comparison: `found` lists what the patterns stand for after `match` was true.

    Parameters
    ----------
    values : of variables; parts of patterns are compared with them.
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.values = values

    def _methods(self) -> Mapping[type, Callable[..., bool]]:
        return _MATCHERS

    def value_of(self, expr: RelayExpr) -> RelayExpr:
        """What a variable is bound to, if that is known."""
        while isinstance(expr, Var) and (value := self.values.get(expr)) is not None:
            expr = value
        return expr

    # -- one method a kind of pattern

    def expr(self, pattern: patterns.ExprPattern, expr: RelayExpr) -> bool:
        wanted = pattern.expr
        if isinstance(wanted, (Op, Var, GlobalVar)) or isinstance(expr, Op):
            return wanted is expr
        expr = self.value_of(expr)
        return wanted is expr or structural_equal(wanted, expr)

    def var(self, pattern: patterns.VarPattern, expr: RelayExpr) -> bool:
        return isinstance(expr, Var) and pattern.name in ("", expr.name_hint)

    def dataflow_var(self, pattern: patterns.DataflowVarPattern, expr: RelayExpr) -> bool:
        return isinstance(expr, DataflowVar) and pattern.name in ("", expr.name_hint)

    def global_var(self, pattern: patterns.GlobalVarPattern, expr: RelayExpr) -> bool:
        return isinstance(expr, GlobalVar) and pattern.name in ("", expr.name_hint)

    def extern(self, pattern: patterns.ExternFuncPattern, expr: RelayExpr) -> bool:
        if not isinstance(expr, ExternFunc):
            return False
        return pattern.global_symbol in ("", expr.global_symbol)

    def constant(self, _: patterns.ConstantPattern, expr: RelayExpr) -> bool:
        return isinstance(self.value_of(expr), Constant)

    def wildcard(self, _: patterns.WildcardPattern, expr: RelayExpr) -> bool:
        return True

    def call(self, pattern: patterns.CallPattern, expr: RelayExpr) -> bool:
        call = self.value_of(expr)
        if not isinstance(call, Call) or not self.match(pattern.op, call.op):
            return False
        count = len(pattern.args)
        if count > len(call.args) or (count < len(call.args) and not pattern.varg_default_wildcard):
            return False
        if self._all(pattern.args, call.args[:count]):
            return True
        is_commutative = isinstance(call.op, Op) and call.op.name in _COMMUTATIVE
        return is_commutative and self._all(pattern.args, call.args[::-1])

    def function(self, pattern: patterns.FunctionPattern, expr: RelayExpr) -> bool:
        func = self.value_of(expr)
        if not isinstance(func, Function) or func.body is None:
            return False
        if pattern.params is not None and not self._all(pattern.params, func.params):
            return False
        # the body's own bindings are visible in it
        outer = self.values
        bound = {b.var: b.value for block in func.body.blocks for b in block.bindings}
        self.values = {**outer, **bound}
        result = self.match(pattern.body, func.body.body)
        self.values = outer
        return result

    def tuple_(self, pattern: patterns.TuplePattern, expr: RelayExpr) -> bool:
        value = self.value_of(expr)
        return isinstance(value, Tuple) and self._all(pattern.fields, value.fields)

    def unordered(self, pattern: patterns.UnorderedTuplePattern, expr: RelayExpr) -> bool:
        value = self.value_of(expr)
        if not isinstance(value, Tuple) or len(value.fields) != len(pattern.fields):
            return False
        return any([self._all(pattern.fields, fields) for fields in _orders(value.fields)])

    def item(self, pattern: patterns.TupleGetItemPattern, expr: RelayExpr) -> bool:
        value = self.value_of(expr)
        if not isinstance(value, TupleGetItem) or pattern.index not in (None, -1, value.index):
            return False
        return self.match(pattern.tuple, value.tuple_value)

    def either(self, pattern: patterns.OrPattern, expr: RelayExpr) -> bool:
        return self.match(pattern.left, expr) or self.match(pattern.right, expr)

    def both(self, pattern: patterns.AndPattern, expr: RelayExpr) -> bool:
        return self.match(pattern.left, expr) and self.match(pattern.right, expr)

    def rejected(self, pattern: patterns.NotPattern, expr: RelayExpr) -> bool:
        mark = len(self.found)
        is_match = self.match(pattern.reject, expr)
        self._take_back(mark)
        return not is_match

    def struct_info(self, pattern: patterns.StructInfoPattern, expr: RelayExpr) -> bool:
        if expr.struct_info_ is None or not self.match(pattern.pattern, expr):
            return False
        # symbolic variables stand for the same numbers in all parts of the pattern
        pairs = [
            (p.struct_info, e.struct_info_)
            for p, e in self.found
            if isinstance(p, patterns.StructInfoPattern)
        ]
        return describes([*pairs, (pattern.struct_info, expr.struct_info_)])

    def type_(self, pattern: patterns.TypePattern, expr: RelayExpr) -> bool:
        if expr.struct_info_ is None or not self.match(pattern.pattern, expr):
            return False
        return structural_equal(expr.struct_info_.static_type(), pattern.type)

    def data_type(self, pattern: patterns.DataTypePattern, expr: RelayExpr) -> bool:
        info = expr.struct_info_
        if not isinstance(info, TensorStructInfo) or info.dtype != pattern.dtype:
            return False
        return self.match(pattern.pattern, expr)

    def shape(self, pattern: patterns.ShapePattern, expr: RelayExpr) -> bool:
        info = expr.struct_info_
        if not isinstance(info, TensorStructInfo):
            return False
        return are_same(pattern.shape, info.dimensions) and self.match(pattern.pattern, expr)

    def dimensions(self, pattern: patterns.PrimArrPattern, expr: RelayExpr) -> bool:
        value = self.value_of(expr)
        return isinstance(value, ShapeExpr) and are_same(pattern.fields, value.values)

    def attributes(self, pattern: patterns.AttrPattern, expr: RelayExpr) -> bool:
        if not self.match(pattern.pattern, expr):
            return False
        value = self.value_of(expr)
        if isinstance(value, Call) and not has_attributes(value, pattern.attrs):
            # those of the operator itself
            return isinstance(value.op, Op) and has_attributes(value.op, pattern.attrs)
        return has_attributes(value, pattern.attrs)


def _orders(fields: Sequence[RelayExpr]) -> list[tuple[RelayExpr, ...]]:
    return list(permutations(fields))


def are_same(a: Sequence[Any] | None, b: Sequence[Any] | None) -> bool:
    """Whether two shapes are known and the same."""
    if a is None or b is None or len(a) != len(b):
        return False
    return all([prove_equal(x, y) for x, y in zip(a, b, strict=True)])


class _Unifier(CallDeriver):
    """Finds what the symbolic variables of patterns stand for."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[tuple[Any, Any]] = []

    def numbers(self, base: Any, derived: Any) -> BaseCheckResult:
        if isinstance(base, TirVar) or not tir_vars_in(base):
            return super().numbers(base, derived)
        self.pending.append((base, derived))
        return BaseCheckResult.PASS

    def has_solution(self) -> bool:
        """Whether expressions over the variables have the values that were found."""
        analyzer = Analyzer()
        return all(
            [
                prove_equal(analyzer.simplify(substitute(a, self.numbers_of)), b)
                for a, b in self.pending
            ]
        )


def describes(pairs: Sequence[tuple[Any, Any]]) -> bool:
    """Whether struct info of patterns describes that of expressions, for some symbolic variables."""
    unifier = _Unifier()
    results = [unifier.check(wanted, given) for wanted, given in pairs]
    return all([r is BaseCheckResult.PASS for r in results]) and unifier.has_solution()


_MATCHERS: dict[type, Callable[..., bool]] = {
    patterns.ExprPattern: Matcher.expr,
    patterns.VarPattern: Matcher.var,
    patterns.DataflowVarPattern: Matcher.dataflow_var,
    patterns.GlobalVarPattern: Matcher.global_var,
    patterns.ExternFuncPattern: Matcher.extern,
    patterns.ConstantPattern: Matcher.constant,
    patterns.WildcardPattern: Matcher.wildcard,
    patterns.CallPattern: Matcher.call,
    patterns.FunctionPattern: Matcher.function,
    patterns.TuplePattern: Matcher.tuple_,
    patterns.UnorderedTuplePattern: Matcher.unordered,
    patterns.TupleGetItemPattern: Matcher.item,
    patterns.OrPattern: Matcher.either,
    patterns.AndPattern: Matcher.both,
    patterns.NotPattern: Matcher.rejected,
    patterns.StructInfoPattern: Matcher.struct_info,
    patterns.TypePattern: Matcher.type_,
    patterns.DataTypePattern: Matcher.data_type,
    patterns.ShapePattern: Matcher.shape,
    patterns.PrimArrPattern: Matcher.dimensions,
    patterns.AttrPattern: Matcher.attributes,
}


@deep
def matched(
    pattern: DFPattern, expr: RelayExpr, values: Values | None = None
) -> dict[DFPattern, RelayExpr] | None:
    """What the parts of a pattern stand for in an expression; None if it does not match."""
    if not isinstance(pattern, DFPattern):
        raise TVMError(f"a dataflow pattern is required, got {type(pattern).__name__}")
    matcher = Matcher(values or {})
    return dict(matcher.found) if matcher.match(pattern, expr) else None


patterns.matched.provide(matched)
