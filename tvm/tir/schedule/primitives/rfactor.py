"""A reduction becomes partial reductions, one an iteration of a loop, and the reduction of those.

for i, k in grid(8, 16):             for i, k_0, k_1:  C_rf[k_1, i] = C_rf[k_1, i] + A[i, k_0 * 4 + k_1]
    C[i] = C[i] + A[i, k]     ->     for i, k_1:       C[i] = C[i] + C_rf[k_1, i]

after k was split into k_0 and k_1, by rfactor(k_1, 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.arith import Analyzer
from tvm.arith.pattern import conjuncts
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.analysis.reducers import NoReducerError, Reduction, reduction_of
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IntImm, IterVar, Range, Var, const
from tvm.tir.stmt import (
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    For,
    ForKind,
    LetStmt,
    Stmt,
    point_region,
    seq,
)
from tvm.tir.stmt_functor import substitute, variables_of

from ..analyses.bindings import loops_bound_to, uses_var
from ..analyses.block_kind import require_reduction, require_stage_pipeline
from ..analyses.order import require_order
from ..errors import PrimitiveError
from ..state import ScheduleState
from ..tree import exchanged, loops_of, range_of, realizes_below


@dataclass(frozen=True, slots=True)
class Factored:
    """What is factored: the reduction, its loops, the loop in question, the new buffers."""

    realize: BlockRealize
    reduction: Reduction
    loops: list[For]
    loop: For
    axis: int
    buffers: list[Buffer]

    @property
    def block(self) -> Block:
        """The reduction block."""
        return self.realize.block


def rfactor(state: ScheduleState, loop_sref: StmtSRef, factor_axis: int) -> StmtSRef:
    """The partial reductions of a loop's iterations, and the reduction of them."""
    blocks = list(realizes_below(loop_sref.loop))
    if len(blocks) != 1:
        raise PrimitiveError(
            "ScheduleError: The loop is required to have exactly one child block",
            f"The loop {{0}} is required to have exactly one block inside, it has {len(blocks)}",
            loop_sref.loop,
        )
    block_sref = state.sref_of(blocks[0].block)
    scope = require_stage_pipeline(state, block_sref)
    require_reduction(state, block_sref, scope)
    realize = state.realize_of(block_sref)
    loops = [sref.loop for sref in loops_of(block_sref)]
    reduced = _require_loops(realize, loops, loop_sref.loop)
    reduction = _known_reduction(realize.block)
    axis = _checked_axis(factor_axis, reduction, realize.block)
    _require_first_iteration(realize, loops, loop_sref.loop, reduced)
    buffers = [_factored_buffer(buffer, axis, loop_sref.loop) for buffer in reduction.buffers]
    given = Factored(realize, reduction, loops, loop_sref.loop, axis, buffers)
    partial_nest, partial = _partial_reduction(given)
    final = _final_reduction(given, reduced)
    body: Stmt = final
    inside: Stmt = realize
    for loop in reversed(loops):
        rest = exchanged(loop.body, inside, body)
        is_kept = loop is loop_sref.loop or loop.loop_var not in reduced
        body = loop.replace(body=rest) if is_kept else rest
        inside = loop
    old = scope.block
    new_body = exchanged(old.body, loops[0], seq([partial_nest, body]))
    new = old.replace(body=new_body, alloc_buffers=(*old.alloc_buffers, *buffers))
    state.replace(scope, new, {old: new, realize.block: final.block})
    if state.enable_check:
        require_order(state, [state.sref_of(partial), state.sref_of(final.block)], realize.block)
    return state.sref_of(partial)


def _require_loops(realize: BlockRealize, loops: Sequence[For], loop: For) -> dict[Var, None]:
    """The loops that are reduced over; rejected if one of all is not what factoring needs."""
    spatial = loops_bound_to(realize, IterVar.DataPar)
    reduced = loops_bound_to(realize, IterVar.CommReduce)
    is_inside = False
    for other in loops:
        if other.kind != ForKind.SERIAL:
            raise PrimitiveError(
                "ScheduleError: The input loop of rfactor is required to be `kSerial`",
                "The loop {0} around the block to be factored is required to be serial",
                other,
            )
        var = other.loop_var
        if var in spatial and var in reduced:
            raise PrimitiveError(
                "ScheduleError: A loop is touched by both data parallel and reduction iteration variables",
                "The loop {0} is in the values of data parallel and of reduction variables of {1}",
                other, realize.block,
            )  # fmt: skip
        if is_inside and var not in spatial and var not in reduced and not _is_unit(other):
            raise PrimitiveError(
                "ScheduleError: An unbound loop is under a reduction loop",
                "The loop {0} under a reduction loop is in no value of the variables of {1}",
                other, realize.block,
            )  # fmt: skip
        is_inside = is_inside or var in reduced
    is_free = loop.loop_var not in spatial and _is_unit(loop)
    if loop.loop_var not in reduced and not is_free:
        raise PrimitiveError(
            "ScheduleError: The rfactor loop is required to be a reduction loop",
            "The loop {0} is required to be one that the block {1} reduces over",
            loop, realize.block,
        )  # fmt: skip
    return reduced


def _is_unit(loop: For) -> bool:
    return isinstance(loop.extent, IntImm) and loop.extent.value == 1


def _checked_axis(axis: int, reduction: Reduction, block: Block) -> int:
    rank = len(reduction.indices)
    if not -(rank + 1) <= axis <= rank:
        raise PrimitiveError(
            "ScheduleError: The input `factor_axis` is out of range",
            f"The factor_axis of {{0}} is required to be from {-rank - 1} to {rank}, got {axis}",
            block,
        )
    return axis + rank + 1 if axis < 0 else axis


def _known_reduction(block: Block) -> Reduction:
    try:
        return reduction_of(block)
    except NoReducerError as reason:
        raise PrimitiveError(
            "ScheduleError: No matched reducer for the identity and the combiner of the reduction "
            "block",
            f"The block {{0}} can't be factored: {reason}",
            block,
        ) from None


def _require_first_iteration(
    realize: BlockRealize, loops: Sequence[For], loop: For, reduced: dict[Var, None]
) -> None:
    """Each partial result has to be initialised: no predicate may leave its first iteration out."""
    analyzer = Analyzer()
    for other in loops:
        analyzer.bind(other.loop_var, range_of(other))
    first = {o.loop_var: o.min for o in loops if o.loop_var in reduced and o is not loop}
    for condition in conjuncts(realize.predicate):
        if uses_var(condition, reduced) and not analyzer.can_prove(substitute(condition, first)):
            raise PrimitiveError(
                "ScheduleError: The predicate leaves out whole iterations of the rfactor loop",
                f"The predicate {condition} of {{0}} leaves out all that some iteration of {{1}} "
                "would reduce, so its partial result would be undefined",
                realize.block, loop,
            )  # fmt: skip


def _factored_buffer(buffer: Buffer, axis: int, loop: For) -> Buffer:
    shape = list(buffer.shape)
    shape.insert(axis, loop.extent)
    name = f"{buffer.name}_rf"
    data = buffer.data.replace(name=name)
    return buffer.replace(shape=tuple(shape), strides=(), data=data, name=name)


def _inserted(indices: Sequence[PrimExpr], axis: int, index: PrimExpr) -> tuple[PrimExpr, ...]:
    found = list(indices)
    found.insert(axis, index)
    return tuple(found)


def _axis_of(loop: For, kind: int) -> IterVar:
    zero = const(0, loop.extent.dtype)
    var = loop.loop_var.replace(name=f"v{loop.loop_var.name}")
    return IterVar(Range.from_min_extent(zero, loop.extent), var, kind)


def _partial_reduction(given: Factored) -> tuple[Stmt, Block]:
    """The partial reductions in loops of their own."""
    axes = [_axis_of(given.loop, IterVar.DataPar)]
    values: list[PrimExpr] = [given.loop.loop_var]
    as_axis: dict[Var, PrimExpr] = {given.loop.loop_var: axes[0].var}
    by_var = {loop.loop_var: loop for loop in given.loops}
    renamed: dict[Var, PrimExpr] = {}
    for axis, value in zip(given.block.iter_vars, given.realize.iter_values, strict=True):
        touches = uses_var(value, {given.loop.loop_var: None})
        if axis.iter_type == IterVar.DataPar or not touches:
            var = axis.var.replace(name=axis.var.name)
            renamed[axis.var] = var
            axes.append(axis.replace(var=var))
            values.append(value)
            continue
        for loop_var in variables_of(value):
            if loop_var in by_var and loop_var not in as_axis:
                inner = _axis_of(by_var[loop_var], IterVar.CommReduce)
                as_axis[loop_var] = inner.var
                axes.append(inner)
                values.append(loop_var)
        renamed[axis.var] = substitute(value, as_axis)
    block = _partial_block(given, axes, renamed)
    predicate = given.realize.predicate
    nest: Stmt = BlockRealize(tuple(values), predicate, block)
    fresh: dict[Var, PrimExpr] = {}
    for loop in reversed(given.loops):
        var = loop.loop_var.replace(name=loop.loop_var.name)
        fresh[loop.loop_var] = var
        nest = loop.replace(loop_var=var, body=nest)
    return substitute(nest, fresh), block


def _partial_block(given: Factored, axes: list[IterVar], renamed: dict[Var, PrimExpr]) -> Block:
    reduction, old = given.reduction, given.block
    indices = [substitute(index, renamed) for index in reduction.indices]
    at = _inserted(indices, given.axis, axes[0].var)
    so_far = [BufferLoad(buffer, at) for buffer in given.buffers]
    added = [substitute(value, renamed) for value in reduction.added]
    init: Stmt | None = seq(
        [BufferStore(b, v, at) for b, v in zip(given.buffers, reduction.initial, strict=True)]
    )
    values = reduction.combine(so_far, added)
    if all([axis.iter_type == IterVar.DataPar for axis in axes]):
        # nothing is left to reduce over
        init, values = None, added
    body = _stores(old, given.buffers, at, values)
    own = dict.fromkeys(reduction.buffers)
    reads = [substitute(r, renamed) for r in old.reads if r.buffer not in own]
    writes = [
        point_region(b, at) for b in given.buffers
    ]  # fmt: skip
    return Block(
        axes, reads, writes, f"{old.name_hint}_rf", body, init, annotations=old.annotations
    )


def _stores(
    old: Block, buffers: Sequence[Buffer], at: Sequence[PrimExpr], values: Sequence[PrimExpr]
) -> Stmt:
    """The stores of a tuple of values, which are computed first if there are several."""
    if len(buffers) == 1:
        return BufferStore(buffers[0], values[0], tuple(at))
    names = _let_names(old, buffers)
    variables = [Var(name, value.dtype) for name, value in zip(names, values, strict=True)]
    body = seq([BufferStore(b, v, tuple(at)) for b, v in zip(buffers, variables, strict=True)])
    for var, value in zip(reversed(variables), reversed(list(values)), strict=True):
        body = LetStmt(var, value, body)
    return body


def _let_names(old: Block, buffers: Sequence[Buffer]) -> list[str]:
    names: list[str] = []
    body = old.body
    while isinstance(body, LetStmt):
        names.append(body.var.name)
        body = body.body
    return names if len(names) == len(buffers) else [f"v_{buffer.name}" for buffer in buffers]


def _final_reduction(given: Factored, reduced: dict[Var, None]) -> BlockRealize:
    """The reduction of the partial results."""
    reduction, old = given.reduction, given.block
    axes = [_axis_of(given.loop, IterVar.CommReduce)]
    values: list[PrimExpr] = [given.loop.loop_var]
    renamed: dict[Var, PrimExpr] = {}
    for axis, value in zip(old.iter_vars, given.realize.iter_values, strict=True):
        if axis.iter_type == IterVar.DataPar:
            var = axis.var.replace(name=axis.var.name)
            renamed[axis.var] = var
            axes.append(axis.replace(var=var))
            values.append(value)
    indices = tuple([substitute(index, renamed) for index in reduction.indices])
    at = _inserted(indices, given.axis, axes[0].var)
    so_far = [BufferLoad(buffer, indices) for buffer in reduction.buffers]
    partial = [BufferLoad(buffer, at) for buffer in given.buffers]
    init = seq(
        [
            BufferStore(b, v, indices)
            for b, v in zip(reduction.buffers, reduction.initial, strict=True)
        ]
    )
    body = _stores(old, reduction.buffers, indices, reduction.combine(so_far, partial))
    reads: list[BufferRegion] = [point_region(buffer, at) for buffer in given.buffers]
    writes = [point_region(buffer, indices) for buffer in reduction.buffers]
    block = Block(axes, reads, writes, old.name_hint, body, init, annotations=old.annotations)
    predicate: PrimExpr = const(True)
    for condition in conjuncts(given.realize.predicate):
        if not uses_var(condition, reduced) and not isinstance(condition, IntImm):
            predicate = op.all(predicate, condition)
    return BlockRealize(tuple(values), predicate, block)
