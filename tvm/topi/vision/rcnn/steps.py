"""The steps of `proposal` as loops on buffers: sorting by score, suppression, gathering what is left."""

from __future__ import annotations

from tvm import tir
from tvm.tir.ir_builder import BufferVar, IRBuilder

from ...utils import dims
from ..boxes import Box, overlap, read_box


def argsort_ir(data_buf: tir.Buffer, out_index_buf: tir.Buffer) -> tir.Stmt:
    """Store the positions of scores (batch, boxes) from the highest on; equal ones keep their order."""
    batch, boxes = dims(data_buf.shape)
    ib = tir.ir_builder.create()
    scores, order = ib.buffer_ptr(data_buf), ib.buffer_ptr(out_index_buf)
    hole = ib.allocate("int32", 1, "hole", scope="local")
    with ib.for_range(0, batch, "b") as b, ib.for_range(0, boxes, "i") as i:
        hole[0] = i
        is_lower = tir.all(hole[0] > 0, scores[b, order[b, tir.max(hole[0] - 1, 0)]] < scores[b, i])
        with ib.while_loop(is_lower):
            order[b, hole[0]] = order[b, hole[0] - 1]
            hole[0] = hole[0] - 1
        order[b, hole[0]] = i
    return ib.get()


def nms_ir(sorted_bbox_buf: tir.Buffer, out_buf: tir.Buffer, nms_threshold: float) -> tir.Stmt:
    """Mark the boxes (batch, boxes, corners and score) that overlap a kept one before them.

    Parameters
    ----------
    sorted_bbox_buf : tir.Buffer
        The boxes from the highest score on.
    out_buf : tir.Buffer
        (batch, boxes): whether a box is dropped.
    nms_threshold : float
        The intersection over union above which it is.
    """
    batch, boxes, _ = dims(sorted_bbox_buf.shape)
    ib = tir.ir_builder.create()
    rows, dropped = ib.buffer_ptr(sorted_bbox_buf), ib.buffer_ptr(out_buf)
    yes, no = [tir.const(flag, out_buf.dtype) for flag in (1, 0)]
    with ib.for_range(0, batch, "b") as b:
        with ib.for_range(0, boxes, "i") as i:
            dropped[b, i] = no
        with ib.for_range(0, boxes, "i") as i, ib.if_scope(tir.EQ(dropped[b, i], no)):
            kept = _region(ib, rows, b, i, "kept")
            with ib.for_range(0, boxes - i - 1, "k") as k:
                later = i + k + 1
                share = overlap(kept, _region(ib, rows, b, later, "later"))
                with ib.if_scope(share > tir.const(nms_threshold, sorted_bbox_buf.dtype)):
                    dropped[b, later] = yes
    return ib.get()


def _region(ib: IRBuilder, rows: BufferVar, b: tir.PrimExpr, at: tir.PrimExpr, name: str) -> Box:
    return read_box(ib, lambda i: rows[b, at, i], name, 1.0)


def prepare_output_ir(
    sorted_bbox_buf: tir.Buffer, remove_mask_buf: tir.Buffer, out_buf: tir.Buffer
) -> tir.Stmt:
    """Store the batch and the corners of the boxes that are left, again from the first if too few.

    Parameters
    ----------
    sorted_bbox_buf : tir.Buffer
        (batch, boxes, 5): corners and score.
    remove_mask_buf : tir.Buffer
        (batch, boxes): whether a box is dropped.
    out_buf : tir.Buffer
        (batch * wanted, 5).
    """
    batch, boxes, _ = dims(sorted_bbox_buf.shape)
    wanted = tir.indexdiv(out_buf.shape[0], batch)
    ib = tir.ir_builder.create()
    rows, dropped, out = [ib.buffer_ptr(x) for x in (sorted_bbox_buf, remove_mask_buf, out_buf)]
    count = ib.allocate("int32", 1, "count", scope="local")
    before = ib.allocate("int32", 1, "before", scope="local")
    no = tir.const(0, remove_mask_buf.dtype)
    with ib.for_range(0, batch, "b") as b:
        count[0] = 0
        before[0] = -1
        with ib.while_loop(tir.all(count[0] < wanted, before[0] < count[0])):
            before[0] = count[0]  # a round that finds no box is the last
            with ib.for_range(0, boxes, "i") as i:
                is_left = tir.all(tir.EQ(dropped[b, i], no), count[0] < wanted)
                with ib.if_scope(is_left):
                    out[b * wanted + count[0], 0] = b.astype(out_buf.dtype)
                    for k in range(4):
                        out[b * wanted + count[0], k + 1] = rows[b, i, k]
                    count[0] = count[0] + 1
    return ib.get()
