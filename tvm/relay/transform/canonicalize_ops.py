"""Write operators by simpler ones, so that fewer kinds meet the later passes.

nn.bias_add(%x, %b, axis=1)    ->    add(%x, expand_dims(%b, axis=1, num_newaxis=2))
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import rewrite_calls


@relay_pass("CanonicalizeOps", opt_level=2)
def canonicalize_ops(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Replace bias_add by add."""
    if is_primitive(func):
        return func
    return rewrite_calls(func, _canonical)


def _canonical(old: Call, new: Call) -> RelayExpr:
    if not calls(new, ops.nn.bias_add):
        return new
    data, bias = new.args
    rank = len(tensor_type_of(old.args[0]).shape)
    trailing = rank - 1 - new.attrs["axis"] % rank
    if trailing:
        bias = ops.expand_dims(bias, axis=1, num_newaxis=trailing)
    return ops.add(data, bias)


CanonicalizeOps = canonicalize_ops.factory
