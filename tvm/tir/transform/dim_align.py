"""Strides that blocks want of what they write: ``buffer_dim_align``, of blocks and of what they become.

block attr buffer_dim_align = [[0, 0, 16, 15]]         strides of what it writes: (16*k + 15, 1)
allocate(..., annotations={"buffer_dim_align": [[-1, 0, 16, 15]]})

A stride is padded when the extents are final, which compaction decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Var, const
from tvm.tir.stmt import Allocate, Block

DIM_ALIGN = "buffer_dim_align"
OF_ALLOCATION = -1  # stands where blocks have the number of the buffer among those that they write


@dataclass(frozen=True)
class DimAlign:
    """The stride of an axis is to be ``offset`` modulo ``factor``."""

    factor: int
    offset: int

    def pad(self, stride: PrimExpr) -> PrimExpr:
        """The smallest stride that fits."""
        return stride + (self.factor + self.offset - stride % self.factor) % self.factor


Aligns = dict[Var, dict[int, DimAlign]]  # by the pointer of the memory, then by axis


class AlignFinder(Visitor):
    """Collects how blocks want the strides of what they write."""

    def __init__(self) -> None:
        self.found: Aligns = {}

    def visit_block(self, block: Block) -> None:
        for index, axis, factor, offset in block.annotations.get(DIM_ALIGN, ()):
            buffer = block.writes[int(index)].buffer
            self._note(buffer.data, int(axis) % len(buffer.shape), factor, offset)
        self.visit_children(block)

    def visit_allocate(self, alloc: Allocate) -> None:
        for _, axis, factor, offset in alloc.annotations.get(DIM_ALIGN, ()):
            self._note(alloc.buffer_var, int(axis), factor, offset)
        self.visit_children(alloc)

    def _note(self, pointer: Var, axis: int, factor: Any, offset: Any) -> None:
        self.found.setdefault(pointer, {})[axis] = DimAlign(int(factor), int(offset))


def annotations_of(buffer: Buffer, aligns: Aligns) -> dict[str, Any]:
    """The annotations of the buffer's allocation: what is wanted of its strides, if they are open."""
    wanted = {} if buffer.strides else aligns.get(buffer.data, {})
    found = [[OF_ALLOCATION, axis, align.factor, align.offset] for axis, align in wanted.items()]
    return {DIM_ALIGN: found} if found else {}


def aligned_strides(
    shape: Sequence[PrimExpr], aligns: Mapping[int, DimAlign]
) -> tuple[PrimExpr, ...]:
    """The distances between neighbours, with some of them padded."""
    analyzer = Analyzer()
    strides: list[PrimExpr] = [const(1, shape[-1].dtype)]
    if len(shape) - 1 in aligns:
        strides = [aligns[len(shape) - 1].pad(strides[0])]
    for axis in range(len(shape) - 2, -1, -1):
        stride = strides[0] * shape[axis + 1]
        strides.insert(0, aligns[axis].pad(stride) if axis in aligns else stride)
    return tuple([analyzer.simplify(stride) for stride in strides])
