"""Rounded logarithms of integers whose bounds tell them.

int32(ceil(log2(float64(i + 1025))))    ->    11        where 0 <= i < 16
"""

from __future__ import annotations

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir.expr import Call, Cast, FloatImm, const


class LogarithmFolder(Rewriter):
    """Folds conversions to an integer of ``ceil(log2(x))``, for integers x up to 2**53."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def visit_cast(self, e: Cast) -> PrimExpr:
        e = self.rewrite_children(e)
        argument = _argument(_argument(e.value, "tir.ceil"), "tir.log2")
        bounds = None if argument is None or not e.dtype.is_int else self._bounds(argument)
        if bounds is None or not 0 < bounds[0] <= bounds[1] <= 2**53:
            return e
        low, high = [(bound - 1).bit_length() for bound in bounds]
        return const(low, e.dtype) if low == high else e

    def _bounds(self, argument: PrimExpr) -> tuple[int, int] | None:
        """The least and the greatest value of an integer that was converted, or of a whole number."""
        if isinstance(argument, FloatImm) and argument.value.is_integer():
            return int(argument.value), int(argument.value)
        if not isinstance(argument, Cast) or not argument.value.dtype.is_int:
            return None
        if argument.dtype != "float64":
            return None  # of fewer digits
        found = self.analyzer.const_int_bound(argument.value)
        return found.min_value, found.max_value


def _argument(e: PrimExpr | None, name: str) -> PrimExpr | None:
    """What an intrinsic is called with."""
    if isinstance(e, Call) and getattr(e.op, "name", "") == name:
        return e.args[0]
    return None
