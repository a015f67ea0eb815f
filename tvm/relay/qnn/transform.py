"""Passes from quantised operators to ordinary ones."""

from __future__ import annotations

from tvm.ir.transform import Pass
from tvm.relay.qnn.op.legalizations import PRODUCT_LEGALIZATIONS
from tvm.relay.transform.legalize import rewriting_pass


def Legalize() -> Pass:
    """Replace quantised operators that the target does better in another way.

    Functions of 8-bit numbers become tables; products get factors of the data types that the
    current target multiplies.
    """
    return rewriting_pass("FTVMQnnLegalize", "qnn.Legalize", 1, PRODUCT_LEGALIZATIONS)


def LegalizeForKernels() -> Pass:
    """The same for a build, whose kernels choose the instructions of products themselves."""
    return rewriting_pass("FTVMQnnLegalize", "qnn.Legalize", 1)


def CanonicalizeOps() -> Pass:
    """Write quantised operators in ordinary ones."""
    return rewriting_pass("FTVMQnnCanonicalize", "qnn.CanonicalizeOps", 0)
