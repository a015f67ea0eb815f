"""Multiply by the reciprocal of a constant instead of dividing by it.

    divide(%x, 4f)    ->    multiply(%x, 0.25f)

The result may differ in its last bit where the reciprocal is not exact.
"""

from __future__ import annotations

import numpy as np

from tvm.ir.module import IRModule
from tvm.ir.rules import calling, fold, pattern_consts, pattern_vars, rule, rules
from tvm.ir.transform import PassContext
from tvm.relay.function import Function
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.rewrite_rules import Rewrites
from tvm.relay.traverse import rewrite_function

(x,) = pattern_vars("x")
(c0,) = pattern_consts("c0")


@relay_pass("DivToMul", opt_level=0)
def div_to_mul(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Replace divisions by float constants."""
    return rewrite_function(func, REWRITES.rewrite)


def _has_reciprocal(values: np.ndarray) -> bool:
    """Whether the numbers are floats whose reciprocals are finite and not lost as too small."""
    if "float" not in str(values.dtype):
        return False
    found = _reciprocal(values)
    return bool(np.all(np.isfinite(found)) and np.all(found))


def _reciprocal(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", over="ignore"):
        return (1 / values).astype(values.dtype)


DIVISIONS = rules(
    rule(x / c0, x * fold(calling(_reciprocal, c0)), when=calling(_has_reciprocal, c0))
)
REWRITES = Rewrites(DIVISIONS)
DivToMul = div_to_mul.factory
