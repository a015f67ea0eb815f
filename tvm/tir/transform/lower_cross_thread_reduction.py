"""Turn blocks that reduce by loops over threads into what each thread does and a reduction over all.

for k in range(4):                                   for tx in thread_binding(8, "threadIdx.x"):
    for tx in thread_binding(8, "threadIdx.x"):          mine[0] = 0
        with block(vi = i, vk = k * 8 + tx):     ->      for k in range(4):
            init: B[vi] = 0                                  mine[0] = mine[0] + A[i, k * 8 + tx]
            B[vi] = B[vi] + A[vi, vk]                    tvm_thread_allreduce(1, mine[0], True, all[0], tx)
                                                         if tx == 0:
                                                             B[i] = all[0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm.arith.pattern import conjuncts
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.builtin import tvm_thread_allreduce
from tvm.tir.expr import (
    Add,
    BinaryOpExpr,
    BufferLoad,
    CommReducer,
    IterVar,
    Max,
    Min,
    Mul,
    Var,
    const,
)
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    AttrStmt,
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Stmt,
    seq,
)
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import TRUE, comes_from_te, prim_func_pass, variables_of

ZERO = const(0, "int32")


@dataclass(frozen=True)
class Update:
    """What a reduction block does with its values: ``target[...] = combine(target[...], value)``."""

    store: BufferStore
    combine: type[BinaryOpExpr]
    value: PrimExpr
    identity: PrimExpr

    def reducer(self) -> CommReducer:
        """The combination of two parts."""
        dtype = self.store.value.dtype
        a, b = Var("x", dtype), Var("y", dtype)
        return CommReducer((a,), (b,), (self.combine(a, b),), (self.identity,))


class CrossThreadLowerer(Rewriter):
    """Rewrites the loops around each such block, from the outermost that it reduces by."""

    def visit_for(self, loop: For) -> Stmt:
        chain, realize = _chain(loop)
        if realize is None:
            return self.rewrite_children(loop)
        reducing = _reducing_variables(realize)
        if loop.loop_var not in reducing:
            return self.rewrite_children(loop)
        threads = [each for each in chain if each.kind is ForKind.THREAD_BINDING]
        if not any([each.loop_var in reducing for each in threads]):
            return self.rewrite_children(loop)
        for each in chain:
            if each.loop_var not in reducing:
                raise LoweringError(
                    "LowerCrossThreadReduction needs loops of the reduction inside those of its "
                    f"results, got {each.loop_var.name} inside {loop.loop_var.name}",
                    at=loop,
                )
        own = [each for each in chain if each.kind is not ForKind.THREAD_BINDING]
        return _lowered(realize, threads, own)


def _chain(loop: For) -> tuple[list[For], BlockRealize | None]:
    """Loops directly inside each other, and the block inside them."""
    chain = [loop]
    body = loop.body
    while isinstance(body, For):
        chain.append(body)
        body = body.body
    return chain, body if isinstance(body, BlockRealize) else None


def _reducing_variables(realize: BlockRealize) -> dict[Var, None]:
    """The variables that the values of a block's reduction axes depend on."""
    found: dict[Var, None] = {}
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if axis.iter_type is IterVar.CommReduce:
            found |= variables_of(value)
    return found


def _lowered(realize: BlockRealize, threads: Sequence[For], own: Sequence[For]) -> Stmt:
    values: dict[Var, Any] = {
        axis.var: value
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
    }
    update = _update_of(realize.block, values)
    inside = {loop.loop_var: None for loop in (*threads, *own)}
    for_all: list[PrimExpr] = []
    for_some: list[PrimExpr] = []
    for condition in conjuncts(realize.predicate):
        is_inside = any([var in inside for var in variables_of(condition)])
        (for_some if is_inside else for_all).append(condition)
    total = _local("all", update)
    buffers = [total]
    steps: list[Stmt] = []
    value, condition = update.value, op.all(TRUE, *for_some, *for_all)
    if own:
        mine = _local("mine", update)
        buffers.append(mine)
        element = BufferLoad(mine, (ZERO,))
        step: Stmt = BufferStore(mine, update.combine(element, value), (ZERO,))
        step = _guarded([*for_some, *for_all], step)
        for loop in reversed(own):
            step = loop.replace(body=step)
        steps = [BufferStore(mine, update.identity, (ZERO,)), step]
        value, condition = element, TRUE
    steps.append(_allreduce(update, value, condition, total, threads))
    firsts = [op.equal(loop.loop_var, loop.min) for loop in threads]
    stored = update.store.replace(value=BufferLoad(total, (ZERO,)))
    steps.append(_guarded([*firsts, *for_all], stored))
    block = Block((), (), (), realize.block.name_hint, seq(steps), None, buffers)
    body: Stmt = BlockRealize((), TRUE, block)
    for loop in reversed(threads):
        body = loop.replace(body=body)
    return body


def _allreduce(
    update: Update, value: PrimExpr, condition: PrimExpr, total: Buffer, threads: Sequence[For]
) -> Stmt:
    call = tvm_thread_allreduce(
        const(1, "uint32"), value, condition, BufferLoad(total, (ZERO,)),
        *[loop.loop_var for loop in threads],
    )  # fmt: skip
    return AttrStmt(update.reducer(), "reduce_scope", ZERO, Evaluate(call))


def _guarded(conditions: Sequence[PrimExpr], body: Stmt) -> Stmt:
    condition = op.all(TRUE, *conditions)
    return body if condition is TRUE else IfThenElse(condition, body, None)


def _local(role: str, update: Update) -> Buffer:
    buffer = update.store.buffer
    return decl_buffer((1,), buffer.dtype, f"{buffer.name}_{role}", scope="local")


def _update_of(block: Block, values: dict[Var, Any]) -> Update:
    """The combination that a block computes, with the values of its axes."""
    init, body = block.init, block.body
    if not isinstance(init, BufferStore) or not isinstance(body, BufferStore):
        raise _unknown(block)
    start, store = substitute(init, values), substitute(body, values)
    combination = store.value
    if type(combination) not in (Add, Mul, Min, Max):
        raise _unknown(block)
    sides = [combination.a, combination.b]
    for place, side in enumerate(sides):
        if isinstance(side, BufferLoad) and side.buffer is store.buffer:
            if structural_equal(list(side.indices), list(store.indices)):
                return Update(store, type(combination), sides[1 - place], start.value)
    raise _unknown(block)


def _unknown(block: Block) -> LoweringError:
    return LoweringError(
        "LowerCrossThreadReduction needs a block that sets an element to its sum, product, minimum "
        f"or maximum with a value, and has an init for it, got {block.name_hint}",
        at=block,
    )


@prim_func_pass("tir.LowerCrossThreadReduction")
def lower_cross_thread_reduction(func: PrimFunc) -> PrimFunc:
    """Lower reductions over threads in block form."""
    return func if comes_from_te(func) else func.with_body(CrossThreadLowerer().visit(func.body))


LowerCrossThreadReduction = lower_cross_thread_reduction.factory
