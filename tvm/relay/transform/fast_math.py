"""Replace functions by faster approximations, where there are operators for them.

exp(%x)   ->   fast_exp(%x)

The vectorised functions that kernels use are exact to a few units in the last place and cost no
more than classic approximations, so only operators that somebody registered are put in place.
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op, has_op
from tvm.ir.transform import PassContext
from tvm.relay.function import Function
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import is_operator_call
from tvm.relay.traverse import rewrite_function


@relay_pass("FastMath", opt_level=4)
def fast_math(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Use the fast operators."""
    return rewrite_function(func, _faster)


def _faster(old: RelayExpr, new: RelayExpr) -> RelayExpr:
    if not is_operator_call(new):
        return new
    fast = new.operator.fast_math
    return new.replace(op=Op.get(fast)) if fast is not None and has_op(fast) else new


FastMath = fast_math.factory
