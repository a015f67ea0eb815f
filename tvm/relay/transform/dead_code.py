"""Remove bindings whose value nobody uses.

    let %x = add(%a, %b);
    %a                       ->    %a

A let whose value may have an effect (a reference, a call of unknown code) stays. A call that does
not end is no effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.adt import Constructor
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.adt import Match
from tvm.relay.expr import Call, Let, RefCreate, RefRead, RefWrite, Var
from tvm.relay.function import Function
from tvm.relay.transform.common import FunctionPass
from tvm.relay.traverse import (
    operands,
    post_order,
    rewrite_function,
    substitute,
)


def eliminate_dead_code(
    func: Function, mod: IRModule, inline_once: bool, ignore_impurity: bool
) -> Function:
    """Drop unused lets; with `inline_once`, put values used once in place of their variable."""
    return rewrite_function(func, _Sweeper(func, mod, inline_once, ignore_impurity).sweep)


class _Sweeper:
    """Drops the lets of a function that nothing live reads."""

    def __init__(
        self, func: Function, mod: IRModule, inline_once: bool, ignore_impurity: bool
    ) -> None:
        self.ignore_impurity = ignore_impurity
        self.inline_once = inline_once
        self.purity = _Purity(func, mod)
        self.uses = self._live_uses(func)

    def sweep(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not isinstance(new, Let) or not isinstance(old, Let):
            return new
        count = self.uses.get(id(old.var), 0)
        if count == 0 and self._may_go(old.value):
            return new.body
        if self.inline_once and count == 1 and self.purity.is_pure(old.value):
            return substitute(new.body, {new.var: new.value})
        return new

    def _may_go(self, value: RelayExpr) -> bool:
        return self.ignore_impurity or self.purity.is_pure(value)

    def _live_uses(self, func: Function) -> dict[int, int]:
        """How many live nodes read each variable; a value is live if its variable is."""
        counts: dict[int, int] = {}
        values: dict[int, RelayExpr] = {}
        seen: set[int] = set()
        stack: list[RelayExpr] = [func]
        while stack:
            node = stack.pop()
            if isinstance(node, Var):
                counts[id(node)] = counts.get(id(node), 0) + 1
                if id(node) in values:
                    stack.append(values.pop(id(node)))
                continue
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Let):
                if id(node.var) in counts or not self._may_go(node.value):
                    stack.append(node.value)
                else:
                    values[id(node.var)] = node.value
            stack.extend(_read_by(node))
        return counts


def _read_by(node: RelayExpr) -> Sequence[RelayExpr]:
    """What a node reads in any case."""
    if isinstance(node, (Let, Function)):
        return [node.body]
    if isinstance(node, Match):
        return [node.data, *[clause.rhs for clause in node.clauses]]
    return operands(node)


class _Purity:
    """Tells whether evaluating an expression of a function does nothing but give its value."""

    def __init__(self, func: Function, mod: IRModule) -> None:
        self.mod = mod
        # the functions that variables of the program stand for
        self.functions = {
            id(node.var): node.value
            for node in post_order(func)
            if isinstance(node, Let) and isinstance(node.value, Function)
        }
        self.known: dict[int, bool] = {}

    def is_pure(self, value: RelayExpr) -> bool:
        found = self.known.get(id(value))
        if found is None:
            found = self.known[id(value)] = self._has_no_effect(value)
        return found

    def _has_no_effect(self, value: RelayExpr) -> bool:
        if isinstance(value, Function):
            return True
        waiting, seen = [value], {id(value)}
        while waiting:
            for node in post_order(waiting.pop()):
                if isinstance(node, (RefCreate, RefRead, RefWrite)):
                    return False
                if not isinstance(node, Call) or isinstance(node.op, (Function, Constructor)):
                    continue
                if isinstance(node.op, Op):
                    if node.op.extra.get("TOpIsStateful"):
                        return False
                    continue
                called = self._called(node.op)
                if called is None:
                    return False
                if id(called) not in seen:
                    seen.add(id(called))
                    waiting.append(called)
        return True

    def _called(self, callee: RelayExpr) -> Function | None:
        if isinstance(callee, GlobalVar):
            func = self.mod.functions.get(callee)
            return func if isinstance(func, Function) else None
        return self.functions.get(id(callee))


def DeadCodeElimination(inline_once: bool = False, ignore_impurity: bool = False) -> Pass:
    """Drop values that nobody uses.

    Parameters
    ----------
    inline_once : bool
        Whether a value that is used once goes to its use.
    ignore_impurity : bool
        Drop calls with effects, too, if nobody takes their results.
    """

    def run(func: Function, mod: IRModule, _: PassContext) -> Function:
        return eliminate_dead_code(func, mod, inline_once, ignore_impurity)

    return FunctionPass(run, PassInfo(1, "DeadCodeElimination"))
