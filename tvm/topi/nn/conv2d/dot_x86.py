"""Convolution of narrow numbers on x86: sums in registers, several products an instruction.

for n.oco.y in parallel(...):                    # a pair of channel blocks, one output row
    for xo in range(ow / 14):
        acc[2][14][0:16] = 0
        for ico, ky, kx, group:                  # four input channels, one position of the window
            for x in unrolled(14), j in unrolled(2):
                acc[j][x] = vpdpbusd(acc[j][x], broadcast(data[x * s + kx, group]), weight[j])
        out[...] = epilogue(acc)                 # scale, bias, activation, residual, rounding
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm import te, tir
from tvm.target import Target
from tvm.target.cpu import CpuInfo

from ...configuration import workload_of
from ...cpu.common import fuse_and_parallel, processor
from ...generic.schedules import open_schedule
from ...utils import dims, extents_of, prod
from ...x86.dot_product import (
    DotProduct,
    dot_dtypes,
    dot_product_intrin,
    find_byte_pairs,
    find_dot_product,
    instruction_of,
)
from .cpu import (
    Conv2dConfig,
    channel_block,
    conv2d_choices,
    inline_around,
    row_parts,
    schedule_padding,
    tile_output,
    vectorize_block,
)
from .pixels import PIXELS_TAG
from .pixels_cpu import schedule_pixels


def dot_blocks(
    channels: int, out_channels: int, data: str, weight: str, target: Target | None = None
) -> tuple[int, int, int] | None:
    """Block sizes of input and output channels and the size of a group.

    None where the processor has no instruction for these dtypes, or the channels do not fill it.
    """
    return _blocks_of(
        lambda n: find_dot_product(data, weight, n, target),
        channels,
        out_channels,
        processor(target),
    )


def byte_pair_blocks(
    channels: int, out_channels: int, target: Target | None = None
) -> tuple[int, int, int] | None:
    """The block sizes of `dot_blocks` for weights that `find_byte_pairs` asks for."""
    return _blocks_of(
        lambda n: find_byte_pairs(n, target), channels, out_channels, processor(target)
    )


def _blocks_of(
    find: Callable[[int], DotProduct | None], channels: int, out_channels: int, info: CpuInfo
) -> tuple[int, int, int] | None:
    outer = channel_block(out_channels, info.vector_bits // 32)
    dot = find(outer)
    if dot is None:
        return None
    inner = channel_block(channels, info.vector_bits // 32)
    if inner % dot.group and channels % dot.group == 0:
        words = channel_block(channels // dot.group, max(info.vector_bits // 32 // dot.group, 1))
        inner = words * dot.group
    return (inner, outer, dot.group) if inner % dot.group == 0 else None


def dot_group(data: str, weight: str, target: Target | None = None) -> int:
    """Neighbouring channels that one instruction takes; 1 without one."""
    dot = find_dot_product(data, weight, 16, target)
    return 1 if dot is None else dot.group


def has_byte_pairs(target: Target | None = None) -> bool:
    """Whether the target multiplies bytes in pairs that int16 must hold, and has nothing better."""
    return find_byte_pairs(16, target) is not None


def narrow_dtypes(
    data: str, weight: str, sums: str = "int32", target: Target | None = None
) -> tuple[str, str] | None:
    """The dtypes to multiply factors in, by instructions for several products; None without one."""
    return dot_dtypes(data, weight, sums, target)


def schedule_conv2d_NCHWc_int8(
    outs: te.Tensor | Sequence[te.Tensor], config: Conv2dConfig | None = None
) -> te.Schedule:
    """Schedule a convolution with channels in groups, and what is fused behind it."""
    s, output, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.tag in ("conv2d_NCHWc_int8", PIXELS_TAG))
    if anchor.tag == PIXELS_TAG:
        return schedule_pixels(s, ops, anchor, output, _schedule_words)
    conv = anchor.output(0)
    info = processor()
    inline_around(s, ops, anchor, output)
    _, oc_chunk, rows, columns, block = dims(conv.shape)
    if dims(output.shape) != dims(conv.shape):
        return s
    vectors = max(block * 32 // info.vector_bits, 1)
    # a step takes a word of the data, as a step in float32 does
    inner = prod(extents_of(anchor.reduce_axis[:-1]))
    blocks = oc_chunk // int(anchor.attrs["groups"])
    choices = conv2d_choices(blocks, rows, columns, vectors, inner, info)
    tile = config or choices.choose(workload_of(anchor))
    parts = row_parts(anchor, rows // tile.rows, info)
    schedule_padding(s, anchor.input_tensors[0], None, parts > 0)
    acc = s.cache_write(conv, "local") if output.op is anchor else conv
    s[acc].set_scope("local")
    final = s.outputs[0].output(0) if output.op is anchor else output
    position = _schedule_output(s, final, tile, parts, info)
    s[acc].compute_at(s[final], position)
    _schedule_sums(s, acc, instruction_of(anchor), info)
    return s


def _schedule_output(
    s: te.Schedule, final: te.Tensor, tile: Conv2dConfig, parts: int, info: CpuInfo
) -> tir.IterVar:
    """Tile the output; returns the loop inside which a tile is summed."""
    loops = tile_output(s, final, tile, parts)
    fuse_and_parallel(s, final, loops.shared[:2] if parts else loops.shared)
    for axis in loops.tile:
        s[final].unroll(axis)
    vectorize_words(s, final, loops.block, info)
    return loops.place


def _schedule_words(s: te.Schedule, output: te.Tensor, sums: te.Tensor, info: CpuInfo) -> None:
    """The blocks of a tile of pixels."""
    vectorize_words(s, output, s[output].op.axis[-1], info)
    _schedule_sums(s, sums, instruction_of(sums.op), info)


def vectorize_words(s: te.Schedule, stage: te.Tensor, axis: tir.IterVar, info: CpuInfo) -> None:
    """A block of numbers as vectors of as many as there are sums in a register."""
    lanes, block = info.vector_bits // 32, dims(stage.shape)[-1]
    if block > lanes and block % lanes == 0:
        outer, axis = s[stage].split(axis, factor=lanes)
        s[stage].unroll(outer)
    if block > 1:
        s[stage].vectorize(axis)


def _schedule_sums(s: te.Schedule, acc: te.Tensor, dot: DotProduct | None, info: CpuInfo) -> None:
    _, co, *positions, ci = s[acc].op.axis
    ico, ky, kx, group, k = s[acc].op.reduce_axis
    s[acc].reorder(ico, ky, kx, group, *positions, co, ci, k)
    for axis in (*positions, co):
        s[acc].unroll(axis)
    if dot is None:
        s[acc].reorder(k, ci)
        vectorize_block(s, acc, ci, info)
        return
    vectors, lane = s[acc].split(ci, factor=dot.lanes)
    s[acc].unroll(vectors)
    s[acc].tensorize(lane, dot_product_intrin(dot))
