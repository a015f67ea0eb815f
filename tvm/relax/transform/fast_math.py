"""Exponentials, hyperbolic tangents, error functions and softmax by the fast functions of topi.

y = exp(x)    ->    y = call_tir(fast_exp, (x,))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call

from .rewrite_calls import rewriting_pass

_FAST: dict[str, Callable[..., Any]] = {
    "relax.nn.softmax": topi.nn.fast_softmax,
    "relax.exp": topi.fast_exp,
    "relax.erf": topi.fast_erf,
    "relax.tanh": topi.fast_tanh,
}


def _rule(call: Call, builder: BlockBuilder) -> RelayExpr | None:
    function = _FAST.get(call.op.name) if isinstance(call.op, Op) else None
    if function is None:
        return None
    axis = [] if call.attrs is None else [call.attrs.axis]
    return builder.call_te(function, call.args[0], *axis)


def FastMathTransform() -> Pass:
    """Replace functions by approximations that cost less.

    Those of this package are vectorised without it; the pass is for programs that name it.
    """
    return rewriting_pass("FastMathTransform", lambda func, mod: _rule, is_repeated=False)
