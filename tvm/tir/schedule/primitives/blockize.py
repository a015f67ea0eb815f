"""A nest of loops becomes a block, the block inside of it one that computes a part.

for i_0, i_1 in grid(8, 16):                 for i_0 in range(8):
    block B: B[i_0 * 16 + i_1] = ...    ->       block B_o: vi_o = i_0
                                                     for i_1 in range(16):
                                                         block B: B[vi_o * 16 + vi_i] = ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm.arith import Analyzer, IntervalSet, normalize_iter_map_to_expr, subspace_divide
from tvm.arith.iter_affine_map import IterSumExpr
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.constants import is_one, is_zero
from tvm.tir.expr import IntImm, IterVar, Range, Var, const
from tvm.tir.stmt import Block, BlockRealize, BufferRegion, For, Stmt, seq
from tvm.tir.stmt_functor import substitute

from ..analyses.access import buffers_by_pointer, with_regions
from ..analyses.bindings import uses_var
from ..errors import PrimitiveError
from ..rewriting import Reuse, substitute_tracked
from ..state import ScheduleState
from ..tree import domain_of, loops_of, proper_ancestor, statements_inside
from .cache_stage import position_in
from .reduction import init_predicate, uses_any


@dataclass(slots=True)
class Division:
    """The variables of the outer and the inner block, their values, and what the old ones become."""

    outer: list[IterVar] = field(default_factory=list)
    outer_values: list[PrimExpr] = field(default_factory=list)
    inner: list[IterVar] = field(default_factory=list)
    inner_values: list[PrimExpr] = field(default_factory=list)
    values: dict[Var, PrimExpr] = field(default_factory=dict)


def blockize(state: ScheduleState, loop_sref: StmtSRef, preserve_unit_iters: bool) -> StmtSRef:
    """The block around a loop."""
    blocks = state.child_blocks(loop_sref)
    if len(blocks) != 1:
        raise PrimitiveError(
            "ScheduleError: The target subtree is required to have only one child block",
            f"The loop {{0}} is required to have one block inside, it has {len(blocks)}",
            loop_sref.loop,
        )
    (block_sref,) = blocks
    realize, block = state.realize_of(block_sref), block_sref.block
    loops = loops_of(block_sref)
    at = [loop is loop_sref for loop in loops].index(True)
    inner_loops = loops[at:]
    pairs, outer_predicate, inner_predicate = _divided(
        realize, loops, inner_loops, preserve_unit_iters
    )
    _require_whole_reductions(block, pairs, loops, inner_loops)
    division = _variables(block, pairs, preserve_unit_iters)
    reuse: Reuse = {}
    inner = _inner_block(block, division, reuse)
    inner_realize = BlockRealize(tuple(division.inner_values), inner_predicate, inner)
    body: Stmt = inner_realize
    for sref in reversed(inner_loops):
        body = sref.loop.replace(body=body)
    init = None
    if block.init is not None:
        init = _outer_init(block, division, inner_predicate, inner_loops)
    # a block without variables accesses regions in terms of the loops themselves
    inside = {a.var: a.dom for a in division.inner if a.dom is not None} | domain_of(inner_loops)
    reads = [_relaxed(substitute(r, division.values), inside) for r in block.reads]
    writes = [_relaxed(substitute(r, division.values), inside) for r in block.writes]
    outer = Block(division.outer, reads, writes, f"{block.name_hint}_o", body, init)
    state.replace(
        loop_sref, BlockRealize(tuple(division.outer_values), outer_predicate, outer), reuse
    )
    return state.sref_of(outer)


def blockize_blocks(
    state: ScheduleState, blocks: Sequence[StmtSRef], preserve_unit_iters: bool
) -> StmtSRef:
    """A block around all the statements from the first of some blocks to the last one."""
    del preserve_unit_iters
    if not blocks:
        raise RuntimeValueError("blockize requires a loop or at least one block")
    place = proper_ancestor(blocks)
    assert place.stmt is not None
    positions = [position_in(place, block) for block in blocks]
    stmts = list(statements_inside(place.stmt.body))
    first, last = min(positions), max(positions)
    chosen = seq(stmts[first : last + 1])
    name = "_".join([block.block.name_hint for block in blocks]) + "_o"
    inside = Block([], [], [], name, chosen)
    known = buffers_by_pointer(
        [
            region.buffer
            for block in state.child_blocks(place)
            for region in (*block.block.reads, *block.block.writes)
        ]
    )
    outer = with_regions(inside, known)
    stmts[first : last + 1] = [BlockRealize((), const(True), outer)]
    state.replace_body(place, seq(stmts))
    return state.sref_of(outer)


Pair = tuple[
    PrimExpr, PrimExpr, PrimExpr, PrimExpr
]  # outer value and extent, inner value and extent


def _divided(
    realize: BlockRealize,
    loops: Sequence[StmtSRef],
    inner_loops: Sequence[StmtSRef],
    preserve_unit_iters: bool,
) -> tuple[list[Pair], PrimExpr, PrimExpr]:
    inner_vars = [sref.loop.loop_var for sref in inner_loops]
    found = subspace_divide(
        realize.iter_values, domain_of(loops), inner_vars, realize.predicate, "surjective",
        not preserve_unit_iters,
    )  # fmt: skip
    # an offset is in no part: what has one is divided by hand
    if found and all([is_zero(outer.base) for outer, _ in found[:-1]]):
        *sums, (outer_predicate, inner_predicate) = found
        pairs = []
        for outer, inner in sums:
            pairs.append(
                (
                    normalize_iter_map_to_expr(outer),
                    _extent_of(outer),
                    normalize_iter_map_to_expr(inner),
                    _extent_of(inner),
                )
            )
        return pairs, outer_predicate, inner_predicate
    return _trivially_divided(realize, inner_vars, loops, inner_loops)


def _require_whole_reductions(
    block: Block, pairs: Sequence[Pair], loops: Sequence[StmtSRef], inner_loops: Sequence[StmtSRef]
) -> None:
    """Reject a reduction whose inner part goes on with the outer loops: each turn would begin anew."""
    inside = [id(sref) for sref in inner_loops]
    outer = {sref.loop.loop_var: None for sref in loops if id(sref) not in inside}
    if block.init is not None and any([uses_var(value, outer) for _, _, value, _ in pairs]):
        _reject(block)


def _extent_of(total: IterSumExpr) -> PrimExpr:
    """How many values a sum of splits has, the first of them 0."""
    if not total.args:
        return const(1, total.base.dtype)
    analyzer = Analyzer()
    reach: PrimExpr = const(1, total.base.dtype)
    for split in total.args:
        reach = op.add(reach, op.multiply(op.subtract(split.extent, 1), split.scale))
    return analyzer.simplify(reach)


def _trivially_divided(
    realize: BlockRealize,
    inner_vars: Sequence[Var],
    loops: Sequence[StmtSRef],
    inner_loops: Sequence[StmtSRef],
) -> tuple[list[Pair], PrimExpr, PrimExpr]:
    """Each value depends on outer or on inner loops alone; others are rejected."""
    inner = dict.fromkeys(inner_vars)
    others = {
        sref.loop.loop_var: None for sref in loops if not any([sref is i for i in inner_loops])
    }
    pairs: list[Pair] = []
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        assert axis.dom is not None
        zero, one = const(0, value.dtype), const(1, value.dtype)
        if not uses_var(value, inner):
            pairs.append((value, axis.dom.extent, zero, one))
        elif not uses_var(value, others):
            pairs.append((zero, one, value, axis.dom.extent))
        else:
            _reject(realize.block)
    yes = const(True)
    if not uses_var(realize.predicate, inner):
        return pairs, realize.predicate, yes
    if not uses_var(realize.predicate, others):
        return pairs, yes, realize.predicate
    return _reject(realize.block)


def _reject(block: Block) -> tuple[list[Pair], PrimExpr, PrimExpr]:
    raise PrimitiveError(
        "ScheduleError: The bindings of the inner block can not be blockized by the loops",
        "The values of the variables of {0} can not be divided into a part of the outer loops and "
        "a part of the inner ones",
        block,
    )


def _variables(block: Block, pairs: Sequence[Pair], preserve_unit_iters: bool) -> Division:
    found = Division()
    for axis, (outer_value, outer_extent, inner_value, inner_extent) in zip(
        block.iter_vars, pairs, strict=True
    ):
        if is_one(inner_extent) and not (preserve_unit_iters and not _is_const(inner_value)):
            # the inner block needs no variable of its own: where the predicates hold, its part is 0
            found.outer.append(_axis(axis, "_o", outer_extent))
            found.outer_values.append(outer_value)
            found.values[axis.var] = found.outer[-1].var
            continue
        inner = _axis(axis, "_i", inner_extent)
        found.inner.append(inner)
        found.inner_values.append(inner_value)
        if is_one(outer_extent) and not preserve_unit_iters:
            found.values[axis.var] = inner.var
            continue
        outer = _axis(axis, "_o", outer_extent)
        found.outer.append(outer)
        found.outer_values.append(outer_value)
        found.values[axis.var] = op.add(op.multiply(outer.var, inner_extent), inner.var)
    return found


def _axis(axis: IterVar, suffix: str, extent: PrimExpr) -> IterVar:
    var = axis.var.replace(name=axis.var.name + suffix)
    return IterVar(Range.from_min_extent(const(0, extent.dtype), extent), var, axis.iter_type)


def _is_const(expr: PrimExpr) -> bool:
    return isinstance(expr, IntImm)


def _inner_block(block: Block, division: Division, reuse: Reuse) -> Block:
    """The old block in terms of the new variables; a reduction's initialisation is taken out."""
    changed: Reuse = {}
    body = substitute_tracked(block.body, division.values, changed)
    reads = tuple([substitute(region, division.values) for region in block.reads])
    writes = tuple([substitute(region, division.values) for region in block.writes])
    if block.init is not None:
        read = dict.fromkeys([region.buffer for region in reads])
        reads = (*[region for region in writes if region.buffer not in read], *reads)
    matches = tuple([substitute(match, division.values) for match in block.match_buffers])
    new = block.replace(
        iter_vars=tuple(division.inner), reads=reads, writes=writes, body=body, init=None,
        match_buffers=matches,
    )  # fmt: skip
    reuse.update(changed)
    reuse[block] = new
    return new


def _outer_init(
    block: Block, division: Division, predicate: PrimExpr, loops: Sequence[StmtSRef]
) -> Stmt:
    """The initialisation of all that the outer block computes."""
    assert block.init is not None
    spatial = [
        (axis, value)
        for axis, value in zip(division.inner, division.inner_values, strict=True)
        if axis.iter_type == IterVar.DataPar
    ]
    renamed: dict[Var, PrimExpr] = {}
    axes: list[IterVar] = []
    for axis, _ in spatial:
        var = axis.var.replace(name=f"{axis.var.name}_init")
        renamed[axis.var] = var
        axes.append(axis.replace(var=var))
    values = [value for _, value in spatial]
    used = [sref for sref in loops if uses_any(values, sref.loop.loop_var)]
    writes = [substitute(substitute(r, division.values), renamed) for r in block.writes]
    init = substitute(substitute(block.init, division.values), renamed)
    inner = Block(axes, [], writes, f"{block.name_hint}_init", init)
    where = init_predicate(predicate, loops, used)
    result: Stmt = BlockRealize(tuple(values), where, inner)
    variables: dict[Var, PrimExpr] = {}
    for sref in reversed(used):
        loop = sref.loop
        var = loop.loop_var.replace(name=f"{loop.loop_var.name}_init")
        variables[loop.loop_var] = var
        result = For(var, loop.min, loop.extent, loop.kind, result)
    nest: Stmt = substitute(result, variables)
    return nest


def _relaxed(region: BufferRegion, inside: dict[Var, Range]) -> BufferRegion:
    """What is accessed while the inner variables run over their domains."""
    analyzer = Analyzer()
    domains = {var: IntervalSet.from_range(domain) for var, domain in inside.items()}
    for var, domain in inside.items():
        analyzer.bind(var, domain)
    sides: list[Range] = []
    for side, extent in zip(region.region, region.buffer.shape, strict=True):
        low = analyzer.int_set(side.min, domains)
        high = analyzer.int_set(op.subtract(op.add(side.min, side.extent), 1), domains)
        if not low.has_lower_bound() or not high.has_upper_bound():
            sides.append(Range.from_min_extent(const(0, extent.dtype), extent))
            continue
        length = analyzer.simplify(op.add(op.subtract(high.max_value, low.min_value), 1))
        sides.append(Range.from_min_extent(analyzer.simplify(low.min_value), length))
    return BufferRegion(region.buffer, tuple(sides))
