"""Give every user of a widening cast a cast of its own, which fuses with it.

%0 = cast(%x, "int32");          %0 = cast(%x, "int32"); %1 = cast(%x, "int32");
(add(%0, %a), add(%0, %b))  ->   (add(%0, %a), add(%1, %b))

The narrow value is what is kept in memory then, not the wide one.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import known_type
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.op.registry import OpPattern, ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import calls, is_operator_call
from tvm.relay.traverse import post_order, rewrite_calls, use_counts


@relay_pass("CanonicalizeCast", opt_level=3)
def canonicalize_cast(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Copy shared widening casts into their users."""
    counts = use_counts(func)
    shared = {
        id(node)
        for node in post_order(func)
        if calls(node, ops.cast) and counts[id(node)] > 1 and _widens(node)
    }
    if not shared:
        return func

    def rewrite(old: Call, new: Call) -> RelayExpr:
        if not _is_broadcast(old):
            return new
        args = [
            _copied(b) if id(a) in shared else b for a, b in zip(old.args, new.args, strict=True)
        ]
        return new.replace(args=tuple(args)) if any([id(a) in shared for a in old.args]) else new

    return rewrite_calls(func, rewrite)


def _copied(cast: RelayExpr) -> RelayExpr:
    assert isinstance(cast, Call)
    return Call(cast.op, cast.args, cast.attrs, cast.type_args, cast.span)


def _widens(cast: RelayExpr) -> bool:
    assert isinstance(cast, Call)
    source, target = known_type(cast.args[0]), known_type(cast)
    if not isinstance(source, TensorType) or not isinstance(target, TensorType):
        return False
    return source.dtype.bits < target.dtype.bits


def _is_broadcast(node: RelayExpr) -> bool:
    if not is_operator_call(node) or node.operator.fuse is None:
        return False
    return bool(node.operator.fuse <= OpPattern.BROADCAST)


CanonicalizeCast = canonicalize_cast.factory
