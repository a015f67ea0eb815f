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
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.adt import Match
from tvm.relay.expr import Call, Let, RefCreate, RefRead, RefWrite, Var
from tvm.relay.function import Function
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import PostOrderRewriter, operands, post_order, substitute


def eliminate_dead_code(
    func: Function, mod: IRModule, inline_once: bool, ignore_impurity: bool
) -> Function:
    """Drop unused lets; with `inline_once`, put values used once in place of their variable."""
    return _Sweeper(func, mod, inline_once, ignore_impurity).run(func)


class _Sweeper(PostOrderRewriter):
    """Drops the lets of a function that nothing live reads."""

    def __init__(
        self, func: Function, mod: IRModule, inline_once: bool, ignore_impurity: bool
    ) -> None:
        self.ignore_impurity = ignore_impurity
        self.inline_once = inline_once
        self.purity = _Purity(func, mod)
        self.uses = self._live_uses(func)

    def visit_let(self, new: Let, old: Let) -> RelayExpr:
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
            if type(node) is Var:
                counts[id(node)] = counts.get(id(node), 0) + 1
                if id(node) in values:
                    stack.append(values.pop(id(node)))
                continue
            if id(node) in seen:
                continue
            seen.add(id(node))
            if type(node) is Let:
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
    if type(node) is Match:
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
            if type(node) is Let and type(node.value) is Function
        }
        self.known: dict[int, bool] = {}

    def is_pure(self, value: RelayExpr) -> bool:
        found = self.known.get(id(value))
        if found is None:
            found = self.known[id(value)] = self._has_no_effect(value)
        return found

    def _has_no_effect(self, value: RelayExpr) -> bool:
        if type(value) is Function:
            return True
        waiting, seen = [value], {id(value)}
        while waiting:
            for node in post_order(waiting.pop()):
                if isinstance(node, (RefCreate, RefRead, RefWrite)):
                    return False
                if type(node) is not Call or isinstance(node.op, (Function, Constructor)):
                    continue
                if is_operator_call(node):
                    if node.operator.extra.get("TOpIsStateful"):
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
        if type(callee) is not GlobalVar:
            return self.functions.get(id(callee))
        func = self.mod.functions.get(callee)
        return func if type(func) is Function else None


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
