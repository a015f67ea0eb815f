"""Weights that come from memory, asked for before they are used.

for panel:                                       # of weights
    for row, k:                                  # a visit of the panel for each tile of rows
        prefetch(weights[panel + 1, a share])    # all visits together bring the next panel
        acc += data[row, k] * weights[panel, k]

Only the first visit of a panel waits for memory; shared among all, memory and multipliers work
side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, tir
from tvm.support.dtype import dtype as as_dtype
from tvm.target.cpu import CpuInfo

from ..utils import dims, prod
from .common import is_static, processor

# how far ahead of their use weights are asked for where threads do not take full panels
PREFETCH_BYTES = 8192
# asked for at a time
MOST_LINES = 12


def is_streamed(weights: te.Tensor, info: CpuInfo) -> bool:
    """Whether weights, as they come, do not stay in L2."""
    shape = dims(weights.shape)
    if not (isinstance(weights.op, te.PlaceholderOp) and is_static(weights)):
        return False
    return int(prod(shape)) * as_dtype(weights.dtype).bits // 8 > info.l2 // 2


def prefetch_panels(
    s: te.Schedule,
    place: tuple[te.Tensor, tir.IterVar],
    weights: te.Tensor,
    loops: Sequence[tir.IterVar],
    visits: int,
    panel_bytes: int,
) -> None:
    """While one panel of weights is used, bring the next one, if all do not stay in a cache.

    Parameters
    ----------
    place : tuple
        The stage and its loop over panels.
    loops : sequence of tir.IterVar
        The loops of the sums, the innermost last.
    visits : int
        How many times a panel is read.
    """
    if not is_streamed(weights, processor()):
        return
    over, share = None, panel_bytes / 64 / visits
    for axis in loops:
        # a part of a split loop has no extent yet
        extent = 2 if axis.dom is None else dims((axis.dom.extent,))[0]
        if extent > 1 and (over is None or share > MOST_LINES):
            over = axis
        share /= extent
    stage, panel = place
    if over is not None:
        s[stage].prefetch(weights, panel, 1, over)


def prefetch_later_channels(
    s: te.Schedule, acc: te.Tensor, weights: te.Tensor, channel: tir.IterVar
) -> None:
    """Ask for the weights of later input channels, if all do not stay in a cache."""
    if is_streamed(weights, processor()):
        line_bytes = dims(weights.shape)[-1] * as_dtype(weights.dtype).bits // 8
        s[acc].prefetch(weights, channel, PREFETCH_BYTES // line_bytes)
