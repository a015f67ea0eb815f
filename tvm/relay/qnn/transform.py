"""Passes from quantised operators to ordinary ones."""

from __future__ import annotations

from tvm.ir.transform import Pass
from tvm.relay.transform.legalize import rewriting_pass


def Legalize() -> Pass:
    """Replace quantised operators that the target does better in another way (tables)."""
    return rewriting_pass("FTVMQnnLegalize", "qnn.Legalize", 1)


def CanonicalizeOps() -> Pass:
    """Write quantised operators in ordinary ones."""
    return rewriting_pass("FTVMQnnCanonicalize", "qnn.CanonicalizeOps", 0)
