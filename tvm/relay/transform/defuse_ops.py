"""Undo fusion: put the bodies of primitive functions back in place of their calls.

fn (%p0, Primitive=1) { exp(%p0) }(%x)    ->    exp(%x)
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_primitive
from tvm.relay.transform.common import relay_pass
from tvm.relay.traverse import applied, rewrite_calls


@relay_pass("DefuseOps", opt_level=3)
def defuse_ops(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Inline every primitive function."""
    return rewrite_calls(func, _inline)


def _inline(old: Call, new: Call) -> RelayExpr:
    if is_primitive(new.op):
        return applied(new.op, new.args)
    return new


DefuseOps = defuse_ops.factory
