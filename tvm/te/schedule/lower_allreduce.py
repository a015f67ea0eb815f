"""Reductions of which a loop is bound to threads: each thread has a part, then all combine theirs.

for k.inner bound to threadIdx.x:        thread_extent threadIdx.x:
    for k.outer: C[] += A[...]      ->       mine = 0
                                             for k.outer: mine += A[...]
                                             tvm_thread_allreduce(1, mine, True, all, threadIdx.x)
                                             C[] = all
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.tir import op as tir_op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.builtin import tvm_thread_allreduce
from tvm.tir.expr import BOOL, INT32, BufferLoad, IntImm, IterVar, Range, Reduce, Var, const
from tvm.tir.stmt import (
    AttrStmt,
    BufferRealize,
    BufferStore,
    Evaluate,
    IfThenElse,
    LetStmt,
    ProducerStore,
    Stmt,
    seq,
)
from tvm.tir.stmt_functor import Substituter

from ..tensor import ComputeOp
from .loop_nest import Level, LoopNest, guard, make_loop_nest, wrap
from .lower_compute import Nester, find_checks, store_guards
from .message_passing import descend_from
from .relations import Ranges
from .stage import Stage

ZERO = const(0, INT32)


def reduces_across_threads(stage: Stage) -> bool:
    """Whether a loop of the reduction is bound to threads."""
    op: Any = stage.op
    reducing = descend_from(stage, op.reduce_axis)
    return any(
        iv in reducing and attr.bind_thread is not None for iv, attr in stage.iter_var_attrs.items()
    )


def provide_across_threads(
    stage: Stage, ranges: Ranges, threads: Collection[IterVar], nester: Nester
) -> Stmt:
    """The loops of the result and of the threads, with what one thread does inside."""
    op = stage.op
    assert isinstance(op, ComputeOp)
    main = make_loop_nest(stage, ranges, threads)
    reducing = descend_from(stage, op.reduce_axis)
    around = [lv for lv in main.levels if lv.iv not in reducing or lv.thread is not None]
    own = [lv for lv in main.levels if lv.iv in reducing and lv.thread is None]
    sharing = [lv.thread for lv in around if lv.iv in reducing and lv.thread is not None]
    spatial: list[PrimExpr] = []
    reduced: list[PrimExpr] = []
    for iv, check in find_checks(stage, ranges, main.values, ()):
        (reduced if iv in reducing else spatial).append(check)
    body = _thread_body(stage, op, main, own, sharing, spatial, reduced)
    return nester.nest(around, body, threads)


def _thread_body(
    stage: Stage,
    op: ComputeOp,
    main: LoopNest,
    own: list[Level],
    threads: Sequence[IterVar],
    spatial: list[PrimExpr],
    reduced: list[PrimExpr],
) -> Stmt:
    reduce: Any = op.body[0]
    axes = Substituter({iv.var: main.values[iv] for iv in op.root_iter_vars()})
    # a combiner may depend on the position of the element
    reduce = reduce.replace(combiner=axes.visit(reduce.combiner))
    sources = [axes.visit(source) for source in reduce.source]
    true = const(True, BOOL)
    condition = tir_op.all(true, axes.visit(reduce.condition), *spatial, *reduced)
    parts: list[Stmt] = []
    buffers: list[Buffer] = []
    if own:
        buffers = _buffers(op, "mine")
        start = [axes.visit(v) for v in reduce.init or reduce.combiner.identity_element]
        parts = [_stores(buffers, start), wrap(own, _update(reduce, buffers, sources, condition))]
        sources, condition = [_load(buffer) for buffer in buffers], true
    results = _buffers(op, "all")
    call = tvm_thread_allreduce(
        const(len(sources), "uint32"), *sources, condition, *[_load(b) for b in results],
        *[thread.var for thread in threads],
    )  # fmt: skip
    parts.append(AttrStmt(reduce.combiner, "reduce_scope", ZERO, Evaluate(call)))
    indices = tuple([main.values[iv] for iv in op.axis])
    stores: list[Stmt] = [
        ProducerStore(tensor, _load(buffer), indices)
        for tensor, buffer in zip(op.outputs, results, strict=True)
    ]
    parts.append(guard([*spatial, *store_guards(stage, main.values)], seq(stores)))
    body = seq(parts)
    for buffer in (*results, *buffers):
        body = BufferRealize(buffer, (Range(0, 1),), true, body)
    return body


def _buffers(op: ComputeOp, role: str) -> list[Buffer]:
    return [
        decl_buffer((1,), tensor.dtype, f"{tensor.name}.{role}", scope="local")
        for tensor in op.outputs
    ]


def _load(buffer: Buffer) -> BufferLoad:
    return BufferLoad(buffer, (ZERO,))


def _stores(buffers: Sequence[Buffer], values: Sequence[PrimExpr]) -> Stmt:
    return seq([BufferStore(b, v, (ZERO,)) for b, v in zip(buffers, values, strict=True)])


def _update(
    reduce: Reduce, buffers: Sequence[Buffer], sources: Sequence[PrimExpr], condition: PrimExpr
) -> Stmt:
    """Combine a thread's part with one more value; all results come from the old ones."""
    results = reduce.combiner([_load(buffer) for buffer in buffers], sources)
    names: list[PrimExpr] = list(results)
    lets: list[tuple[Var, PrimExpr]] = []
    if len(results) > 1:
        lets = [(Var(f"value.{i}", r.dtype), r) for i, r in enumerate(results)]
        names = [var for var, _ in lets]
    body = _stores(buffers, names)
    for var, value in reversed(lets):
        body = LetStmt(var, value, body)
    if isinstance(condition, IntImm) and condition.value:
        return body
    return IfThenElse(condition, body, None)
