"""Combine the values of threads by way of memory that they share.

tvm_thread_allreduce(1, v, cond, all, tx)    ->    S[tx] = select(cond, v, 0)
                                                   tvm_storage_sync("shared")
                                                   if tx < 4: S[tx] = S[tx] + S[tx + 4]
                                                   tvm_storage_sync("shared")
                                                   ...
                                                   all[0] = S[0]
                                                   tvm_storage_sync("shared")

Half of the threads combine two values each, then a quarter, until one is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.builtin import tvm_storage_sync
from tvm.tir.expr import BufferLoad, Call, CommReducer, IterVar, Var, const, pointer_type
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    IfThenElse,
    LetStmt,
    Stmt,
    seq,
)
from tvm.tir.transform.common import TRUE, as_int, prim_func_pass

ALLREDUCE = INTRINSICS["tvm_thread_allreduce"]


@dataclass(frozen=True)
class Thread:
    """An axis of threads that is open."""

    tag: str
    var: Var
    extent: int


@dataclass(frozen=True)
class Request:
    """What one call asks for."""

    values: tuple[PrimExpr, ...]
    condition: PrimExpr
    results: tuple[BufferLoad, ...]
    threads: tuple[Var, ...]


def as_request(call: Call) -> Request:
    """The arguments of a call by their roles."""
    count = as_int(call.args[0])
    values, results = call.args[1 : 1 + count], call.args[2 + count : 2 + 2 * count]
    loads = tuple([result for result in results if isinstance(result, BufferLoad)])
    threads = tuple([var for var in call.args[2 + 2 * count :] if isinstance(var, Var)])
    if len(loads) < count:
        raise LoweringError("LowerThreadAllreduce needs elements of buffers as results", at=call)
    return Request(tuple(values), call.args[1 + count], loads, threads)


class AllreduceLowerer(Rewriter):
    """Writes the steps of each reduction."""

    def __init__(self) -> None:
        self.threads: list[Thread] = []
        self.reducers: list[CommReducer] = []

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == "reduce_scope":
            self.reducers.append(attr.node)
            body: Stmt = self.visit(attr.body)
            self.reducers.pop()
            return body
        if attr.attr_key != "thread_extent" or not isinstance(attr.node, IterVar):
            return self.rewrite_children(attr)
        extent = _constant(attr.value, attr.node.thread_tag)
        self.threads.append(Thread(attr.node.thread_tag, attr.node.var, extent))
        new = self.rewrite_children(attr)
        self.threads.pop()
        return new

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        call = stmt.value
        if not isinstance(call, Call) or call.op is not ALLREDUCE:
            return stmt
        if not self.reducers:
            raise LoweringError(
                "LowerThreadAllreduce needs to know how values combine", at=stmt,
                hint='put the call into AttrStmt(reducer, "reduce_scope", 0, ...)',
            )  # fmt: skip
        return Reduction(self.reducers[-1], as_request(call), self.threads).build()


def _constant(extent: PrimExpr, tag: str) -> int:
    if tag.startswith("threadIdx"):
        return as_int(extent)
    return 0  # the number of blocks does not matter


class Reduction:
    """One reduction: its shared memory, and the places of the threads in it."""

    def __init__(self, reducer: CommReducer, request: Request, threads: list[Thread]) -> None:
        self.reducer, self.request = reducer, request
        own = dict.fromkeys(request.threads)
        inside = sorted(
            [thread for thread in threads if thread.tag.startswith("threadIdx")],
            key=lambda thread: thread.tag,
        )
        if any([all([thread.var is not var for thread in inside]) for var in own]):
            raise LoweringError("LowerThreadAllreduce needs the loops over its threads around it")
        self.place, self.count = _flattened([t for t in inside if t.var in own])
        group, groups = _flattened([t for t in inside if t.var not in own])
        self.start = op.multiply(group, self.count)
        self.memory = [
            _shared(f"red_buf{k}", v, groups * self.count) for k, v in enumerate(request.values)
        ]

    def build(self) -> Stmt:
        """The whole of it, with its memory."""
        request = self.request
        neutral = self.reducer.identity_element
        given = [
            op.if_then_else(request.condition, value, identity)
            for value, identity in zip(request.values, neutral, strict=True)
        ]
        steps: list[Stmt] = [self._stores(given), _sync(), *self._tree()]
        steps += [
            BufferStore(result.buffer, self._at(buffer, 0), result.indices)
            for result, buffer in zip(request.results, self.memory, strict=True)
        ]
        # the memory may be written again only when every thread has its result
        body = seq([*steps, _sync()])
        for buffer in reversed(self.memory):
            body = Allocate(buffer.data, buffer.dtype, buffer.shape, TRUE, DeclBuffer(buffer, body))
        return body

    def _tree(self) -> list[Stmt]:
        steps: list[Stmt] = []
        left = self.count
        while left > 1:
            # an odd one in the middle waits for the next step
            kept = (left + 1) // 2
            combined = self._combined(kept)
            steps += [IfThenElse(self.place < left - kept, combined, None), _sync()]
            left = kept
        return steps

    def _combined(self, distance: int) -> Stmt:
        """Each thread's value with that of the thread at a distance."""
        mine = [self._at(buffer, self.place) for buffer in self.memory]
        other = [self._at(buffer, self.place + distance) for buffer in self.memory]
        results = self.reducer(mine, other)
        names = [Var(f"combined{k}", result.dtype) for k, result in enumerate(results)]
        body = self._stores(names)
        for name, result in reversed(list(zip(names, results, strict=True))):
            body = LetStmt(name, result, body)
        return body

    def _stores(self, values: list[PrimExpr] | list[Var]) -> Stmt:
        index = self.start + self.place
        return seq([
            BufferStore(buffer, value, (index,))
            for buffer, value in zip(self.memory, values, strict=True)
        ])  # fmt: skip

    def _at(self, buffer: Buffer, place: PrimExpr | int) -> BufferLoad:
        return BufferLoad(buffer, (op.add(self.start, place),))


def _flattened(threads: list[Thread]) -> tuple[PrimExpr, int]:
    """The number of a thread among those of some axes, the first one fastest, and how many there are."""
    place: PrimExpr = const(0, "int32")
    count = 1
    for thread in threads:
        place = op.add(place, op.multiply(thread.var, count))
        count *= thread.extent
    return place, count


def _shared(name: str, value: PrimExpr, size: int) -> Buffer:
    pointer = Var(name, pointer_type(value.dtype, "shared"))
    return decl_buffer((size,), value.dtype, name, data=pointer)


def _sync() -> Stmt:
    return Evaluate(tvm_storage_sync("shared"))


@prim_func_pass("tir.LowerThreadAllreduce")
def lower_thread_allreduce(func: PrimFunc) -> PrimFunc:
    """Lower reductions over threads."""
    return func.with_body(AllreduceLowerer().visit(func.body))


LowerThreadAllreduce = lower_thread_allreduce.factory
