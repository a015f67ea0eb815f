"""Depthwise convolution on processors: a stretch of a row in registers, a small window unrolled.

for n.c in parallel(...):
    pad = border(data[n, c])
    for y in range(oh), xo in range(ow / 7):
        acc[7][0:16] = 0
        for ky, kx, x in unrolled(7):
            acc[x] += pad[y * s + ky, x * s + kx] * weight[ky, kx]
        out[...] = epilogue(acc)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import te
from tvm.target.cpu import CpuInfo

from ...configuration import Choices, workload_of
from ...cpu.common import fuse_and_parallel, processor
from ...cpu.fitted import UNUSUAL
from ...generic.schedules import open_schedule
from ...utils import dims, divisors, extents_of, largest_divisor
from ..conv2d.cpu import inline_around, row_parts, schedule_padding
from ..dense.cpu import is_full_output

# columns of a tile where only the run knows how many there are: more would often be computed in vain
OPEN_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class DepthwiseConfig:
    """The stretch of a row held in registers, and whether the window is unrolled."""

    columns: int
    unroll_window: bool = True


def depthwise_choices(columns: int, window: int, info: CpuInfo) -> Choices[DepthwiseConfig]:
    """Stretches of a row that fit the registers beside the window's weights.

    The model unrolls windows of up to nine. It takes up to eight positions; up to four where registers are
    few and the window is unrolled, which leaves some to what follows in the same block of code.
    """
    unrolled = window <= 9
    few = largest_divisor(columns, 4)
    is_small = unrolled and info.vector_registers <= 16 and few == 4
    usual = DepthwiseConfig(few if is_small else largest_divisor(columns, 8), unrolled)

    def configs() -> list[DepthwiseConfig]:
        fitting = [d for d in divisors(columns) if d <= info.vector_registers - 4]
        return [DepthwiseConfig(d, unroll) for d in fitting for unroll in (True, False)]

    def cost(config: DepthwiseConfig) -> float:
        return 1.0 if config == usual else UNUSUAL

    return Choices({"tile_ow": "columns", "unroll_kw": "unroll_window"}, configs, cost)


def schedule_depthwise_conv2d_NCHWc(
    outs: te.Tensor | Sequence[te.Tensor], config: DepthwiseConfig | None = None
) -> te.Schedule:
    """Schedule a depthwise convolution with channels in blocks, and what is fused behind it."""
    s, output, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.tag == "depthwise_conv2d_NCHWc")
    conv = anchor.output(0)
    info = processor()
    inline_around(s, ops, anchor, output)
    images, chunks, rows, columns, block = dims(conv.shape)
    if not is_full_output(output, conv):
        return s
    window = extents_of(anchor.reduce_axis)
    # an open number of columns is rounded up
    known = columns if isinstance(columns, int) else OPEN_COLUMNS
    choices = depthwise_choices(known, window[0] * window[1], info)
    tile = config or choices.choose(workload_of(anchor))
    acc = s.cache_write(conv, "local") if output.op is anchor else conv
    s[acc].set_scope("local")
    final = s.outputs[0].output(0) if output.op is anchor else output
    batch, co, y, x, ci = s[final].op.axis
    x_outer, x_inner = s[final].split(x, factor=tile.columns)
    few = (images if isinstance(images, int) else 1) * chunks < 2 * info.cores
    if parts := row_parts(anchor, rows, info, is_reread=False):
        part, y = s[final].split(y, nparts=parts)
        s[final].reorder(batch, part, co, y, x_outer)
        fuse_and_parallel(s, final, [batch, part])
        schedule_padding(s, anchor.input_tensors[0], (final, co))
    else:
        position = fuse_and_parallel(s, final, [batch, co, y] if few else [batch, co])
        assert position is not None
        schedule_padding(s, anchor.input_tensors[0], None if few else (final, position))
    s[acc].compute_at(s[final], x_outer)
    s[final].unroll(x_inner)
    if block > 1:
        s[final].vectorize(ci)
    _, _, _, x, ci = s[acc].op.axis
    ky, kx = s[acc].op.reduce_axis
    s[acc].reorder(ky, kx, x, ci)
    s[acc].unroll(x)
    if tile.unroll_window:
        s[acc].unroll(ky)
        s[acc].unroll(kx)
    if block > 1:
        s[acc].vectorize(ci)
    return s
