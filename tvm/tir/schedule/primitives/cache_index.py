"""What a block's indices are made of is computed before the loops around the block.

for i: for j: C[i, j] = A[f(j)]        ->    for v: index_var_0[v] = f(v)
                                             for i: for j: C[i, j] = A[index_var_0[j]]
"""

from __future__ import annotations

from tvm.ir.expr import PrimExpr
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.analysis.undefined_vars import undefined_vars
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import decl_buffer
from tvm.tir.expr import BufferLoad, IterVar, Range, Var, const
from tvm.tir.op import add, subtract
from tvm.tir.stmt import (
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    For,
    ForKind,
    Stmt,
    point_region,
    seq,
)
from tvm.tir.stmt_functor import substitute, variables_of
from tvm.tir.transform.common import contains
from tvm.tir.transform.common_subexpr_elim import (
    ComputationCounter,
    ComputationReplacer,
    Numbering,
    size_of,
)

from ..analyses.bindings import uses_var
from ..errors import PrimitiveError
from ..rewriting import Reuse, StmtReplacer
from ..state import ScheduleState
from ..tree import loops_of, realizes_below, scope_of
from .cache_stage import inserted, position_in, require_storage_scope

LEAST_SIZE = 3  # an operation on two operands


def cache_index(
    state: ScheduleState, block_sref: StmtSRef, storage_scope: str, cse_thresh: int
) -> list[StmtSRef]:
    """The blocks that compute the expressions that occur in a block ``cse_thresh`` times or more."""
    require_storage_scope(storage_scope)
    if block_sref.parent is None:
        raise PrimitiveError(
            "ScheduleError: The primitive does not operate on the root block",
            "the primitive does not operate on the root block {0}",
            block_sref.block,
        )
    scope = scope_of(block_sref)
    block = block_sref.block
    known = dict.fromkeys([*_fixed_axes(block_sref), *undefined_vars(scope.block)])
    stages: list[IndexStage] = []
    while True:
        counter = IndexCounter(known, block)
        expr = counter.best(max(cse_thresh, 1))
        if expr is None:
            break
        stages.append(IndexStage(block, expr, storage_scope, len(stages)))
        block = IndexReplacer(expr, stages[-1].value, counter).rewritten(block)
    if not stages:
        return []
    block = substitute(block, {stage.value: stage.load for stage in stages})
    reuse: Reuse = {}
    _pair_blocks(block_sref.block, block, reuse)
    body = StmtReplacer({block_sref.block: block}, reuse).visit(scope.block.body)
    position = position_in(scope, block_sref)
    for stage in reversed(stages):
        body = inserted(body, position, stage.loops)
    buffers = (*scope.block.alloc_buffers, *[stage.buffer for stage in stages])
    new = scope.block.replace(body=body, alloc_buffers=buffers)
    state.replace(scope, new, {**reuse, scope.block: new})
    return [state.sref_of(stage.block) for stage in stages]


def _fixed_axes(block: StmtSRef) -> list[Var]:
    """The variables of a block whose domains are the same in all iterations of the loops around it."""
    loops = {loop.loop.loop_var: None for loop in loops_of(block)}
    return [
        axis.var
        for axis in block.block.iter_vars
        if axis.dom is not None
        and not uses_var(axis.dom.min, loops)
        and not uses_var(axis.dom.extent, loops)
    ]


def _pair_blocks(old: Block, new: Block, reuse: Reuse) -> None:
    """Note which block became which, for a block and those inside of it."""
    reuse[old] = new
    for before, after in zip(realizes_below(old.body), realizes_below(new.body), strict=True):
        _pair_blocks(before.block, after.block, reuse)


class IndexStage:
    """The buffer of an expression's values, the loops that compute it, and the load in their place.

    A variable stands for the load until all expressions are found.
    """

    def __init__(self, block: Block, expr: PrimExpr, storage_scope: str, number: int) -> None:
        used = dict.fromkeys(variables_of(expr))
        axes = [axis for axis in block.iter_vars if axis.var in used]
        domains = [axis.dom for axis in axes if axis.dom is not None]
        self.buffer = decl_buffer(
            [domain.extent for domain in domains], expr.dtype, f"index_var_{number}",
            strides=[1], scope=storage_scope,
        )  # fmt: skip
        offsets = [domain.min for domain in domains]
        self.value = Var(self.buffer.name, expr.dtype)
        self.load = BufferLoad(self.buffer, _from(offsets, [axis.var for axis in axes]))
        variables = [Var(f"v{i}", axis.var.dtype) for i, axis in enumerate(axes)]
        indices = _from(offsets, variables)
        value = substitute(expr, {a.var: v for a, v in zip(axes, variables, strict=True)})
        self.block = Block(
            [IterVar(d, v, IterVar.DataPar) for d, v in zip(domains, variables, strict=True)],
            [], [point_region(self.buffer, indices)], f"index_{number}",
            BufferStore(self.buffer, value, indices),
        )  # fmt: skip
        self.loops = self._loops(domains)

    def _loops(self, domains: list[Range]) -> Stmt:
        counters = [Var(f"ax{i}", domain.extent.dtype) for i, domain in enumerate(domains)]
        pairs = list(zip(domains, counters, strict=True))
        values = [add(domain.min, counter) for domain, counter in pairs]
        result: Stmt = BlockRealize(tuple(values), const(True), self.block)
        for domain, counter in reversed(pairs):
            result = For(counter, 0, domain.extent, ForKind.SERIAL, result)
        return result


def _from(offsets: list[PrimExpr], variables: list[Var]) -> tuple[PrimExpr, ...]:
    return tuple([subtract(v, o) for v, o in zip(variables, offsets, strict=True)])


class IndexCounter(ComputationCounter):
    """Counts expressions of a block's variables, its regions left out."""

    def __init__(self, known: dict[Var, None], block: Block) -> None:
        super().__init__(known, Numbering(), self._is_index)
        self.axes = {axis.var: None for axis in block.iter_vars}
        self.visit(block.body if block.init is None else seq([block.init, block.body]))

    def _is_index(self, e: PrimExpr) -> bool:
        if e.dtype.lanes != 1 or e.dtype.is_handle or e.dtype.is_bool or size_of(e) < LEAST_SIZE:
            return False
        is_loaded = contains(e, lambda node: isinstance(node, BufferLoad))
        return not is_loaded and is_safe_anywhere(e) and uses_var(e, self.axes)

    def visit_buffer_region(self, region: BufferRegion) -> None:
        return


class IndexReplacer(ComputationReplacer):
    """Uses what was computed before. Regions do not change: the values are the same."""

    def __init__(self, expr: PrimExpr, value: Var, counter: IndexCounter) -> None:
        super().__init__(expr, value, counter.numbering, counter.is_worth)

    def rewritten(self, block: Block) -> Block:
        """The block with the variable in the place of the expression."""
        init = None if block.init is None else self.visit(block.init)
        return block.replace(body=self.visit(block.body), init=init)

    def visit_buffer_region(self, region: BufferRegion) -> BufferRegion:
        return region
