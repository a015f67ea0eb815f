"""Combine the values of threads by way of memory that they share.

tvm_thread_allreduce(1, v, cond, all, tx)    ->    S[tx] = select(cond, v, 0)
                                                   tvm_storage_sync("shared")
                                                   if tx < 4: S[tx] = S[tx] + S[tx + 4]
                                                   tvm_storage_sync("shared")
                                                   ...
                                                   all[0] = S[0]
                                                   tvm_storage_sync("shared")

Half of the threads combine two values each, then a quarter, until one is left. Where the target has warps with
shuffles, these take the place of the memory (:mod:`tvm.tir.transform.warp_allreduce`); what the results are then
loaded from replaces the memory that the program has for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.builtin import tvm_storage_sync
from tvm.tir.expr import (
    BufferLoad,
    Call,
    CommReducer,
    IterVar,
    Var,
    const,
    pointer_type,
)
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
from tvm.tir.transform.warp_allreduce import WarpReduction, Warps

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

    def __init__(self, warps: Warps | None) -> None:
        self.warps = warps
        self.threads: list[Thread] = []
        self.reducers: list[CommReducer] = []
        self.allocated: dict[Var, None] = {}  # memory of the function's own that is open
        self.results: dict[Var, BufferLoad] = {}  # instead of that memory

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == "reduce_scope":
            self.reducers.append(attr.node)
            body: Stmt = self.visit(attr.body)
            self.reducers.pop()
            return body if self.warps is None else attr.replace(body=body)
        if attr.attr_key != "thread_extent" or not isinstance(attr.node, IterVar):
            return self.rewrite_children(attr)
        extent = _constant(attr.value, attr.node.thread_tag)
        self.threads.append(Thread(attr.node.thread_tag, attr.node.var, extent))
        new = self.rewrite_children(attr)
        self.threads.pop()
        return new

    def visit_allocate(self, stmt: Allocate) -> Stmt:
        self.allocated[stmt.buffer_var] = None
        new = self.rewrite_children(stmt)
        del self.allocated[stmt.buffer_var]
        result = self.results.pop(stmt.buffer_var, None)
        if result is None:
            return new
        buffer = result.buffer
        body = ResultReplacer(stmt.buffer_var, result).visit(new.body)
        if buffer.scope() == "shared":  # threads read what another one wrote
            body = AttrStmt(buffer.data, "volatile_scope", const(1, "int32"), body)
        return Allocate(buffer.data, buffer.dtype, buffer.shape, TRUE, body)

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        call = stmt.value
        if not isinstance(call, Call) or call.op is not ALLREDUCE:
            return stmt
        if not self.reducers:
            raise LoweringError(
                "LowerThreadAllreduce needs to know how values combine", at=stmt,
                hint='put the call into AttrStmt(reducer, "reduce_scope", 0, ...)',
            )  # fmt: skip
        request = as_request(call)
        group = Group.of(request, self.threads)
        dtypes = [value.dtype for value in request.values]
        if self.warps is None or not group.is_contiguous:
            return Reduction(self.reducers[-1], request, group).build()
        if not self.warps.combine(dtypes, group.count, group.groups):
            return Reduction(self.reducers[-1], request, group).build()
        return self._by_shuffles(request, group, self.warps)

    def _by_shuffles(self, request: Request, group: Group, warps: Warps) -> Stmt:
        reducer = self.reducers[-1]
        reduction = WarpReduction(
            reducer, warps, group.place, group.count, group.number, group.groups
        )
        steps, found = reduction.build(values_of(request, reducer))
        for result, load in zip(request.results, found, strict=True):
            data = result.buffer.data
            if data in self.allocated and data not in self.results:
                self.results[data] = load
            else:
                reduction.memory.append(load.buffer)
                steps = seq([steps, BufferStore(result.buffer, load, result.indices)])
        for buffer in reduction.memory:
            steps = Allocate(buffer.data, buffer.dtype, buffer.shape, TRUE, steps)
        return steps


class ResultReplacer(Rewriter):
    """Accesses what holds a result instead of the memory that the program has for it."""

    def __init__(self, data: Var, result: BufferLoad) -> None:
        self.data, self.result = data, result

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        return self.result if load.buffer.data is self.data else self.rewrite_children(load)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        store = self.rewrite_children(store)
        if store.buffer.data is not self.data:
            return store
        return store.replace(buffer=self.result.buffer, indices=self.result.indices)

    def visit_decl_buffer(self, stmt: DeclBuffer) -> Stmt:
        body = self.visit(stmt.body)
        buffer = self.result.buffer if stmt.buffer.data is self.data else stmt.buffer
        return stmt.replace(buffer=buffer, body=body)


def _constant(extent: PrimExpr, tag: str) -> int:
    if tag.startswith("threadIdx"):
        return as_int(extent)
    return 0  # the number of blocks does not matter


@dataclass(frozen=True)
class Group:
    """The threads that combine, and the groups of such threads in a block."""

    place: PrimExpr  # the number of a thread in its group
    count: int
    number: PrimExpr  # of the group
    groups: int
    is_contiguous: bool  # the threads of a group are neighbours

    @staticmethod
    def of(request: Request, threads: list[Thread]) -> Group:
        """The groups of a request, by the axes of threads around it."""
        own = dict.fromkeys(request.threads)
        inside = sorted(
            [thread for thread in threads if thread.tag.startswith("threadIdx")],
            key=lambda thread: thread.tag,
        )
        if any([all([thread.var is not var for thread in inside]) for var in own]):
            raise LoweringError("LowerThreadAllreduce needs the loops over its threads around it")
        combined = [thread.var in own for thread in inside]
        place, count = _flattened([t for t in inside if t.var in own])
        number, groups = _flattened([t for t in inside if t.var not in own])
        return Group(place, count, number, groups, combined == sorted(combined, reverse=True))


def values_of(request: Request, reducer: CommReducer) -> list[PrimExpr]:
    """What each thread brings: the neutral element where its condition does not hold."""
    return [
        op.if_then_else(request.condition, value, identity)
        for value, identity in zip(request.values, reducer.identity_element, strict=True)
    ]


class Reduction:
    """One reduction by way of shared memory."""

    def __init__(self, reducer: CommReducer, request: Request, group: Group) -> None:
        self.reducer, self.request = reducer, request
        self.place, self.count = group.place, group.count
        self.start = op.multiply(group.number, self.count)
        self.memory = [
            _shared(f"red_buf{k}", value, group.groups * self.count)
            for k, value in enumerate(request.values)
        ]

    def build(self) -> Stmt:
        """The whole of it, with its memory."""
        request = self.request
        given = values_of(request, self.reducer)
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


def warps_of(target: Any) -> Warps | None:
    """The warps of a target with shuffles."""
    kind = str(getattr(target, "kind", ""))
    if kind not in _WITH_SHUFFLES:
        return None
    attrs = target.attrs
    size, threads = int(attrs.get("thread_warp_size", 1)), int(attrs.get("max_num_threads", 0))
    return Warps(size, threads, has_mask=kind != "metal")


_WITH_SHUFFLES = ("cuda", "nvptx", "metal")


@prim_func_pass("tir.LowerThreadAllreduce")
def lower_thread_allreduce(func: PrimFunc) -> PrimFunc:
    """Lower reductions over threads."""
    return func.with_body(AllreduceLowerer(warps_of(func.get_attr("target"))).visit(func.body))


LowerThreadAllreduce = lower_thread_allreduce.factory
