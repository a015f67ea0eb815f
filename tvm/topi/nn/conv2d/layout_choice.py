"""In which layout a convolution is faster: rows of pixels, blocks of its channels, or full vectors of them.

The graph asks before it brings data and weights into blocks. All answers follow from operations and
elements; one element in another layout is worth so many operations.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.target import Target

from ...cpu.fitted import (
    BFLOAT16_SPEED,
    CONV2D_CHANGE_OF_BLOCKS,
    CONV2D_LAYOUT_TRANSFORM,
    CONV2D_PLAIN_ROWS,
)
from ...utils import prod, rounded_up
from .dot_x86 import dot_group

# more columns than this share would be computed in vain
_MOST_PADDING = 1.25


def is_faster_in_rows(
    out_channels: int, window: Sequence[int], full_block: int, is_blocked: bool
) -> bool:
    """Whether vectors along the rows of plain data are faster than blocks of few channels.

    Parameters
    ----------
    window : sequence of int
        Its height and width.
    full_block : int
        The block of channels that fills vectors.
    is_blocked : bool
        Whether the data comes in blocks.
    """
    if 2 * out_channels > full_block:
        return False
    # for each element of the data
    operations = 2 * out_channels * int(prod(window))
    in_blocks = operations * full_block / out_channels
    in_rows = CONV2D_PLAIN_ROWS * operations
    if is_blocked:
        return in_rows + CONV2D_LAYOUT_TRANSFORM < in_blocks
    return in_rows < in_blocks + CONV2D_LAYOUT_TRANSFORM


def row_columns(columns: int, full_block: int) -> int:
    """The columns of rows that vectors divide."""
    whole = rounded_up(columns, full_block)
    return rounded_up(columns, 8) if whole > _MOST_PADDING * columns else whole


def full_vector_channels(channels: int, block: int, full_block: int, terms: int) -> int | None:
    """The output channels, some of zeros, whose blocks fill vectors; None where those cost more.

    Parameters
    ----------
    block, full_block : int
        The block of the channels as they are, and the one that fills vectors.
    terms : int
        Products of the sum of an output.
    """
    if block == full_block or channels <= 4:
        return None
    step = full_block if channels > full_block // 2 else full_block // 2
    wide = rounded_up(channels, step)
    if wide == channels:
        return None
    if block * 2 < full_block:
        return None if step * channels < 1.5 * block * wide else wide
    # neighbours have these blocks as well: to change the layout is worth many operations alone
    saved = 2 * terms * (full_block / block - wide / channels)
    return None if saved < CONV2D_CHANGE_OF_BLOCKS else wide


def bfloat16_speed(target: Target | None = None) -> float:
    """How much faster than float32 the processor multiplies bfloat16."""
    return BFLOAT16_SPEED if dot_group("bfloat16", "bfloat16", target) > 1 else 1.0
