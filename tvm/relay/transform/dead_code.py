"""Remove bindings whose value nobody uses.

    let %x = add(%a, %b);
    %a                       ->    %a

A let whose value may have an effect (a reference, a call of unknown code) stays.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.expr import Call, Let, RefCreate, RefRead, RefWrite, Var
from tvm.relay.function import Function
from tvm.relay.transform.common import FunctionPass
from tvm.relay.traverse import post_order, rewrite_post_order, substitute


def eliminate_dead_code(func: Function, inline_once: bool, ignore_impurity: bool) -> Function:
    """Drop unused lets; with `inline_once`, put values used once in place of their variable."""
    result = rewrite_post_order(func, _Sweeper(func, inline_once, ignore_impurity).sweep)
    assert isinstance(result, Function)
    return result


class _Sweeper:
    """Meets the innermost let first, so that one walk also drops what only dead values used."""

    def __init__(self, func: Function, inline_once: bool, ignore_impurity: bool) -> None:
        self.uses = _uses(func)
        self.inline_once = inline_once
        self.ignore_impurity = ignore_impurity

    def sweep(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not isinstance(new, Let) or not isinstance(old, Let):
            return new
        count = self.uses.get(id(old.var), 0)
        if count == 0 and (self.ignore_impurity or _is_pure(new.value)):
            for variable, reads in _uses(old.value).items():
                self.uses[variable] -= reads
            return new.body
        if self.inline_once and count == 1 and _is_pure(new.value):
            return substitute(new.body, {new.var: new.value})
        return new


def _uses(root: RelayExpr) -> dict[int, int]:
    """How many nodes read each variable."""
    counts: dict[int, int] = {}
    for node in post_order(root):
        read = _read_by(node)
        for operand in read:
            if isinstance(operand, Var):
                counts[id(operand)] = counts.get(id(operand), 0) + 1
    return counts


def _read_by(node: RelayExpr) -> list[RelayExpr]:
    if isinstance(node, Let):
        return [node.value, node.body]
    if isinstance(node, Function):
        return [node.body]
    return [c for c in node.children() if isinstance(c, RelayExpr)]


def _is_pure(value: RelayExpr) -> bool:
    """Whether evaluating the value does nothing but give it."""
    if isinstance(value, Function):
        return True
    for node in post_order(value):
        if isinstance(node, (RefCreate, RefRead, RefWrite)):
            return False
        if isinstance(node, Call):
            if isinstance(node.op, Op):
                if node.op.extra.get("TOpIsStateful"):
                    return False
            elif not isinstance(node.op, Function):
                return False
    return True


def DeadCodeElimination(inline_once: bool = False, ignore_impurity: bool = False) -> Pass:
    """The pass."""

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return eliminate_dead_code(func, inline_once, ignore_impurity)

    return FunctionPass(run, PassInfo(1, "DeadCodeElimination"))
