"""Compute equal expressions once.

%0 = nn.relu(%x);
%1 = nn.relu(%x);    ->    %0 = nn.relu(%x);
add(%0, %1)                add(%0, %0)
"""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.structural import structural_equal, structural_hash
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem
from tvm.relay.function import Function
from tvm.relay.rounding import is_free_rounding
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import rewrite_function

Skip = Callable[[RelayExpr], bool]


class _Sharer:
    """Maps every pure call to the first one equal to it."""

    def __init__(self, skip: Skip | None) -> None:
        self.skip = skip
        self.firsts: dict[object, RelayExpr] = {}
        # those on the operands of a first one with other attributes, by the hash of these
        self.others: dict[object, list[RelayExpr]] = {}

    def share(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        del old
        if (key := _key(new)) is None or (self.skip is not None and self.skip(new)):
            return new
        first = self.firsts.setdefault(key, new)
        if first is new or not isinstance(new, Call) or _same_attrs(first, new):
            return first
        candidates = self.others.setdefault((key, structural_hash(new.attrs)), [])
        for candidate in candidates:
            if _same_attrs(candidate, new):
                return candidate
        candidates.append(new)
        return new


def _key(expr: RelayExpr) -> object:
    """What equal expressions share: kind, operator, operands by identity."""
    if is_operator_call(expr):
        if expr.operator.extra.get("TOpIsStateful") or not expr.args:
            return None
        # a rounding that the program asks for is not one that may be left out
        mark = is_free_rounding(expr)
        return (expr.operator.name, mark, tuple([_operand_key(a) for a in expr.args]))
    if isinstance(expr, TupleGetItem):
        return ("item", id(expr.tuple_value), expr.index)
    if isinstance(expr, Tuple) and expr.fields:
        return ("tuple", tuple([_operand_key(f) for f in expr.fields]))
    return None


def _operand_key(expr: RelayExpr) -> object:
    if isinstance(expr, Constant) and not expr.data.shape:
        return (str(expr.data.dtype), expr.data.elements().item())
    return id(expr)


def _same_attrs(a: RelayExpr, b: Call) -> bool:
    return isinstance(a, Call) and structural_equal(a.attrs, b.attrs)


def EliminateCommonSubexpr(fskip: Skip | None = None) -> Pass:
    """The pass; expressions for which `fskip` is true are left alone."""

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return rewrite_function(func, _Sharer(fskip).share)

    return FunctionPass(run, PassInfo(2, "EliminateCommonSubexpr"))
