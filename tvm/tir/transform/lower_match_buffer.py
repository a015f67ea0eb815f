"""Redirect accesses through matched views to the buffers they view.

block():                     ->    block():
    V = match(A[i*4 : i*4 + 4])        A[i*4 + 1] = 0
    V[1] = 0
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Range, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    Block,
    BufferRegion,
    BufferStore,
    For,
    MatchBufferRegion,
    Stmt,
)
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import comes_from_te, is_const, prim_func_pass
from tvm.tir.transform.flatten_buffer import compact_strides


class MatchLowerer(BufferRewriter):
    """Maps indices of a view to indices of its source, and binds the view's variables."""

    def __init__(self, defined: Iterable[Var]) -> None:
        super().__init__()
        self.defined = dict.fromkeys(defined)  # parameters, which a view cannot give values to
        self.analyzer = Analyzer()
        self.sources: dict[Buffer, BufferRegion] = {}
        self.values: dict[Var, PrimExpr] = {}

    def visit_var(self, var: Var) -> PrimExpr:
        return self.values.get(var, var)

    def visit_block(self, block: Block) -> Stmt:
        for match in block.match_buffers:
            self._match(match)
        return super().visit_block(
            block.replace(match_buffers=()) if block.match_buffers else block
        )

    def _match(self, match: MatchBufferRegion) -> None:
        view = match.buffer
        source = self.visit_buffer_region(match.source)
        buffer, region = source.buffer, source.region
        self.sources[view] = source
        starts = [r.min for r in region]
        strides = list(buffer.strides) or list(compact_strides(buffer.shape))
        self._bind(view.data, buffer.data, view)
        self._bind(
            view.elem_offset, buffer.replace(strides=tuple(strides)).offset_of(starts)[-1], view
        )
        rank = len(view.shape)
        for wanted, found in zip(view.shape, region[-rank:] if rank else (), strict=True):
            self._bind(wanted, found.extent, view)
        if view.strides:
            for wanted, found_stride in zip(view.strides, strides[-rank:], strict=True):
                self._bind(wanted, found_stride, view)

    def visit_for(self, loop: For) -> Stmt:
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), True)
        return self.rewrite_children(loop)

    def _bind(self, wanted: PrimExpr, value: PrimExpr, view: Buffer) -> None:
        is_free = isinstance(wanted, Var) and wanted not in self.defined
        if is_free and wanted not in self.values:
            assert isinstance(wanted, Var)
            self.values[wanted] = value
            return
        known = self.visit(wanted)
        same = known is value or known.dtype is value.dtype
        if not same or not self.analyzer.can_prove_equal(known, value):
            raise LoweringError(
                f"match_buffer {view.name} requires {wanted} where its source has {value}",
                hint="give the view offset_factor=1, or variables for what the source decides",
            )

    def _redirect(self, view: Buffer, indices: Sequence[PrimExpr]) -> list[PrimExpr]:
        region = self.sources[view].region
        dropped = len(region) - len(indices)
        if dropped < 0 or not all([is_const(r.extent, 1) for r in region[:dropped]]):
            raise LoweringError(
                f"match_buffer {view.name} needs as many dimensions as its source, apart from leading "
                f"ones of extent 1, got {len(view.shape)} and {len(region)}"
            )
        inner = [r.min + index for r, index in zip(region[dropped:], indices, strict=True)]
        return [*[r.min for r in region[:dropped]], *inner]

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        if load.buffer not in self.sources:
            return super().visit_buffer_load(load)
        indices = [self.visit(index) for index in load.indices]
        return BufferLoad(
            self.sources[load.buffer].buffer, tuple(self._redirect(load.buffer, indices))
        )

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        if node.buffer not in self.sources:
            return super().visit_buffer_store(node)
        value = self.visit(node.value)
        indices = [self.visit(index) for index in node.indices]
        source = self.sources[node.buffer].buffer
        return BufferStore(source, value, self._redirect(node.buffer, indices))

    def visit_buffer_region(self, node: BufferRegion) -> BufferRegion:
        region = self.sources.get(node.buffer)
        if region is None:
            return super().visit_buffer_region(node)
        ranges = [self.visit(r) for r in node.region]
        starts = self._redirect(node.buffer, [r.min for r in ranges])
        dropped = len(starts) - len(ranges)
        extents = [*[r.extent for r in region.region[:dropped]], *[r.extent for r in ranges]]
        pairs = zip(starts, extents, strict=True)
        return BufferRegion(region.buffer, tuple([Range.from_min_extent(a, b) for a, b in pairs]))


@prim_func_pass("tir.LowerMatchBuffer")
def lower_match_buffer(func: PrimFunc) -> PrimFunc:
    """Remove matched views."""
    if comes_from_te(func):
        return func
    defined = [*func.params]
    for buffer in func.buffer_map.values():
        defined += [
            buffer.data,
            *[e for e in (*buffer.shape, *buffer.strides) if isinstance(e, Var)],
        ]
    return func.with_body(MatchLowerer(defined).visit(func.body))


LowerMatchBuffer = lower_match_buffer.factory
