"""Whether blocks read only what the blocks before them have written completely.

for i in range(128): B[i] = A[i]         the second block is covered: at its place, that is after
for i in range(128): C[i] = B[i]         the first loop, all it reads of B has been written

for i in range(128):
    B[i] = A[i]
    C[i] = B[i - 1]                      not covered: an iteration reads what another one has written
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tvm.arith import Analyzer, union_lower_bound
from tvm.tir.block_scope import BlockScope, DepKind, StmtSRef
from tvm.tir.buffer import Buffer

from ..tree import common_ancestor, scope_of, surroundings
from .regions import Box, accessed, accessed_for_certain, covers, within

if TYPE_CHECKING:
    from ..state import ScheduleState


class RegionCover:
    """Answers for the blocks of a state, and keeps answers while what they rest on stays the same."""

    def __init__(self, state: ScheduleState) -> None:
        self.state = state
        self.known: dict[StmtSRef, tuple[tuple[Any, ...], bool]] = {}

    def holds(self, block: StmtSRef) -> bool:
        """Whether all that the block reads was written before it."""
        scope = self.state.get_block_scope(scope_of(block))
        producers = self._producers(scope, block)
        if not producers:
            return True
        involved = dict.fromkeys([block, *[p for found in producers.values() for p in found]])
        key = tuple([item for sref in involved for item in self._signature(sref)])
        known = self.known.get(block)
        if known is not None and len(known[0]) == len(key):
            if all([a is b for a, b in zip(known[0], key, strict=True)]):
                return known[1]
        found = all([self.is_written(block, b, writers) for b, writers in producers.items()])
        self.known[block] = (key, found)
        return found

    def is_stage_pipeline(self, scope_sref: StmtSRef) -> bool:
        """Whether each block in a scope is covered, and none writes over what another one reads."""
        scope = self.state.get_block_scope(scope_sref)
        for dependencies in scope.dst2deps.values():
            if any([d.kind in (DepKind.WAR, DepKind.OPAQUE) for d in dependencies]):
                return False
        return all([self.holds(child) for child in scope.children])

    def _producers(self, scope: BlockScope, block: StmtSRef) -> dict[Buffer, list[StmtSRef]]:
        sources = [
            dep.src
            for dep in scope.get_deps_by_dst(block)
            if dep.kind == DepKind.RAW and dep.src is not block
        ]
        found: dict[Buffer, list[StmtSRef]] = {}
        for region in scope.reads_of(block):
            writers = [
                source
                for source in sources
                if any([write.buffer is region.buffer for write in source.block.writes])
            ]
            if writers:
                found[region.buffer] = list(dict.fromkeys(writers))
        return found

    def _signature(self, block: StmtSRef) -> list[Any]:
        """All that the regions of a block depend on, compared by identity."""
        realize = self.state.realize_of(block)
        stmt = block.block
        found: list[Any] = [
            block, realize.iter_values, realize.predicate, stmt.iter_vars, stmt.reads, stmt.writes,
        ]  # fmt: skip
        for above in block.ancestors():
            found.append(above)
            if not above.is_block:
                loop = above.loop
                found += [loop.loop_var, loop.min, loop.extent, loop.thread_binding]
        return found

    def is_written(self, block: StmtSRef, buffer: Buffer, writers: Sequence[StmtSRef]) -> bool:
        """Whether all that a block reads of a buffer was written before it by given blocks."""
        place = common_ancestor([block, *writers])
        analyzer = Analyzer()
        for var, domain in surroundings(place).items():
            analyzer.bind(var, domain)
        written: list[Box] = []
        for writer in writers:
            realize = self.state.realize_of(writer)
            for region in writer.block.writes:
                if region.buffer is buffer:
                    box = accessed_for_certain(region, realize, writer.parent, place)
                    if box is not None:
                        written.append(within(box, buffer.shape, analyzer))
        realize = self.state.realize_of(block)
        scope = self.state.get_block_scope(scope_of(block))
        for region in scope.reads_of(block):
            if region.buffer is buffer:
                box = accessed(region, realize, block.parent, place)
                if not _covered(written, within(box, buffer.shape, analyzer), analyzer):
                    return False
        return True


def _covered(written: list[Box], needed: Box, analyzer: Analyzer) -> bool:
    """Whether one box holds what is needed, or several that differ along one axis do together."""
    if not needed:
        return bool(written)
    if any([_holds(box, needed, analyzer, None) for box in written]):
        return True
    if len(written) < 2:
        return False
    for axis, side in enumerate(needed):
        beside = [box[axis] for box in written if _holds(box, needed, analyzer, axis)]
        if beside and covers(union_lower_bound(beside), side, analyzer):
            return True
    return False


def _holds(box: Box, needed: Box, analyzer: Analyzer, but: int | None) -> bool:
    return all(
        [
            axis == but or covers(outer, inner, analyzer)
            for axis, (outer, inner) in enumerate(zip(box, needed, strict=True))
        ]
    )
