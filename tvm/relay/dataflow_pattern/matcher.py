"""Comparing expressions with patterns.

A match notes what each pattern stands for, in order; what an alternative that fails has noted is
taken back. An expression is looked at once for each place in the pattern, so finding all matches
takes time linear in the size of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Constant, If, Let, Tuple, TupleGetItem, Var
from tvm.relay.function import Function
from tvm.relay.traverse import is_call_of, operands

from .backtracking import Backtracking, has_attributes, is_same_value
from .pattern import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
)

_COMMUTATIVE = {"add", "multiply"}
Found = list[tuple[DFPattern, RelayExpr]]


class Matcher(Backtracking[DFPattern]):
    """One comparison: `found` lists what the patterns stand for after `match` was true."""

    def _methods(self) -> Mapping[type, Callable[..., bool]]:
        return _MATCHERS

    # -- one method a kind of pattern

    def expr(self, pattern: ExprPattern, expr: RelayExpr) -> bool:
        if isinstance(pattern.expr, Op) or isinstance(expr, Op):
            return pattern.expr is expr
        return pattern.expr is expr or structural_equal(pattern.expr, expr)

    def var(self, pattern: VarPattern, expr: RelayExpr) -> bool:
        return isinstance(expr, Var) and pattern.name in ("", expr.name_hint)

    def constant(self, _: ConstantPattern, expr: RelayExpr) -> bool:
        return isinstance(expr, Constant)

    def wildcard(self, pattern: WildcardPattern, expr: RelayExpr) -> bool:
        if pattern.pattern is None:
            return True
        # each round of a recursive pattern binds its parts anew
        outer, self._bound = self._bound, {}
        matched = self.match(pattern.pattern, expr)
        self._bound = outer
        return matched

    def call(self, pattern: CallPattern, expr: RelayExpr) -> bool:
        if not isinstance(expr, Call):
            return False
        if not self.match(pattern.op, expr.op):
            return self._reassociated(pattern, expr)
        if pattern.args is None or self._all(pattern.args, expr.args):
            return True
        if len(expr.args) == 2 and isinstance(expr.op, Op) and expr.op.name in _COMMUTATIVE:
            if self._all(pattern.args, expr.args[::-1]):
                return True
        return self._reassociated(pattern, expr)

    def _reassociated(self, pattern: CallPattern, expr: Call) -> bool:
        """`a * (b / c)` and `(a * b) / c` are one thing written in two ways."""
        if pattern.args is None or len(pattern.args) != 2 or not isinstance(expr.op, Op):
            return False
        name = _op_name(pattern)
        if name == "divide" and _op_name(pattern.args[0]) == "multiply":
            if expr.op.name == "multiply":
                return self._over(pattern, expr)
        elif name == "multiply" and "divide" in [_op_name(arg) for arg in pattern.args]:
            if expr.op.name == "divide" and is_call_of(expr.args[0], "multiply"):
                return self._under(pattern, expr)
        return False

    def _over(self, pattern: CallPattern, expr: Call) -> bool:
        assert pattern.args is not None
        for quotient, other in (expr.args, expr.args[::-1]):
            if is_call_of(quotient, "divide"):
                assert isinstance(quotient, Call)
                product = Call(expr.op, (quotient.args[0], other))
                if self._all((pattern.op, *pattern.args), (quotient.op, product, quotient.args[1])):
                    self.found.append((_REASSOCIATED, quotient))
                    return True
        return False

    def _under(self, pattern: CallPattern, expr: Call) -> bool:
        product, divisor = expr.args
        assert isinstance(product, Call)
        assert pattern.args is not None
        for a, b in (product.args, product.args[::-1]):
            quotient = Call(expr.op, (a, divisor))
            for args in ((quotient, b), (b, quotient)):
                if self._all((pattern.op, *pattern.args), (product.op, *args)):
                    self.found.append((_REASSOCIATED, product))
                    return True
        return False

    def function(self, pattern: FunctionPattern, expr: RelayExpr) -> bool:
        if not isinstance(expr, Function):
            return False
        if pattern.params is not None and not self._all(pattern.params, expr.params):
            return False
        return self.match(pattern.body, expr.body)

    def tuple_(self, pattern: TuplePattern, expr: RelayExpr) -> bool:
        if not isinstance(expr, Tuple):
            return False
        return pattern.fields is None or self._all(pattern.fields, expr.fields)

    def item(self, pattern: TupleGetItemPattern, expr: RelayExpr) -> bool:
        if not isinstance(expr, TupleGetItem) or pattern.index not in (None, -1, expr.index):
            return False
        return self.match(pattern.tuple, expr.tuple_value)

    def if_(self, pattern: IfPattern, expr: RelayExpr) -> bool:
        parts = (pattern.cond, pattern.true_branch, pattern.false_branch)
        return isinstance(expr, If) and self._all(parts, operands(expr))

    def let(self, pattern: LetPattern, expr: RelayExpr) -> bool:
        parts = (pattern.var, pattern.value, pattern.body)
        return isinstance(expr, Let) and self._all(parts, operands(expr))

    def alternative(self, pattern: AltPattern, expr: RelayExpr) -> bool:
        return self.match(pattern.left, expr) or self.match(pattern.right, expr)

    def type_(self, pattern: TypePattern, expr: RelayExpr) -> bool:
        if not self.match(pattern.pattern, expr) or isinstance(expr, Op):
            return False
        return bool(structural_equal(infer_type_of(expr), pattern.type))

    def data_type(self, pattern: DataTypePattern, expr: RelayExpr) -> bool:
        if not self.match(pattern.pattern, expr) or isinstance(expr, Op):
            return False
        ty = infer_type_of(expr)
        return isinstance(ty, TensorType) and ty.dtype == pattern.dtype

    def shape(self, pattern: ShapePattern, expr: RelayExpr) -> bool:
        if not self.match(pattern.pattern, expr) or isinstance(expr, Op):
            return False
        ty = infer_type_of(expr)
        return (
            isinstance(ty, TensorType)
            and len(ty.shape) == len(pattern.shape)
            and all([is_same_value(a, b) for a, b in zip(ty.shape, pattern.shape, strict=True)])
        )

    def attributes(self, pattern: AttrPattern, expr: RelayExpr) -> bool:
        return self.match(pattern.pattern, expr) and has_attributes(expr, pattern.attrs)

    def dominator(self, pattern: DominatorPattern, expr: RelayExpr) -> bool:
        if not self.match(pattern.child, expr):
            return False
        waiting, seen, met_parent = [expr], {id(expr)}, False
        while waiting:
            is_reached = False
            for operand in _inputs(waiting.pop()):
                is_new, mark = id(operand) not in seen, len(self.found)
                if self.match(pattern.parent, operand):
                    met_parent = True
                elif is_new and self.match(pattern.path, operand):
                    self._take_back(mark, keep=True)  # the next one is another expression
                    seen.add(id(operand))
                    waiting.append(operand)
                elif is_new and isinstance(operand, (Var, Constant)):
                    continue  # a bias beside the path
                elif is_new:
                    return False
                is_reached = True
            if not is_reached:
                return False
        return met_parent


# stands for the inner half of a quotient of a product that is written the other way round
_REASSOCIATED = CallPattern(WildcardPattern(), None)


def _op_name(pattern: DFPattern) -> str | None:
    """The operator whose calls a pattern stands for."""
    if isinstance(pattern, CallPattern) and isinstance(pattern.op, ExprPattern):
        return getattr(pattern.op.expr, "name", None)
    return None


def _inputs(expr: RelayExpr) -> Sequence[RelayExpr]:
    return expr.args if isinstance(expr, Call) else operands(expr)


_MATCHERS: dict[type[DFPattern], Callable[..., bool]] = {
    ExprPattern: Matcher.expr,
    VarPattern: Matcher.var,
    ConstantPattern: Matcher.constant,
    WildcardPattern: Matcher.wildcard,
    CallPattern: Matcher.call,
    FunctionPattern: Matcher.function,
    TuplePattern: Matcher.tuple_,
    TupleGetItemPattern: Matcher.item,
    IfPattern: Matcher.if_,
    LetPattern: Matcher.let,
    AltPattern: Matcher.alternative,
    TypePattern: Matcher.type_,
    DataTypePattern: Matcher.data_type,
    ShapePattern: Matcher.shape,
    AttrPattern: Matcher.attributes,
    DominatorPattern: Matcher.dominator,
}


def matched(pattern: DFPattern, expr: RelayExpr) -> Found | None:
    """What the parts of `pattern` stand for in `expr`; None if it does not match."""
    if not isinstance(pattern, DFPattern):
        raise TVMError(f"a dataflow pattern is required, got {type(pattern).__name__}")
    matcher = Matcher()
    return matcher.found if matcher.match(pattern, expr) else None
