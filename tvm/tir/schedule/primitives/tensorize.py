"""A block's computation is done by an intrinsic whose description it matches.

The intrinsic's implementation takes the place of the block's body; its buffers become views of the regions
that the block works on.
"""

from __future__ import annotations

from typing import Any

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node
from tvm.support import deep
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IntImm, IterVar, Range, Var, const
from tvm.tir.function import PrimFunc, TensorIntrin
from tvm.tir.stmt import (
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    For,
    MatchBufferRegion,
    SeqStmt,
)
from tvm.tir.stmt_functor import renew_defs, substitute

from ..analyses.bindings import uses_var
from ..errors import PrimitiveError
from ..rewriting import Reuse
from ..state import ScheduleState
from .blockize import blockize


def tensorize(
    state: ScheduleState, sref: StmtSRef, intrin: TensorIntrin, preserve_unit_iters: bool
) -> None:
    """Let an intrinsic do what a block does, or the loops and the block inside a loop."""
    block_sref = sref if sref.is_block else blockize(state, sref, preserve_unit_iters)
    block = block_sref.block
    matcher = DescriptionMatcher(block)
    description = intrin.desc.body
    assert isinstance(description, BlockRealize)
    if not matcher.match_root(block, description.block):
        raise PrimitiveError(
            "ScheduleError: The stmt doesn't match the tensor intrin",
            f"The block {{0}} doesn't match the description of the tensor intrinsic: {matcher.reason}",
            block,
        )
    impl = renew_defs(intrin.impl)
    new = _with_implementation(block, intrin.desc, impl, matcher)
    reuse: Reuse = {block: new}
    state.replace(block_sref, new, reuse)


def _with_implementation(
    block: Block, desc: PrimFunc, impl: PrimFunc, matcher: DescriptionMatcher
) -> Block:
    body = impl.body
    assert isinstance(body, BlockRealize)
    root = body.block
    views: list[MatchBufferRegion] = []
    sources: dict[Buffer, Buffer] = {}
    for desc_param, impl_param in zip(desc.params, impl.params, strict=True):
        described, implemented = desc.buffer_map[desc_param], impl.buffer_map[impl_param]
        sources[implemented] = matcher.buffers.get(described, implemented)
    regions: dict[Buffer, BufferRegion] = {}
    analyzer = Analyzer()
    for region in (*root.writes, *root.reads):
        if region.buffer in sources and region.buffer not in regions:
            regions[region.buffer] = _actual(region, sources[region.buffer], matcher, analyzer)
    for implemented in sources:
        if implemented in regions:
            views.append(MatchBufferRegion(implemented, regions[implemented]))
    reads = tuple(
        [
            _actual(r, sources[r.buffer], matcher, analyzer)
            for r in root.reads
            if r.buffer in sources
        ]
    )
    writes = tuple(
        [
            _actual(r, sources[r.buffer], matcher, analyzer)
            for r in root.writes
            if r.buffer in sources
        ]
    )
    return block.replace(
        body=root.body,
        init=None,
        reads=reads,
        writes=writes,
        alloc_buffers=(*block.alloc_buffers, *root.alloc_buffers),
        match_buffers=(*block.match_buffers, *root.match_buffers, *views),
        annotations={**block.annotations, **root.annotations},
    )


def _actual(
    region: BufferRegion, buffer: Buffer, matcher: DescriptionMatcher, analyzer: Analyzer
) -> BufferRegion:
    """The region of the program's buffer that one of the intrinsic's buffers stands for."""
    start = matcher.starts[buffer]
    offset = len(start) - len(region.region)
    sides = [Range.from_min_extent(index, const(1, index.dtype)) for index in start[:offset]]
    for index, side in zip(start[offset:], region.region, strict=True):
        first = analyzer.simplify(op.add(index, op.cast(side.min, index.dtype)))
        sides.append(Range.from_min_extent(first, op.cast(side.extent, index.dtype)))
    return BufferRegion(buffer, tuple(sides))


class DescriptionMatcher:
    """Compares a block with an intrinsic's description, buffer by buffer and index by index.

    An index of the program is that of the description and an offset, the same one for all accesses
    of a buffer. Variables of the block that the description has none for are constants.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.reason = "the statements differ"
        self.variables: dict[Var, Var] = {}  # of the description, by those of the program
        self.buffers: dict[Buffer, Buffer] = {}  # of the program, by those of the description
        self.starts: dict[Buffer, list[PrimExpr]] = {}
        self.analyzer = Analyzer()

    @deep
    def match_root(self, block: Block, description: Block) -> bool:
        """Whether the block does what the description's root block does."""
        for axis in block.iter_vars:
            if axis.dom is not None:
                self.analyzer.bind(axis.var, axis.dom)
        if (block.init is None) is not (description.init is None) and description.init is not None:
            return self._differs("the initialisations differ")
        if block.init is not None and description.init is None:
            return self._differs("the block has an initialisation, the intrinsic has none")
        if block.init is not None and not self.match(block.init, description.init):
            return False
        return self.match(block.body, description.body)

    def _differs(self, reason: str) -> bool:
        self.reason = reason
        return False

    def match(self, lhs: Any, rhs: Any) -> bool:
        """Whether a part of the program is what a part of the description says."""
        if isinstance(lhs, Var) and isinstance(rhs, Var):
            return self.variables.get(lhs, lhs) is rhs or self._differs(
                f"{lhs.name} is not {rhs.name}"
            )
        if type(lhs) is not type(rhs):
            return self._differs(f"{type(lhs).__name__} is not {type(rhs).__name__}")
        if isinstance(lhs, For):
            return self._match_loop(lhs, rhs)
        if isinstance(lhs, SeqStmt):
            return len(lhs.seq) == len(rhs.seq) and all(
                [self.match(a, b) for a, b in zip(lhs.seq, rhs.seq, strict=True)]
            )
        if isinstance(lhs, BlockRealize):
            return self._match_realize(lhs, rhs)
        if isinstance(lhs, BufferStore):
            return self._match_access(lhs, rhs) and self.match(lhs.value, rhs.value)
        if isinstance(lhs, BufferLoad):
            return self._match_access(lhs, rhs)
        if isinstance(lhs, Node):
            return self._match_fields(lhs, rhs)
        return bool(lhs == rhs)

    def _match_fields(self, lhs: Node, rhs: Node) -> bool:
        if getattr(lhs, "dtype", None) is not getattr(rhs, "dtype", None):
            return self._differs(f"the data types of {lhs} and {rhs} differ")
        for name, _ in type(lhs).compared:
            a, b = getattr(lhs, name), getattr(rhs, name)
            if isinstance(a, tuple):
                if len(a) != len(b) or not all(
                    [self.match(x, y) for x, y in zip(a, b, strict=True)]
                ):
                    return False
            elif a is not b and not self.match(a, b):
                return self._differs(f"{lhs} is not {rhs}")
        return True

    def _match_loop(self, lhs: For, rhs: For) -> bool:
        extents = self.analyzer.can_prove_equal(lhs.extent, rhs.extent)
        if not extents or not self.analyzer.can_prove_equal(lhs.min, rhs.min):
            return self._differs(
                f"the loop {lhs.loop_var.name} of {lhs.extent} is not {rhs.loop_var.name} of {rhs.extent}"
            )
        if lhs.kind != rhs.kind or lhs.thread_binding is not rhs.thread_binding:
            return self._differs(
                f"the loops {lhs.loop_var.name} and {rhs.loop_var.name} differ in kind"
            )
        self.variables[lhs.loop_var] = rhs.loop_var
        self.analyzer.bind(rhs.loop_var, Range.from_min_extent(rhs.min, rhs.extent))
        self.analyzer.bind(lhs.loop_var, Range.from_min_extent(lhs.min, lhs.extent))
        return self.match(lhs.body, rhs.body)

    def _match_realize(self, lhs: BlockRealize, rhs: BlockRealize) -> bool:
        if not self.match(lhs.predicate, rhs.predicate):
            return self._differs("the predicates differ")
        a, b = lhs.block, rhs.block
        # variables beyond those of the description come first, and are fixed outside
        extra = len(a.iter_vars) - len(b.iter_vars)
        if extra < 0:
            return self._differs(f"the block {a.name_hint} has too few variables")
        for axis, value in zip(a.iter_vars[:extra], lhs.iter_values[:extra], strict=True):
            if axis.iter_type != IterVar.DataPar and not isinstance(value, IntImm):
                return self._differs(f"the block {a.name_hint} has too many reductions")
            self.analyzer.bind(axis.var, value)
        pairs = zip(a.iter_vars[extra:], b.iter_vars, strict=True)
        values = zip(lhs.iter_values[extra:], rhs.iter_values, strict=True)
        for (mine, theirs), (value, described) in zip(pairs, values, strict=True):
            if mine.iter_type != theirs.iter_type:
                return self._differs(f"the variable {mine.var.name} is of another kind")
            if not self.match(value, described):
                return False
            self.variables[mine.var] = theirs.var
            if theirs.dom is not None:
                self.analyzer.bind(theirs.var, theirs.dom)
            if mine.dom is not None:
                self.analyzer.bind(mine.var, mine.dom)
        if (a.init is None) is not (b.init is None):
            return self._differs("the initialisations differ")
        if a.init is not None and not self.match(a.init, b.init):
            return False
        return self.match(a.body, b.body)

    def _match_access(self, lhs: Any, rhs: Any) -> bool:
        known = self.buffers.get(rhs.buffer)
        if known is None:
            if lhs.buffer.dtype is not rhs.buffer.dtype:
                return self._differs(
                    f"the data types of {lhs.buffer.name} and {rhs.buffer.name} differ"
                )
            if any([other is lhs.buffer for other in self.buffers.values()]):
                return self._differs(f"{lhs.buffer.name} stands for two buffers")
            self.buffers[rhs.buffer] = lhs.buffer
        elif known is not lhs.buffer:
            return self._differs(f"{lhs.buffer.name} is not {known.name}")
        offset = len(lhs.indices) - len(rhs.indices)
        if offset < 0:
            return self._differs(f"{lhs.buffer.name} has too few dimensions")
        start = [self.analyzer.simplify(index) for index in lhs.indices[:offset]]
        for index, described in zip(lhs.indices[offset:], rhs.indices, strict=True):
            start.append(self._offset(index, described))
        if any([self._has_inner(part) for part in start]):
            return self._differs(f"the indices of {lhs.buffer.name} differ")
        before = self.starts.setdefault(lhs.buffer, start)
        same = [self.analyzer.can_prove_equal(a, b) for a, b in zip(before, start, strict=True)]
        return all(same) or self._differs(f"{lhs.buffer.name} is accessed at several offsets")

    def _offset(self, index: PrimExpr, described: PrimExpr) -> PrimExpr:
        """What the index has beyond that of the description."""
        renamed = substitute(index, self.variables)
        return self.analyzer.simplify(op.subtract(renamed, op.cast(described, renamed.dtype)))

    def _has_inner(self, expr: PrimExpr) -> bool:
        inner = {**dict.fromkeys(self.variables.values()), **dict.fromkeys(self.variables)}
        return uses_var(expr, inner)
