"""Darknet's reorganisation of feature maps: space to channels."""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr

from .. import tag
from ..utils import dims, ravel_index, unravel_index


def reorg(data: te.Tensor, stride: int) -> te.Tensor:
    """Move each `stride` x `stride` patch of positions to channels, in Darknet's order.

    Parameters
    ----------
    data : te.Tensor
        (batch, channels, height, width); channels divisible by the stride's square.
    stride : int
        The extent of patches.

    Returns
    -------
    te.Tensor
        (batch, channels * stride * stride, height / stride, width / stride).
    """
    batch, channels, height, width = dims(data.shape)
    depth = channels // (stride * stride)
    shape = (batch, channels * stride * stride, height // stride, width // stride)
    # Darknet reads the data as a map of fewer channels that is larger by the stride
    wide = (batch, depth, height * stride, width * stride)

    def element(*at: Any) -> PrimExpr:
        b, k, j, i = unravel_index(ravel_index(at, shape), (batch, channels, height, width))
        patch, c = tir.indexdiv(k, depth), tir.indexmod(k, depth)
        y = j * stride + tir.indexdiv(patch, stride)
        x = i * stride + tir.indexmod(patch, stride)
        return data(*unravel_index(ravel_index((b, c, y, x), wide), data.shape))

    return te.compute(shape, element, name="reorg", tag=tag.INJECTIVE)
