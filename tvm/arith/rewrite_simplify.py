"""Simplification by the rule tables, from the operands up.

Each method named after an operation is a constructor that simplifies: `add(a, b)` is the simple form of `Add(a, b)`
for simple operands. The rules build their replacements with the same constructors, so a result needs no second visit.
Expressions are hash-consed and results kept, per constraint scope.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.tir import expr as tir
from tvm.tir import fold, math_op
from tvm.tir.fold import truncated_quotient

from .facts import reads_memory
from .rules import BOOLEAN, FLOAT, INDEX, TABLES, WRAPPING
from .rules.notation import evaluate_truncmod

if TYPE_CHECKING:
    from .analyzer import Analyzer

Visit = Callable[[Any], Any]
_MISSING: Any = object()
_CONSTANTS = frozenset({tir.IntImm, tir.FloatImm})
_LEAVES = frozenset({tir.IntImm, tir.FloatImm, tir.Var, tir.SizeVar})
# a chain of rules that long means that two rules undo each other
MAX_CHAIN = 200

_FOLD: dict[type, Callable[[int, int], int]] = {
    tir.Add: lambda a, b: a + b,
    tir.Sub: lambda a, b: a - b,
    tir.Mul: lambda a, b: a * b,
    tir.Div: truncated_quotient,
    tir.Mod: evaluate_truncmod,
    tir.FloorDiv: lambda a, b: a // b,
    tir.FloorMod: lambda a, b: a % b,
    tir.Min: min,
    tir.Max: max,
    tir.EQ: lambda a, b: a == b,
    tir.NE: lambda a, b: a != b,
    tir.LT: lambda a, b: a < b,
    tir.LE: lambda a, b: a <= b,
    tir.GT: lambda a, b: a > b,
    tir.GE: lambda a, b: a >= b,
    tir.And: lambda a, b: bool(a) and bool(b),
    tir.Or: lambda a, b: bool(a) or bool(b),
}
_NEUTRAL = frozenset((tir.Add, tir.Sub))
_FOLD_FLOATS: dict[type, Callable[[Any, Any], PrimExpr | None]] = {
    tir.Add: fold.fold_add,
    tir.Sub: fold.fold_sub,
    tir.Mul: fold.fold_mul,
    tir.Div: fold.fold_div,
    tir.Min: fold.fold_min,
    tir.Max: fold.fold_max,
}
_DIVISIONS = frozenset({tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod})
# operations whose constant operand stands on the right, but for floats
_COMMUTATIVE = frozenset({tir.Add, tir.Mul, tir.Min, tir.Max, tir.EQ, tir.NE, tir.And, tir.Or})
_COMPARISONS = frozenset({tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE})


def kind_of(dtype: DType) -> int:
    """Which tables are sound for a dtype."""
    element = dtype.element
    if element == "int32" or element == "int64":
        return INDEX
    if element.is_bool:
        return BOOLEAN
    return WRAPPING if element.is_int or element.is_uint else FLOAT


class RewriteSimplifier:
    """Constructors that apply the rules."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.interner = analyzer.interner
        self.constant = self.interner.constant
        self.memo: dict[int, Any] = {}
        self._kinds: dict[DType, int] = {}
        self._chain = 0
        self.broken_chains = 0  # the tests demand that it stays 0
        self.has_vscale = False  # whether any expression so far depends on it

    def visit(self, expr: Any) -> Any:
        """The simple form of an interned expression."""
        found = self.memo.get(id(expr))
        if found is None:
            found = self.rebuild(expr, self.visit)
            self.memo[id(expr)] = found
        return found

    def rebuild(self, expr: Any, visit: Visit) -> Any:
        """The simple form of the expression with its operands visited."""
        method = _REBUILDERS.get(expr.__class__)
        return self._rebuild_other(expr, visit) if method is None else method(self, expr, visit)

    # ---- constructors: the names that rules use

    def add(self, a: Any, b: Any) -> Any:
        return self.binary(tir.Add, a, b)

    def sub(self, a: Any, b: Any) -> Any:
        return self.binary(tir.Sub, a, b)

    def mul(self, a: Any, b: Any) -> Any:
        return self.binary(tir.Mul, a, b)

    def div(self, a: Any, b: Any) -> Any:
        return self.binary(tir.Div, a, b)

    truncdiv = div

    def truncmod(self, a: Any, b: Any) -> Any:
        return self.binary(tir.Mod, a, b)

    def floordiv(self, a: Any, b: Any) -> Any:
        return self.binary(tir.FloorDiv, a, b)

    def floormod(self, a: Any, b: Any) -> Any:
        return self.binary(tir.FloorMod, a, b)

    def min(self, a: Any, b: Any) -> Any:
        return self.binary(tir.Min, a, b)

    def max(self, a: Any, b: Any) -> Any:
        return self.binary(tir.Max, a, b)

    def eq(self, a: Any, b: Any) -> Any:
        return self.binary(tir.EQ, a, b)

    def ne(self, a: Any, b: Any) -> Any:
        return self.binary(tir.NE, a, b)

    def lt(self, a: Any, b: Any) -> Any:
        return self.binary(tir.LT, a, b)

    def le(self, a: Any, b: Any) -> Any:
        return self.binary(tir.LE, a, b)

    def gt(self, a: Any, b: Any) -> Any:
        return self.binary(tir.LT, b, a)

    def ge(self, a: Any, b: Any) -> Any:
        return self.binary(tir.LE, b, a)

    def logical_and(self, a: Any, b: Any) -> Any:
        return self.binary(tir.And, *self._of_equal_lanes(a, b))

    def logical_or(self, a: Any, b: Any) -> Any:
        return self.binary(tir.Or, *self._of_equal_lanes(a, b))

    def _of_equal_lanes(self, a: Any, b: Any) -> tuple[Any, Any]:
        # a select of vectors may have one condition for all lanes
        if a.dtype.lanes > b.dtype.lanes:
            return a, self.broadcast(b, a.dtype.lanes)
        if a.dtype.lanes < b.dtype.lanes:
            return self.broadcast(a, b.dtype.lanes), b
        return a, b

    def logical_not(self, a: Any) -> Any:
        if a.__class__ is tir.IntImm:
            return self.constant(int(not a.value), a.dtype)
        node = self.interner.node(tir.Not(a))
        return self._rewritten(node, "logical_not", BOOLEAN, (a,))

    def select(self, condition: Any, true_value: Any, false_value: Any) -> Any:
        if condition.__class__ is tir.IntImm:
            return true_value if condition.value else false_value
        node = self.interner.node(tir.Select(condition, true_value, false_value))
        kind = self.kind(true_value.dtype)
        return self._rewritten(node, "select", kind, (condition, true_value, false_value))

    def ramp(self, base: Any, stride: Any, lanes: int) -> Any:
        if stride.__class__ is tir.IntImm and stride.value == 0:
            return self.broadcast(base, lanes)
        return self.interner.node(tir.Ramp(base, stride, lanes))

    def broadcast(self, value: Any, lanes: int) -> Any:
        return self.interner.node(tir.Broadcast(value, lanes))

    def cast(self, dtype: DType, value: Any) -> Any:
        source = value.dtype
        if source is dtype:
            return value
        cls = value.__class__
        if isinstance(value, tir.ConstExpr):
            folded = fold.fold_cast(value, dtype)
            if folded is not None:
                return self.interner.intern(folded)
        if cls is tir.Broadcast:
            return self.broadcast(self.cast(dtype.element, value.value), value.lanes)
        if cls is tir.Ramp and self.kind(source) == INDEX and self.kind(dtype) == INDEX:
            base = self.cast(dtype.element, value.base)
            return self.ramp(base, self.cast(dtype.element, value.stride), value.lanes)
        if cls is tir.Cast and _is_lossless(value.value.dtype, source):
            return self.cast(dtype, value.value)
        return self.interner.node(tir.Cast(dtype, value))

    def truth(self, value: int, like: DType) -> Any:
        """A truth value with as many lanes as `like`."""
        return self.constant(int(value), tir.BOOL.with_lanes(like.lanes))

    # ---- measures: the names that conditions use

    def lower(self, expr: Any) -> int:
        return self.analyzer.bounds.visit(expr)[0]

    def upper(self, expr: Any) -> int:
        return self.analyzer.bounds.visit(expr)[1]

    def modulus(self, expr: Any) -> int:
        return self.analyzer.modular.visit(expr)[0]

    def residue(self, expr: Any) -> int:
        return self.analyzer.modular.visit(expr)[1]

    def ordered(self, a: Any, b: Any) -> bool:
        """Whether a <= b is known."""
        if a.dtype.lanes > 1:
            return False
        analyzer = self.analyzer
        return analyzer.prover.is_not_negative(analyzer.linear.difference(b, a))

    def same(self, a: Any, b: Any) -> bool:
        """Whether a == b is known."""
        if a is b or a.dtype.lanes > 1:
            return a is b
        form = self.analyzer.linear.difference(b, a)
        return not form.terms and form.constant == 0

    def below(self, a: Any, b: Any) -> bool:
        """Whether a < b is known."""
        if a.dtype.lanes > 1:
            return False
        analyzer = self.analyzer
        return analyzer.prover.is_not_negative(analyzer.linear.difference(b, a).shifted(-1))

    def nonzero(self, expr: Any) -> bool:
        """Whether a divisor is not zero; those computed from no data are extents."""
        low, high = self.analyzer.bounds.visit(expr)
        return low > 0 or high < 0 or not reads_memory(expr)

    def integral(self, expr: Any) -> bool:
        return not expr.dtype.is_float

    def symbolic(self, expr: Any) -> bool:
        return expr.__class__ is not tir.IntImm

    # ---- the engine's use

    def kind(self, dtype: DType) -> int:
        found = self._kinds.get(dtype)
        if found is None:
            found = self._kinds[dtype] = kind_of(dtype)
        return found

    def binary(self, cls: Any, a: Any, b: Any) -> Any:
        """The simple form of `cls(a, b)`."""
        if cls in _COMMUTATIVE and a.__class__ in _CONSTANTS and b.__class__ not in _CONSTANTS:
            if a.__class__ is tir.FloatImm:
                return self._float_before(cls, a, b)
            a, b = b, a
        node = self.interner.binary(cls, a, b)
        found = self.memo.get(id(node))
        if found is None:
            found = self.memo[id(node)] = self._binary(node, cls, a, b)
        return found

    def _float_before(self, cls: Any, a: Any, b: Any) -> Any:
        """What laws make of a float and an operand; without one, both in the program's order."""
        found = self.binary(cls, b, a)
        is_unchanged = found is self.interner.binary(cls, b, a)
        return self.interner.binary(cls, a, b) if is_unchanged else found

    def _binary(self, node: Any, cls: Any, a: Any, b: Any) -> Any:
        if a.__class__ is tir.IntImm and b.__class__ is tir.IntImm:
            if b.value == 0 and cls in _DIVISIONS:
                return node
            return self.constant(int(_FOLD[cls](a.value, b.value)), node.dtype)
        if a.__class__ is tir.FloatImm and b.__class__ is tir.FloatImm:
            folded = _FOLD_FLOATS[cls](a, b) if cls in _FOLD_FLOATS else None
            return node if folded is None else self.interner.intern(folded)
        if b.__class__ is tir.FloatImm and cls in _NEUTRAL and _FOLD_FLOATS[cls](a, b) is a:
            return a  # not said by rules, which tell no -0.0 from 0.0
        if cls in _NEUTRAL and a.__class__ is tir.Cast and _is_float_zero(b) and _is_number(a):
            return a  # an integer is never -0.0
        if cls in _DIVISIONS and a.__class__ is tir.Ramp and _is_zero_vector(b):
            raise TVMError("a division requires a divisor other than zero, got 0", at=node)
        if cls is tir.GT:
            return self.binary(tir.LT, b, a)
        if cls is tir.GE:
            return self.binary(tir.LE, b, a)
        kind = self.kind(a.dtype)
        rules = TABLES[kind].get(cls)
        if rules is not None:
            result = self._apply(rules, (a, b))
            if result is not None:
                return result
        if cls in _COMPARISONS and kind == INDEX and a.dtype.lanes == 1:
            known = self.analyzer.decide(node)
            if known is not None:
                return self.truth(known, a.dtype)
        if kind == BOOLEAN and (fact := self.analyzer.facts.truth_of(node)) is not None:
            return self.truth(fact, a.dtype)
        return node

    def _apply(self, rules: Any, operands: tuple[Any, ...]) -> Any:
        classes = tuple([operand.__class__ for operand in operands])
        function = rules.functions.get(classes, _MISSING)
        if function is _MISSING:
            function = rules.bucket(*classes)
        if function is None:
            return None
        if self._chain >= MAX_CHAIN:
            self.broken_chains += 1
            return None
        self._chain += 1
        try:
            return function(self, *operands)
        finally:
            self._chain -= 1

    def _rewritten(self, node: Any, name: str, kind: int, operands: tuple[Any, ...]) -> Any:
        found = self.memo.get(id(node))
        if found is not None:
            return found
        result = node
        rules = TABLES[kind].get(node.__class__)
        if rules is not None:
            result = self._apply(rules, operands)
            if result is None:
                result = node
        if result is node and (fact := self.analyzer.facts.truth_of(node)) is not None:
            result = self.truth(fact, node.dtype)
        self.memo[id(node)] = result
        return result

    # ---- node by node

    def _rebuild_binary(self, expr: Any, visit: Visit) -> Any:
        return self.binary(expr.__class__, visit(expr.a), visit(expr.b))

    def _rebuild_var(self, var: Any, visit: Visit) -> Any:
        facts = self.analyzer.facts
        value = facts.value_of(var)
        if value is not None:
            return value
        bound = facts.bound_of(var)
        if bound is not None and bound[0] == bound[1]:
            return self.constant(bound[0], var.dtype)
        return var

    def _rebuild_let(self, expr: tir.Let, visit: Visit) -> Any:
        value = visit(expr.value)
        if isinstance(value, (tir.ConstExpr, tir.Var)):
            return visit(self.analyzer.substitute(expr.body, {expr.var: value}))
        return self.interner.node(tir.Let(expr.var, value, visit(expr.body)))

    def _rebuild_select(self, expr: tir.Select, visit: Visit) -> Any:
        condition = visit(expr.condition)
        if condition.__class__ is tir.IntImm:
            return visit(expr.true_value if condition.value else expr.false_value)
        values = self._branches(condition, expr.true_value, expr.false_value, visit)
        return self.select(condition, *values)

    def _branches(self, condition: Any, yes: Any, no: Any, visit: Visit) -> tuple[Any, Any]:
        """The alternatives, each simplified where its condition holds."""
        if condition.__class__ is tir.IntImm or condition.dtype.lanes > 1:
            return visit(yes), visit(no)
        with self.analyzer.assuming(condition):
            yes = visit(yes)
        if no.__class__ not in _LEAVES:
            with self.analyzer.assuming(self.logical_not(condition)):
                no = visit(no)
        return yes, no

    def _rebuild_call(self, expr: tir.Call, visit: Visit) -> Any:
        name = getattr(expr.op, "name", "")
        if name == "tir.if_then_else":
            condition = visit(expr.args[0])
            if condition.__class__ is tir.IntImm:
                return visit(expr.args[1 if condition.value else 2])
            yes, no = self._branches(condition, expr.args[1], expr.args[2], visit)
            return self._if_then_else(expr, condition, yes, no)
        if name == "tir.vscale":
            self.has_vscale = True
        args = tuple([visit(arg) for arg in expr.args])
        if name == "tir.likely" and args[0].__class__ is tir.IntImm:
            return args[0]
        if name in _BITS and all([arg.__class__ is tir.IntImm for arg in args]):
            value = _BITS[name](*args)
            return self._call(expr, args) if value is None else self.constant(value, expr.dtype)
        if name in _ROUNDINGS and args[0].__class__ is tir.FloatImm:
            return self.interner.node(_ROUNDINGS[name](args[0]))
        return self._call(expr, args)

    def _if_then_else(self, expr: tir.Call, condition: Any, yes: Any, no: Any) -> Any:
        if yes is no:
            return yes
        if yes.__class__ is tir.Call and yes.op is expr.op and yes.args[2] is no:
            inner, yes, _ = yes.args
            condition = self.logical_and(condition, inner)
        return self._call(expr, (condition, yes, no))

    def _call(self, expr: tir.Call, args: tuple[Any, ...]) -> Any:
        if all([new is old for new, old in zip(args, expr.args, strict=True)]):
            return self._known_truth(expr)
        return self._known_truth(self.interner.node(expr.replace(args=args)))

    def _rebuild_other(self, expr: Any, visit: Visit) -> Any:
        result = expr.map_children(visit)
        return self._known_truth(expr if result is expr else self.interner.node(result))

    def _known_truth(self, node: Any) -> Any:
        if isinstance(node, PrimExpr) and node.dtype.is_bool:
            fact = self.analyzer.facts.truth_of(node)
            if fact is not None:
                return self.truth(fact, node.dtype)
        return node


# each takes expressions of its own kind
_REBUILDERS: dict[type, Callable[[RewriteSimplifier, Any, Visit], Any]] = {
    **dict.fromkeys(_FOLD, RewriteSimplifier._rebuild_binary),
    tir.Not: lambda s, e, visit: s.logical_not(visit(e.a)),
    tir.Select: RewriteSimplifier._rebuild_select,
    tir.Ramp: lambda s, e, visit: s.ramp(visit(e.base), visit(e.stride), e.lanes),
    tir.Broadcast: lambda s, e, visit: s.broadcast(visit(e.value), e.lanes),
    tir.Cast: lambda s, e, visit: s.cast(e.dtype, visit(e.value)),
    tir.Let: RewriteSimplifier._rebuild_let,
    tir.IntImm: lambda s, e, visit: e,
    tir.Var: RewriteSimplifier._rebuild_var,
    tir.SizeVar: RewriteSimplifier._rebuild_var,
    tir.Call: RewriteSimplifier._rebuild_call,
}


def _shifted(left: bool) -> Callable[[tir.IntImm, tir.IntImm], int | None]:
    def shift(a: tir.IntImm, b: tir.IntImm) -> int | None:
        if b.value < 0:
            return None
        distance = min(b.value, a.dtype.bits)
        return tir.wrap(a.value << distance, a.dtype) if left else a.value >> distance

    return shift


def _leading_zeros(a: tir.IntImm) -> int:
    bits = a.dtype.bits
    return bits - (a.value & (1 << bits) - 1).bit_length()


# functions of the bits of constants
_BITS: dict[str, Callable[..., int | None]] = {
    "tir.shift_left": _shifted(left=True),
    "tir.shift_right": _shifted(left=False),
    "tir.clz": _leading_zeros,
    "tir.popcount": lambda a: (a.value & (1 << a.dtype.bits) - 1).bit_count(),
}


# functions that number positions, so that places and extents follow from their constants
_ROUNDINGS = {
    f"tir.{f.__name__}": f
    for f in (math_op.floor, math_op.ceil, math_op.trunc, math_op.round, math_op.nearbyint)
}


def _is_float_zero(expr: Any) -> bool:
    """Whether the expression is 0.0 or -0.0, in all lanes."""
    value = expr.value if expr.__class__ is tir.Broadcast else expr
    return value.__class__ is tir.FloatImm and value.value == 0


def _is_zero_vector(expr: Any) -> bool:
    return (
        expr.__class__ is tir.Broadcast
        and expr.value.__class__ is tir.IntImm
        and expr.value.value == 0
    )


def _is_number(cast: tir.Cast) -> bool:
    """Whether a cast's operand is an integer."""
    return cast.value.dtype.is_int or cast.value.dtype.is_uint


def _is_lossless(source: DType, target: DType) -> bool:
    """Whether every value of `source` is one of `target`, so that a cast through it changes nothing."""
    if source.is_bool or target.is_bool:
        return False
    if source.is_int and target.is_int:
        return source.bits <= target.bits
    return source.is_uint and target.is_uint and source.bits <= target.bits
