"""Multiply by the reciprocal of a constant instead of dividing by it.

    divide(%x, 4f)    ->    multiply(%x, 0.25f)

The result may differ in its last bit where the reciprocal is not exact.
"""

from __future__ import annotations

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.expr import Call, Constant, const
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import rewrite_function


@relay_pass("DivToMul", opt_level=0)
def div_to_mul(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Replace divisions by float constants."""
    return rewrite_function(func, _rewrite)


def _rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
    if not isinstance(new, Call) or not calls(new, ops.divide):
        return new
    divisor = new.args[1]
    if not isinstance(divisor, Constant) or "float" not in str(divisor.data.dtype):
        return new
    values = divisor.data.numpy()
    with np.errstate(divide="ignore", over="ignore"):
        reciprocal = (1 / values).astype(values.dtype)
    if not np.all(np.isfinite(reciprocal)) or not np.all(reciprocal):
        return new
    return ops.multiply(new.args[0], const(reciprocal))


DivToMul = div_to_mul.factory
