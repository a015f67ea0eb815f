"""Loops become other loops: split, fuse, reorder, and loops of one iteration.

for i in range(128): f(i)    split(i, [None, 32])    for i_0 in range(4):
                                                         for i_1 in range(32): f(i_0 * 32 + i_1)
for i in range(4):           fuse(i, j)              for i_j_fused in range(128):
    for j in range(32): f(i, j)                          f(i_j_fused // 32, i_j_fused % 32)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tvm.arith import Analyzer
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.expr import INT32, IntImm, IterVar, Range, Var, const
from tvm.tir.stmt import For, ForKind, Stmt

from ..analyses.bindings import has_only, loops_bound_to, uses_var
from ..analyses.block_kind import require_affine_inside
from ..errors import PrimitiveError
from ..rewriting import PredicateAdder, Reuse, simplify_bindings, substitute_tracked
from ..state import ScheduleState
from ..tree import loops_of, only_child


def split(
    state: ScheduleState,
    loop_sref: StmtSRef,
    factors: Sequence[PrimExpr | None],
    preserve_unit_iters: bool,
    disable_predication: bool,
) -> list[StmtSRef]:
    """Nested loops of the given extents in the place of a loop."""
    loop = loop_sref.loop
    require_plain_loop(loop)
    require_zero_start(loop)
    analyzer = Analyzer()
    extents = complete_factors(loop, factors, analyzer)
    variables = [
        loop.loop_var.replace(name=f"{loop.loop_var.name}_{i}") for i in range(len(extents))
    ]
    index: PrimExpr = const(0, loop.loop_var.dtype)
    for var, extent in zip(variables, extents, strict=True):
        analyzer.bind(var, Range(const(0, extent.dtype), extent))
        index = op.add(op.multiply(index, extent), var)
    reuse: Reuse = {}
    body = substitute_tracked(loop.body, {loop.loop_var: index}, reuse)
    inside = op.less(index, loop.extent)
    if not disable_predication and not analyzer.can_prove(inside):
        body = PredicateAdder(inside).visit(body)
    for var, extent in zip(reversed(variables), reversed(extents), strict=True):
        body = For(var, 0, extent, ForKind.SERIAL, body)
    body = simplify_bindings(body, loops_of(loop_sref), reuse, preserve_unit_iters)
    assert isinstance(body, For)
    state.replace(loop_sref, body, reuse)
    return nested_srefs(state, body, len(extents))


def complete_factors(
    loop: For, factors: Sequence[PrimExpr | None], analyzer: Analyzer
) -> list[PrimExpr]:
    """The factors with the one that was left open; rejected if they do not cover the loop."""
    dtype = loop.loop_var.dtype
    known = [op.cast(factor, dtype) for factor in factors if factor is not None]
    if len(known) + 1 < len(factors):
        raise RuntimeValueError("at most one factor is allowed to be None")
    for factor in known:
        if isinstance(factor, IntImm) and factor.value <= 0:
            raise PrimitiveError(
                "ScheduleError: The params factors are not positive",
                "All the constant factors are required to be positive. "
                f"However, the factor of value {factor} for {{0}} is not",
                loop,
            )
    product: PrimExpr = const(1, dtype)
    for factor in known:
        product = op.multiply(product, factor)
    if len(known) < len(factors):
        open_factor = analyzer.simplify(
            op.floordiv(op.subtract(op.add(loop.extent, product), 1), product)
        )
        return [open_factor if f is None else op.cast(f, dtype) for f in factors]
    if not analyzer.can_prove(op.greater_equal(product, loop.extent)):
        raise PrimitiveError(
            "ScheduleError: The product of factors is not larger than or equal to the extent of loop",
            "The product of factors is not larger than or equal to the extent of {0}, which is "
            f"{loop.extent}",
            loop,
        )
    return known


def fuse(
    state: ScheduleState, loop_srefs: Sequence[StmtSRef], preserve_unit_iters: bool
) -> StmtSRef:
    """One loop in the place of nested ones."""
    loops = [sref.loop for sref in loop_srefs]
    require_chain(loop_srefs)
    for loop in loops:
        require_plain_loop(loop)
        require_zero_start(loop)
    require_independent(loops)
    name = "_".join([loop.loop_var.name for loop in loops]) + "_fused"
    widest = max(loops, key=lambda loop: loop.loop_var.dtype.bits).loop_var.dtype
    fused = Var(name, widest)
    analyzer = Analyzer()
    extent: PrimExpr = const(1, widest)
    for loop in loops:
        extent = op.multiply(extent, op.cast(loop.extent, widest))
    extent = analyzer.simplify(extent)
    values: dict[Var, PrimExpr] = {}
    below: PrimExpr = const(1, widest)
    for position in range(len(loops) - 1, -1, -1):
        loop = loops[position]
        value: PrimExpr = fused
        if position > 0:
            value = op.floormod(value, op.multiply(below, op.cast(loop.extent, widest)))
        value = op.floordiv(value, below)
        values[loop.loop_var] = op.cast(value, loop.loop_var.dtype)
        below = op.multiply(below, op.cast(loop.extent, widest))
    reuse: Reuse = {}
    body = substitute_tracked(loops[-1].body, values, reuse)
    new: Stmt = For(fused, 0, extent, ForKind.SERIAL, body)
    new = simplify_bindings(new, loops_of(loop_srefs[0]), reuse, preserve_unit_iters)
    assert isinstance(new, For)
    state.replace(loop_srefs[0], new, reuse)
    return state.sref_of(new)


def reorder(state: ScheduleState, loop_srefs: Sequence[StmtSRef]) -> None:
    """Bring loops of one chain into another order; loops of the chain that are not named stay."""
    if len(loop_srefs) < 2 and not loop_srefs:
        return
    named: dict[StmtSRef, None] = {}
    for sref in loop_srefs:
        if sref in named:
            raise PrimitiveError(
                "ScheduleError: Some loop appears more than once in the inputs",
                "Loop {0} appears more than once in the inputs",
                sref.loop,
            )
        named[sref] = None
    chain = _chain_of(named)
    order = iter(loop_srefs)
    new_order = [next(order) if sref in named else sref for sref in chain]
    for below in state.child_blocks(chain[-1]):
        _require_reorderable(state, below, chain)
        _require_same_start(state, below, chain, new_order)
    _require_order(chain, new_order)
    body = chain[-1].loop.body
    for sref in reversed(new_order):
        body = sref.loop.replace(body=body)
    assert isinstance(body, For)
    state.replace(chain[0], body)


def _chain_of(named: dict[StmtSRef, None]) -> list[StmtSRef]:
    """The loops from the outermost named one to the innermost; rejected if they are no chain."""
    bottom = max(named, key=lambda sref: len([*sref.ancestors()]))
    chain, left = [bottom], len(named) - 1
    for above in bottom.ancestors():
        if not left or above.is_block:
            break
        left -= above in named
        chain.insert(0, above)
    if left:
        missing = next(sref for sref in named if sref not in dict.fromkeys(chain))
        raise PrimitiveError(
            "ScheduleError: The loops are not in a chain",
            "The loops are required to be nested in each other within one scope, {0} and {1} are not",
            bottom.loop, missing.loop,
        )  # fmt: skip
    for outer, inner in pairwise(chain):
        if not only_child(outer.loop, inner.stmt):
            raise PrimitiveError(
                "ScheduleError: The loops in the reorder range are not in a single branch",
                "Some loop between the ones to be reordered has more than one child: {0}",
                outer.loop,
            )
    return chain


def _require_reorderable(state: ScheduleState, block: StmtSRef, chain: Sequence[StmtSRef]) -> None:
    """Reject a block whose variables are not affine in the loops of the chain and those inside of it."""
    if not state.enable_check:
        return
    if not has_only(block.block.iter_vars, IterVar.DataPar, IterVar.CommReduce):
        raise PrimitiveError(
            "ScheduleError: The block under the loops to be reordered have block iter type other "
            "than data-parallel or reduction",
            "The block {0} under the loops to be reordered has an iteration variable that is "
            "neither data parallel nor a reduction",
            block.block,
        )
    require_affine_inside(state, block, chain[0].parent)
    written = {region.buffer: region for region in block.block.writes}
    for region in block.block.reads:
        if region.buffer in written and not structural_equal(region, written[region.buffer]):
            raise PrimitiveError(
                "ScheduleError: The block under the loops to be reordered reads what its other "
                "instances write",
                f"The block {{0}} reads {region.buffer.name} where it may have been written in "
                "another iteration of the loops to be reordered",
                block.block,
            )


def _require_same_start(
    state: ScheduleState, block: StmtSRef, chain: Sequence[StmtSRef], new_order: Sequence[StmtSRef]
) -> None:
    """Reject an order in which a reduction does not begin where its initial value is written.

    That is where the reduction's variables are least. Loops that they share with spatial ones reach it first as
    long as they keep their order among themselves.
    """
    if block.block.init is None:
        return
    analyzer = Analyzer()
    for sref in block.ancestors():
        if sref.is_block:
            break
        loop = sref.loop
        analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), True)
    realize = state.realize_of(block)
    # (i*3 + j) // 9 is i // 3: such loops are not shared
    values = tuple([analyzer.simplify(value) for value in realize.iter_values])
    realize = realize.replace(iter_values=values)
    spatial = loops_bound_to(realize, IterVar.DataPar)
    reduced = loops_bound_to(realize, IterVar.CommReduce)
    kept = dict.fromkeys([var for var in reduced if var in spatial])
    before, after = [
        [sref.loop.loop_var for sref in order if sref.loop.loop_var in kept]
        for order in (chain, new_order)
    ]
    if any([a is not b for a, b in zip(before, after, strict=True)]):
        names = ", ".join([var.name for var in before])
        raise PrimitiveError(
            "ScheduleError: A reduction would not begin with its initial value",
            f"The loops {names} run over both spatial and reduction variables of {{0}}, whose initial "
            "value would be written after other iterations in the new order: decompose the reduction first",
            block.block,
        )


def _require_order(chain: Sequence[StmtSRef], new_order: Sequence[StmtSRef]) -> None:
    variables = {sref.loop.loop_var: sref for sref in chain}
    for position, sref in enumerate(new_order):
        inside = {other.loop.loop_var: None for other in new_order[position:]}
        loop = sref.loop
        if uses_var(loop.min, inside) or uses_var(loop.extent, inside):
            raise PrimitiveError(
                "ScheduleError: An outer loop's `min` or `extent` is dependent on an inner loop in "
                "the new order",
                "The min or extent of {0} depends on a loop that would be inside of it, of "
                f"{[var.name for var in variables]}",
                loop,
            )


def add_unit_loop(state: ScheduleState, sref: StmtSRef) -> StmtSRef:
    """A loop of one iteration around a loop or a block."""
    stmt: Stmt = sref.loop if not sref.is_block else state.realize_of(sref)
    if sref.is_block and sref.parent is None:
        raise PrimitiveError(
            "ScheduleError: The root block has no loops around it",
            "no loop can be put around the root block {0}",
            sref.block,
        )
    new = For(Var("u", INT32), 0, 1, ForKind.SERIAL, stmt)
    if not sref.is_block:
        state.replace(sref, new)
    else:
        state.replace_realize(sref, new)
    return state.sref_of(new)


def reorder_block_iter_var(state: ScheduleState, block: StmtSRef, order: Sequence[int]) -> None:
    """Bring the iteration variables of a block into another order."""
    stmt = block.block
    if sorted(order) != list(range(len(stmt.iter_vars))):
        raise PrimitiveError(
            "ScheduleError: The specified iter var order is invalid",
            f"The order {list(order)} is required to have each of the {len(stmt.iter_vars)} "
            "positions of {0}'s iteration variables once",
            stmt,
        )
    realize = state.realize_of(block)
    new = stmt.replace(iter_vars=tuple([stmt.iter_vars[i] for i in order]))
    values = tuple([realize.iter_values[i] for i in order])
    state.replace_realize(block, realize.replace(iter_values=values, block=new), {stmt: new})


# ---- what several of them require


def require_plain_loop(loop: For) -> None:
    """Reject a loop with annotations or bound to threads."""
    if loop.annotations or loop.thread_binding is not None:
        raise PrimitiveError(
            "ScheduleError: The primitive can't be applied because the loop has annotation or "
            "thread binding",
            "The primitive can't be applied because the loop {0} has annotation or thread binding",
            loop,
        )


def require_zero_start(loop: For) -> None:
    """Reject a loop that does not start at 0."""
    if not (isinstance(loop.min, IntImm) and loop.min.value == 0):
        if Analyzer().can_prove(loop.min.equal(0)):
            return
        raise PrimitiveError(
            "ScheduleError: The primitive only supports loop starting with 0",
            f"The loop {{0}} does not start with 0, but with {loop.min}",
            loop,
        )


def require_chain(loop_srefs: Sequence[StmtSRef]) -> None:
    """Reject loops of which one is not the only thing inside of the one before it."""
    for outer, inner in pairwise(loop_srefs):
        if inner.parent is not outer:
            raise PrimitiveError(
                "ScheduleError: the outer loop is not the parent of the inner loop",
                "The loops can't be fused because the outer loop {0} is not the parent of the "
                "inner loop {1}",
                outer.loop, inner.loop,
            )  # fmt: skip
        if not only_child(outer.loop, inner.stmt):
            raise PrimitiveError(
                "ScheduleError: the inner loop is not the only child of outer loop",
                "The loops can't be fused because the inner loop {1} is not the only child of "
                "outer loop {0}",
                outer.loop, inner.loop,
            )  # fmt: skip


def require_independent(loops: Sequence[For]) -> None:
    """Reject loops whose extent depends on another one of them."""
    variables = {loop.loop_var: None for loop in loops}
    for loop in loops:
        if uses_var(loop.extent, variables):
            raise PrimitiveError(
                "ScheduleError: An inner loop's extent depends on an outer loop",
                f"The loops can't be fused because the extent {loop.extent} of {{0}} depends on "
                "another one of them",
                loop,
            )


def nested_srefs(state: ScheduleState, outer: Stmt, count: int) -> list[StmtSRef]:
    """The references to a loop and the loops directly inside it."""
    found: list[StmtSRef] = []
    for _ in range(count):
        assert isinstance(outer, For)
        found.append(state.sref_of(outer))
        outer = outer.body
    return found
