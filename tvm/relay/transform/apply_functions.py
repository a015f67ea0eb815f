"""Replace calls of functions that are written in place by their bodies.

fn (%a) { add(%a, %a) }(exp(%x))    ->    %0 = exp(%x); add(%0, %0)
"""

from __future__ import annotations

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.relay.analysis.specialize import specialized
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.transform.common import relay_pass
from tvm.relay.traverse import applied, rewrite_calls


@relay_pass("ApplyFunctions", opt_level=0)
def apply_functions(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Apply every function literal without attributes; kernels and composites have some."""
    return rewrite_calls(func, _apply)


def _apply(old: Call, new: Call) -> RelayExpr:
    if isinstance(new.op, Function) and not new.op.attrs:
        return applied(specialized(new.op, old), new.args)
    return new


ApplyFunctions = apply_functions.factory
