"""The index of a buffer whose memory has one dimension."""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.tir.buffer import Buffer


def flat_index(buffer: Buffer, indices: tuple[PrimExpr, ...]) -> PrimExpr:
    """The one index of a flattened buffer."""
    if len(indices) != 1:
        raise LoweringError(
            f"buffer {buffer.name} must be flattened to one dimension before code generation, "
            f"got {len(indices)} indices",
            hint="the memory of a CPU has one dimension: leave out the axis separators"
            if buffer.axis_separators
            else "",
        )
    return indices[0]
