"""Loops that stand side by side become one.

for i in range(8): f(i)                  for i_m in range(8):
for j in range(8): g(j)    merge(i, j)       f(i_m)
                                             g(i_m)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IterVar, Var
from tvm.tir.stmt import BlockRealize, For, SeqStmt, Stmt, seq

from ..analyses.bindings import uses_var
from ..analyses.order import require_order
from ..errors import PrimitiveError
from ..rewriting import Reuse, substitute_tracked
from ..state import ScheduleState
from ..tree import only_child, proper_ancestor, scope_of
from .loops import require_plain_loop, require_zero_start


def merge(state: ScheduleState, loop_srefs: Sequence[StmtSRef]) -> StmtSRef:
    """One nest of loops in the place of several nests of the same extents below one statement."""
    if len(dict.fromkeys(loop_srefs)) < max(2, len(loop_srefs)):
        raise PrimitiveError(
            "ScheduleError: merge requires at least two different loops",
            f"merge requires at least two different loops, got {len(loop_srefs)}",
        )
    _require_one_scope(loop_srefs)
    place = proper_ancestor(loop_srefs)
    if any([b.is_inside(a) for a in loop_srefs for b in loop_srefs if a is not b]):
        raise PrimitiveError(
            "ScheduleError: Loops to be merged are inside of each other",
            "The loops {0} and {1} are required to stand side by side",
            loop_srefs[0].loop, loop_srefs[1].loop,
        )  # fmt: skip
    nests = [_nest_below(place, sref) for sref in loop_srefs]
    _require_same_extents(nests)
    _require_whole_reductions(state, nests)
    if state.enable_check:
        _require_writers_in_order(state, place, nests)
    shown = nests[0][-1].loop
    merged = _rewrite(state, place, nests)
    if state.enable_check:
        require_order(state, state.child_blocks(merged), shown)
    return merged


def _require_one_scope(loop_srefs: Sequence[StmtSRef]) -> None:
    first = loop_srefs[0]
    for other in loop_srefs[1:]:
        if scope_of(other) is not scope_of(first):
            raise PrimitiveError(
                "ScheduleError: Loops are not in the same scope",
                "Loops {0} and {1} are required to be in the same scope",
                first.loop, other.loop,
            )  # fmt: skip


def _nest_below(place: StmtSRef, inner: StmtSRef) -> list[StmtSRef]:
    """The loops from below the place to the given one, the outermost first."""
    nest = [inner]
    while nest[0].parent is not place:
        parent = nest[0].parent
        assert parent is not None
        if not only_child(parent.loop, nest[0].stmt):
            raise PrimitiveError(
                "ScheduleError: the inner loop is not the only child of outer loop",
                "The loops can't be merged because the inner loop {1} is not the only child of "
                "outer loop {0}",
                parent.loop, nest[0].loop,
            )  # fmt: skip
        nest.insert(0, parent)
    for sref in nest:
        require_plain_loop(sref.loop)
        require_zero_start(sref.loop)
    return nest


def _require_same_extents(nests: Sequence[Sequence[StmtSRef]]) -> None:
    analyzer = Analyzer()
    for nest in nests[1:]:
        if len(nest) != len(nests[0]):
            raise PrimitiveError(
                "ScheduleError: Merge loop's nesting depth must be same, but not",
                "Merge loop's nesting depth must be same, but {0} and {1} are at different depths",
                nests[0][-1].loop, nest[-1].loop,
            )  # fmt: skip
        for a, b in zip(nests[0], nest, strict=True):
            if not analyzer.can_prove_equal(a.loop.extent, b.loop.extent):
                raise PrimitiveError(
                    "ScheduleError: Merge loop's `extent` must be same, but not",
                    f"Merge loop's `extent` must be same, but {{0}} has {a.loop.extent} and {{1}} "
                    f"has {b.loop.extent}",
                    a.loop, b.loop,
                )  # fmt: skip


def _require_whole_reductions(state: ScheduleState, nests: Sequence[Sequence[StmtSRef]]) -> None:
    """What a nest sums over the merged loops is not complete for the others inside of them."""
    below = [state.child_blocks(nest[0]) for nest in nests]
    for nest, blocks in zip(nests, below, strict=True):
        loops = {sref.loop.loop_var: None for sref in nest}
        others = [other.block for group in below if group is not blocks for other in group]
        used = {r.buffer: None for other in others for r in (*other.reads, *other.writes)}
        for sref in blocks:
            block = sref.block
            if not any([region.buffer in used for region in block.writes]):
                continue
            if reduces_over(state.realize_of(sref), loops):
                raise PrimitiveError(
                    "ScheduleError: Merged loops reduce what is used inside of them",
                    "The loop {0} can't be merged: over it the block {1} reduces what the other "
                    "loops use",
                    nest[-1].loop, block,
                )  # fmt: skip


def reduces_over(realize: BlockRealize, loops: Mapping[Var, object]) -> bool:
    """Whether a block, or one inside of it, reduces over some of the loops' variables."""
    finder = _ReductionFinder(loops)
    finder.visit(realize)
    return finder.found


class _ReductionFinder(Visitor):
    """Follows variables through the axes of blocks."""

    def __init__(self, loops: Mapping[Var, object]) -> None:
        self.followed = dict.fromkeys(loops)
        self.found = False

    def visit_block_realize(self, realize: BlockRealize) -> None:
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
            if uses_var(value, self.followed):
                self.followed[axis.var] = None
                self.found |= axis.iter_type == IterVar.CommReduce
        self.visit(realize.block)


def _require_writers_in_order(
    state: ScheduleState, place: StmtSRef, nests: Sequence[Sequence[StmtSRef]]
) -> None:
    """Reject loops that would come after or into others which write the same buffers."""
    tops = dict.fromkeys([nest[0] for nest in nests])
    writers: dict[Buffer, list[StmtSRef]] = {}
    passed = False
    for block in state.child_blocks(place):
        top = block
        while top.parent is not place:
            assert top.parent is not None
            top = top.parent
        passed = passed or top in tops
        for region in block.block.writes:
            others = writers.setdefault(region.buffer, [])
            if passed and any([o is not top and (o in tops or top in tops) for o in others]):
                raise PrimitiveError(
                    "ScheduleError: Merged loops write what others write too",
                    f"The loop {{0}} can't be merged: the order in which {region.buffer.name} is "
                    "written would be another one",
                    nests[0][-1].loop,
                )
            if passed:
                others.append(top)


def _rewrite(
    state: ScheduleState, place: StmtSRef, nests: Sequence[Sequence[StmtSRef]]
) -> StmtSRef:
    first = nests[0]
    variables = [sref.loop.loop_var.replace(name=f"{sref.loop.loop_var.name}_m") for sref in first]
    reuse: Reuse = {}
    bodies: list[Stmt] = []
    for nest in nests:
        values: dict[Var, PrimExpr] = {
            sref.loop.loop_var: var for sref, var in zip(nest, variables, strict=True)
        }
        bodies.append(substitute_tracked(nest[-1].loop.body, values, reuse))
    new: Stmt = seq(bodies)
    for sref, var in zip(reversed(first), reversed(variables), strict=True):
        new = For(var, 0, sref.loop.extent, sref.loop.kind, new)
        if sref is first[-1]:
            innermost = new
    tops = [nest[0].loop for nest in nests]
    assert place.stmt is not None
    body = place.stmt.body
    assert isinstance(body, SeqStmt), "loops side by side are statements of a sequence"
    last = max([i for i, stmt in enumerate(body.seq) if any([stmt is top for top in tops])])
    stmts: list[Stmt] = []
    for position, stmt in enumerate(body.seq):
        if position == last:
            stmts.append(new)
        elif not any([stmt is top for top in tops]):
            stmts.append(stmt)
    state.replace_body(place, seq(stmts), reuse)
    assert isinstance(innermost, For)
    return state.sref_of(innermost)
