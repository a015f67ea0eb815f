"""Batched matrix products on processors: one matrix of the batch a thread, tiles in registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.support.docstrings import described_by

from ...configuration import workload_of
from ...cpu.common import fuse_and_parallel, processor, vector_lanes
from ...generic.schedules import open_schedule
from ...utils import dims, is_dynamic_shape
from ..dense.cpu import (
    MatmulConfig,
    inline_injective_but,
    is_full_output,
    masked_matmul_choices,
    schedule_tile,
)
from ..dense.open_product import TAG as OPEN_TAG
from ..dense.open_product import is_open_product, open_product, schedule_open_product
from .compute import COPIED_LINES
from .compute import batch_matmul as compute_known_extents
from .dot import TAG as DOT_TAG
from .dot import schedule_batch_matmul_dot


@described_by(compute_known_extents)
def batch_matmul(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    oshape: Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> te.Tensor:
    """A batch of matrix products; those of open extents fill tiles."""
    if is_open_product(tensor_a, tensor_b):
        return open_product(tensor_a, tensor_b, out_dtype, transpose_a, transpose_b, oshape)
    flags = (transpose_a, transpose_b)
    return compute_known_extents(tensor_a, tensor_b, oshape, out_dtype, *flags)


def schedule_batch_matmul(
    outs: te.Tensor | Sequence[te.Tensor], config: MatmulConfig | None = None
) -> te.Schedule:
    """Schedule a batch of products, and what is fused behind it.

    Parameters
    ----------
    outs : te.Tensor or sequence of te.Tensor
        The output.
    config : MatmulConfig, optional
        The tile; chosen for the processor by default.
    """
    s, output, ops = open_schedule(outs)
    if any([op.tag == DOT_TAG for op in ops]):
        return schedule_batch_matmul_dot(outs)
    if any([op.tag == OPEN_TAG for op in ops]):
        return schedule_open_product(outs)
    anchor = next(op for op in ops if op.tag == "batch_matmul")
    product = anchor.output(0)
    inline_injective_but(s, ops, anchor, output, (COPIED_LINES,))
    shape = dims(product.shape)
    chosen = None
    if not is_dynamic_shape(shape[1:]) and is_full_output(output, product):
        choices = masked_matmul_choices(shape[1], shape[2], product.dtype, processor())
        chosen = config or (choices.choose(workload_of(anchor)) if choices else None)
    if chosen is None:
        fuse_and_parallel(s, output, list(s[output].op.axis)[:2])
        return s
    copied = [t for t in anchor.input_tensors if t.op.name == COPIED_LINES]
    position = schedule_tile(s, output, product, chosen, batched=True)
    for right in copied:
        _schedule_copy(s, right, position)
    return s


def _schedule_copy(
    s: te.Schedule, right: te.Tensor, place: tuple[te.Tensor, tir.IterVar] | None
) -> None:
    """Copy one matrix of the batch where its products are computed.

    Columns are gathered in vectors and stored as lines.
    """
    _, inner, columns = s[right].op.axis
    if place is not None:
        s[right].compute_at(s[place[0]], place[1])
    lanes = vector_lanes(dims(right.shape)[2], right.dtype, processor())
    if lanes > 1:
        outer, lane = s[right].split(columns, factor=lanes)
        s[right].reorder(outer, inner, lane)
        s[right].vectorize(lane)
