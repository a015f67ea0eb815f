"""A reduction becomes its initialisation and its updates, as blocks of their own.

for i: for k:                                           for i: C[i] = 0
    init: C[i] = 0               decompose(C, i)        for i: for k: C[i] = C[i] + A[i, k]
    C[i] = C[i] + A[i, k]
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.arith import Analyzer, IterMapLevel, detect_iter_map
from tvm.arith.pattern import conjuncts
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.constants import is_true
from tvm.tir.expr import FloorDiv, FloorMod, IntImm, IterVar, Range, Var, const
from tvm.tir.stmt import Block, BlockRealize, BufferRegion, For, Stmt, seq
from tvm.tir.stmt_functor import substitute, variables_of

from ..analyses.bindings import loops_bound_to, uses_var
from ..analyses.block_kind import require_reduction
from ..errors import PrimitiveError
from ..rewriting import Reuse, StmtReplacer
from ..state import ScheduleState
from ..tree import exchanged, loops_of, scope_of


def decompose_reduction(
    state: ScheduleState, block_sref: StmtSRef, loop_sref: StmtSRef
) -> StmtSRef:
    """The initialisation before a loop, the updates where the reduction was."""
    block = block_sref.block
    realize = state.realize_of(block_sref)
    scope = scope_of(block_sref)
    require_reduction(state, block_sref, scope)
    loops = loops_of(block_sref)
    _require_position(block_sref, loop_sref, loops, realize)
    assert block.init is not None
    inside = loops[[loop is loop_sref for loop in loops].index(True) :]
    _require_bound(realize, inside)
    init_loops, init_block = _initialisation(block, block.init, realize, inside)
    reuse: Reuse = {}
    update = update_block(block)
    reuse[block] = update
    replacer = StmtReplacer({block: update}, reuse)
    new_loop = replacer.visit(loop_sref.loop)
    parent = loop_sref.parent
    assert parent is not None and parent.stmt is not None
    body = exchanged(parent.stmt.body, loop_sref.loop, seq([init_loops, new_loop]))
    state.replace_body(parent, body, reuse)
    return state.sref_of(init_block)


def _require_bound(realize: BlockRealize, loops: Sequence[StmtSRef]) -> None:
    """Reject a loop that repeats the reduction: it would be initialised once."""
    bound = variables_of(*realize.iter_values)
    for sref in loops:
        if sref.loop.loop_var not in bound and not _is_unit(sref.loop):
            raise PrimitiveError(
                "ScheduleError: A loop repeats the reduction",
                "The loop {0} is in no value of the variables of the block {1}: what it repeats "
                "can't be initialised outside of it",
                sref.loop, realize.block,
            )  # fmt: skip
    domain = {s.loop.loop_var: Range.from_min_extent(s.loop.min, s.loop.extent) for s in loops}
    # without the predicate: what is distinct on all of the loops is so on a part of them
    values = _without_quotients(realize.iter_values)
    if loops and not detect_iter_map(values, domain, check_level=IterMapLevel.Bijective).indices:
        raise PrimitiveError(
            "ScheduleError: Loops repeat parts of the reduction",
            "Several iterations of the loop {0} and those inside of it run the block {1} for the "
            "same values of its variables: what they repeat can't be initialised outside of them",
            loops[0].loop, realize.block,
        )  # fmt: skip


def _without_quotients(values: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The values, with x for each pair x // n and x % n, as fused loops leave them: it says as much.

    The quotients are as distinct as x is, also where n does not divide the extent of x.
    """
    left = list(values)
    for quotient in left:
        if not isinstance(quotient, FloorDiv):
            continue
        whole, count = quotient.a, quotient.b
        for rest in left:
            if isinstance(rest, FloorMod) and _is_rest(rest, whole, count):
                others = [value for value in left if value is not quotient and value is not rest]
                return _without_quotients([*others, whole])
    return left


def _is_rest(rest: FloorMod, whole: PrimExpr, count: PrimExpr) -> bool:
    """Whether an expression is whole % count: of x % m, where count divides m, it is x % count."""
    if not structural_equal(rest.b, count):
        return False
    if structural_equal(rest.a, whole):
        return True
    if not isinstance(whole, FloorMod) or not structural_equal(rest.a, whole.a):
        return False
    return bool(Analyzer().can_prove_equal(op.floormod(whole.b, count), 0))


def update_block(block: Block) -> Block:
    """A reduction block without its initialisation: it reads what it writes."""
    read = dict.fromkeys([region.buffer for region in block.reads])
    own = [region for region in block.writes if region.buffer not in read]
    return block.replace(
        name_hint=f"{block.name_hint}_update", init=None, reads=(*own, *block.reads)
    )


def _require_position(
    block: StmtSRef, loop: StmtSRef, loops: Sequence[StmtSRef], realize: BlockRealize
) -> None:
    if not any([loop is other for other in loops]):
        raise PrimitiveError(
            "ScheduleError: The input loop is required to be an ancestor of block",
            "The loop {0} is required to be around the block {1}, in its scope",
            loop.loop, block.block,
        )  # fmt: skip
    reduced = loops_bound_to(realize, IterVar.CommReduce)
    for above in loops:
        if above is loop:
            return
        if above.loop.loop_var in reduced:
            raise PrimitiveError(
                "ScheduleError: The position to insert the init block is invalid",
                "The loop {0} is inside of the loop {1}, over which the block {2} reduces: the "
                "initialisation can't be put before it",
                loop.loop, above.loop, block.block,
            )  # fmt: skip


def _initialisation(
    block: Block, init: Stmt, realize: BlockRealize, loops: Sequence[StmtSRef]
) -> tuple[Stmt, Block]:
    """The block of the initialisation within loops of its own."""
    axes: list[IterVar] = []
    values: list[PrimExpr] = []
    renamed: dict[Var, PrimExpr] = {}
    for axis, value in zip(block.iter_vars, realize.iter_values, strict=True):
        if axis.iter_type == IterVar.CommReduce:
            continue
        var = axis.var.replace(name=f"{axis.var.name}_init")
        renamed[axis.var] = var
        axes.append(axis.replace(var=var))
        values.append(value)
    writes: tuple[BufferRegion, ...] = tuple([substitute(r, renamed) for r in block.writes])
    new = Block(
        axes, [], writes, f"{block.name_hint}_init", substitute(init, renamed),
        annotations=block.annotations,
    )  # fmt: skip
    used = [loop for loop in loops if uses_any(values, loop.loop.loop_var)]
    predicate = init_predicate(realize.predicate, loops, used)
    result: Stmt = BlockRealize(tuple(values), predicate, new)
    variables: dict[Var, PrimExpr] = {}
    for sref in reversed(used):
        result = _copied_loop(sref.loop, result, variables)
    # the block is in terms of its own variables: loop variables are in its values alone
    return substitute(result, variables), new


def init_predicate(
    predicate: PrimExpr, loops: Sequence[StmtSRef], used: Sequence[StmtSRef]
) -> PrimExpr:
    """Of a reduction's predicate what its initialisation is guarded by, which is in some of its loops.

    What depends on loops that are reduced over leaves out a part of what is reduced.
    """
    dropped = [sref.loop for sref in loops if sref not in used]
    units = {loop.loop_var: loop.min for loop in dropped if _is_unit(loop)}
    reduced = {loop.loop_var: None for loop in dropped if not _is_unit(loop)}
    found: PrimExpr = const(True)
    for condition in conjuncts(predicate):
        if not is_true(condition) and not uses_var(condition, reduced):
            found = op.all(found, Analyzer().simplify(substitute(condition, units)))
    return found


def _is_unit(loop: For) -> bool:
    return isinstance(loop.extent, IntImm) and loop.extent.value == 1


def uses_any(values: Sequence[PrimExpr], var: Var) -> bool:
    """Whether a variable is in one of the expressions."""
    return any([uses_var(value, {var: None}) for value in values])


def _copied_loop(loop: For, body: Stmt, variables: dict[Var, PrimExpr]) -> For:
    var = loop.loop_var.replace(name=f"{loop.loop_var.name}_init")
    variables[loop.loop_var] = var
    binding = loop.thread_binding
    if binding is not None:
        binding = binding.replace(var=binding.var.replace(name=binding.var.name))
    return For(var, loop.min, loop.extent, loop.kind, body, binding, loop.annotations)
