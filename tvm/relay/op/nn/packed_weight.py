"""Weights in the blocks that kernels read."""

from __future__ import annotations

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.relay.expr import Constant, const

from ..shaping import layout_transform
from ..unary import converted


def packed_weight(
    weight: RelayExpr, source: str, layout: str, own_dtype: str, dtype: str
) -> RelayExpr:
    """A weight in another layout and, where the kernel wants one, another dtype.

    One that has to become wider is packed in its own dtype first, and a constant one at once: then
    no second copy of all weights in the wide dtype takes memory.
    """
    if own_dtype == dtype:
        return layout_transform(weight, source, layout)
    if not isinstance(weight, Constant):
        return layout_transform(converted(weight, dtype), source, layout)
    packed = topi.layout.transform_array(weight.data.elements(), source, layout)
    return converted(const(packed), dtype)
