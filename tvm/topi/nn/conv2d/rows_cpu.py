"""Convolutions of each channel by itself, in a plain layout: vectors along a few rows, the window unrolled.

for n.c in parallel(...):
    pad = border(data[n, c])
    for yo in range(oh / 4), xo in range(ow / 16):
        acc[4][0:16] = 0
        for ky, kx in unrolled, y in unrolled(4):
            acc[y] += pad[y * s + ky, x * s + kx : ... + 16] * weight[ky, kx]
        out[...] = epilogue(acc)

What one row reads, the next ones read again, from registers.
"""

from __future__ import annotations

from tvm import te
from tvm.support.dtype import dtype as as_dtype

from ...cpu.common import fuse_and_parallel, is_static, processor, row_lanes, vectorize_inner
from ...utils import dims, extents_of, largest_divisor, prod, rounded_up

ROWS = 4
# multiplications of a window that are unrolled
MOST_UNROLLED = 64
_TAGS = ("group_conv1d_ncw", "group_conv2d_nchw", "group_conv3d_ncdhw")


def is_by_channel(anchor: te.tensor.Operation, output: te.Tensor) -> bool:
    """Whether a convolution is depthwise, with rows that fill vectors."""
    conv = anchor.output(0)
    if anchor.tag not in _TAGS or extents_of(anchor.reduce_axis[:1]) != (1,):
        return False
    is_same = is_static(conv) and dims(output.shape) == dims(conv.shape)
    is_float = as_dtype(conv.dtype).is_float and conv.dtype == output.dtype
    return is_same and is_float and fills_vectors(dims(conv.shape)[-1], conv.dtype)


def fills_vectors(columns: int, dtype: str) -> bool:
    """Whether a row of so many elements leaves little of its vectors empty."""
    lanes = row_lanes(columns, dtype, processor())
    return lanes >= 8 and rounded_up(columns, lanes) <= 1.25 * columns


def schedule_channel_rows(
    s: te.Schedule, anchor: te.tensor.Operation, output: te.Tensor
) -> te.Schedule:
    """Schedule such a convolution, and what is fused behind it."""
    conv = anchor.output(0)
    acc = s.cache_write(conv, "local") if output.op is anchor else conv
    s[acc].set_scope("local")
    final = s.outputs[0].output(0) if output.op is anchor else output
    shape = dims(final.shape)
    lanes = row_lanes(shape[-1], final.dtype, processor())
    batch, channel, *outer, x = s[final].op.axis
    position = fuse_and_parallel(s, final, [batch, channel])
    vectors, lane = s[final].split(x, factor=lanes)
    inner = []
    if outer:
        outer[-1], row = s[final].split(outer[-1], factor=largest_divisor(shape[-2], ROWS))
        inner = [row]
        s[final].unroll(row)
    s[final].reorder(position, *outer, vectors, *inner, lane)
    s[final].vectorize(lane)
    s[final].pragma(vectors, "loop_partition_hint")
    s[acc].compute_at(s[final], vectors)
    _schedule_sums(s, acc)
    data = anchor.input_tensors[0]
    if data.op.name == "data_pad":
        s[data].compute_at(s[final], position)
        wide = row_lanes(dims(data.shape)[-1], data.dtype, processor())
        vectorize_inner(s, data, s[data].op.axis[-1], wide)
    return s


def _schedule_sums(s: te.Schedule, acc: te.Tensor) -> None:
    """Each position of the window in turn, for all rows."""
    *outer, x = s[acc].op.axis
    channel, *window = s[acc].op.reduce_axis
    rows = outer[-1:] if len(outer) > 2 else []
    s[acc].reorder(*outer[: len(outer) - len(rows)], channel, *window, *rows, x)
    extents = extents_of(window)
    for i, axis in enumerate(window):
        if prod(extents[i:]) <= MOST_UNROLLED:
            s[acc].unroll(axis)
    for row in rows:
        s[acc].unroll(row)
    s[acc].vectorize(x)
