"""Dense layers of narrow numbers on x86: sums in registers, several products an instruction.

for panel in parallel(...):                      # columns of the weight
    for yo in range(rows / 6):
        acc[6][4][0:16] = 0
        for group:                               # four elements of a row of the data
            for y in unrolled(6), v in unrolled(4):
                acc[y][v] = vpdpbusd(acc[y][v], broadcast(data[y, group]), weight[panel, group, v])
        out[...] = epilogue(acc)
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te
from tvm.target import Target

from ...configuration import workload_of
from ...cpu.common import fuse_and_parallel, processor
from ...generic.schedules import open_schedule
from ...utils import dims
from ...x86.dot_product import DotProduct, dot_product_intrin, find_dot_product, instruction_of
from .compute import padded_rows
from .cpu import MatmulConfig, choose_matmul, inline_injective_but, panel_choices, vector_loop
from .dot import DENSE_DOT


def dense_dot_block(
    rows: int, units: int, inner: int, data: str, weight: str, target: Target | None = None
) -> tuple[int, int] | None:
    """The panel's width and the size of a group; None where the processor has no instruction."""
    info = processor(target)
    dot = find_dot_product(data, weight, units, target)
    if dot is None or inner % dot.group or dot.lanes * 32 < info.vector_bits:
        return None
    config = choose_matmul(padded_rows(rows), units, "float32", info, inner // dot.group)
    return None if config is None else (config.columns, dot.group)


def schedule_dense_dot(
    outs: te.Tensor | Sequence[te.Tensor], config: MatmulConfig | None = None
) -> te.Schedule:
    """Schedule a dense layer whose weight is in groups, and what is fused behind it."""
    s, output, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.tag == DENSE_DOT)
    inline_injective_but(s, ops, anchor, output)
    sums = anchor.output(0)
    *_, rows, panels, block = dims(sums.shape)
    cropped = next((op.output(0) for op in ops if op.name == "T_crop"), None)
    whole = dims(sums.shape)[:-2] if cropped is None else dims(cropped.shape)[:-1]
    if dims(output.shape) != (*whole, panels * block):
        return s
    info = processor()
    height = rows if isinstance(rows, int) else 1
    tile = config or panel_choices(height, block, "float32", info).choose(workload_of(anchor))
    s[sums].set_scope("local")
    _schedule_tile(s, output, sums, tile, instruction_of(anchor))
    return s


def _schedule_tile(
    s: te.Schedule, output: te.Tensor, sums: te.Tensor, tile: MatmulConfig, dot: DotProduct | None
) -> None:
    *lead, y, x = s[output].op.axis
    x_outer, x_inner = s[output].split(x, factor=tile.columns)
    y_outer, y_inner = s[output].split(y, factor=tile.rows)
    s[output].reorder(*lead, x_outer, y_outer, y_inner, x_inner)
    s[sums].compute_at(s[output], y_outer)
    fuse_and_parallel(s, output, [*lead, x_outer])
    s[output].unroll(y_inner)
    vector_loop(s, output, x_inner, tile)
    *_, y, panel, x = s[sums].op.axis
    group, k = s[sums].op.reduce_axis
    s[sums].reorder(group, y, panel, x, k)
    s[sums].unroll(y)
    s[sums].unroll(panel)
    if dot is None:
        s[sums].reorder(k, x)
        vector_loop(s, sums, x, tile)
        return
    vectors, lane = s[sums].split(x, factor=dot.lanes)
    s[sums].unroll(vectors)
    s[sums].tensorize(lane, dot_product_intrin(dot))
