"""Whether calls have side effects."""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op

from .expr import Call, Function, GlobalVar, If, SeqExpr, Var
from .struct_info import FuncStructInfo

FORCE_PURE = "relax.force_pure"


def is_impure_call(call: Call) -> bool:
    """Whether a call has side effects, as its callee says."""
    op = call.op
    if isinstance(op, Op):
        return not op.extra.get("FPurity", False)
    info = op.struct_info_
    return isinstance(info, FuncStructInfo) and not info.purity


def find_impure_call(expr: RelayExpr, own_name: Var | GlobalVar | None = None) -> Call | None:
    """The first call with side effects, those of functions inside left out."""
    pending = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, Call):
            if node.op is own_name:
                continue
            if is_impure_call(node):
                return node
            pending.extend(node.args[::-1])
        elif isinstance(node, Function):
            if node is expr and node.has_body:
                pending.append(node.body)
        elif isinstance(node, SeqExpr):
            parts = [b.value for block in node.blocks for b in block.bindings]
            pending.extend([*parts, node.body][::-1])
        elif isinstance(node, If):
            pending.extend([node.false_branch, node.true_branch, node.cond])
    return None


def contains_impure_call(expr: RelayExpr, own_name: Var | GlobalVar | None = None) -> bool:
    """Whether there is a call with side effects.

    Parameters
    ----------
    expr : Expr
        Functions inside, which are not called by being there, are left out.
    own_name : Var or GlobalVar, optional
        The name of the function, whose recursive calls are left out.
    """
    return find_impure_call(expr, own_name) is not None
