"""Give a buffer two halves, so that one is filled while the other is used.

    for i in range(8):                       ->    attr double_buffer_write: T[0 : 4] = A[0 : 4]
        T = allocate([4])                          for i in range(7):
        attr double_buffer_scope:                      attr double_buffer_write:
            T[0 : 4] = A[i * 4 : i * 4 + 4]                T[(i + 1) % 2 * 4 : ...] = A[i * 4 + 4 : ...]
        B[i] = sum(T[0 : 4])                           B[i] = sum(T[i % 2 * 4 : ...])
                                                   B[7] = sum(T[4 : 8])

A mark is dropped where the next part cannot be filled ahead of time: the loop is not serial, threads begin
inside of it, or what fills the buffer depends on the rest of the iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Call, CallEffectKind, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import effect_of
from tvm.tir.stmt import (
    NO_OP,
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    SeqStmt,
    Stmt,
    seq,
)
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import (
    ADDRESS_OF,
    constant_extent,
    is_const,
    prim_func_pass,
    variables_of,
)
from tvm.tir.transform.convert_ssa import separate_definitions

SCOPE, WRITE = "double_buffer_scope", "double_buffer_write"
THREADS = "thread_extent"


@dataclass(frozen=True)
class InjectDoubleBufferConfig:
    """How the loop around a double buffer is unrolled."""

    split_loop: int = 1  # copies of the body; 0: one loop, with a condition around the filling


@dataclass(frozen=True)
class DoubleBuffer:
    """What fills a buffer in each iteration, where it is allocated, and the views of both halves."""

    fill: AttrStmt
    alloc: Allocate
    views: dict[Buffer, Buffer]


class Accesses(Visitor):
    """Collects the pointers that are read, written, allocated, and passed to calls."""

    def __init__(self, without: Stmt | None) -> None:
        self.without = without
        self.reads: dict[Var, None] = {}
        self.writes: dict[Var, None] = {}
        self.allocated: dict[Var, None] = {}
        self.pointers: dict[Var, None] = {}
        self.effects = False

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr is not self.without:
            self.visit(attr.body)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.reads[load.buffer.data] = None
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.writes[store.buffer.data] = None
        self.visit_children(store)

    def visit_allocate(self, alloc: Allocate) -> None:
        self.allocated[alloc.buffer_var] = None
        self.visit_children(alloc)

    def visit_call(self, call: Call) -> None:
        self.effects = self.effects or effect_of(call.op) > CallEffectKind.ReadState
        if call.op is ADDRESS_OF and isinstance(call.args[0], BufferLoad):
            # whoever gets the address may write there
            self.writes[call.args[0].buffer.data] = None
        self.visit_children(call)

    def visit_var(self, var: Var) -> None:
        if var.dtype.is_handle:
            self.pointers[var] = None


class ViewFinder(Visitor):
    """Collects the buffers that lie at a pointer."""

    def __init__(self, pointer: Var) -> None:
        self.pointer = pointer
        self.found: dict[Buffer, None] = {}

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._view(load.buffer)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._view(store.buffer)
        self.visit_children(store)

    def _view(self, buffer: Buffer) -> None:
        if buffer.data is self.pointer:
            self.found[buffer] = None


class HalfSelector(Rewriter):
    """Shifts the accesses of double buffers to the half of an iteration."""

    def __init__(self, doubles: Sequence[DoubleBuffer], iteration: PrimExpr) -> None:
        self.views = {old: new for double in doubles for old, new in double.views.items()}
        self.half = op.floormod(iteration, const(2, iteration.dtype))
        self.fills = {id(double.fill): None for double in doubles}
        self.pointers = {double.alloc.buffer_var: None for double in doubles}

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        view = self.views.get(load.buffer)
        if view is None:
            return load
        return BufferLoad(view, tuple(self._shifted(load.indices, view)), load.predicate)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        store = self.rewrite_children(store)
        view = self.views.get(store.buffer)
        if view is None:
            return store
        return BufferStore(view, store.value, self._shifted(store.indices, view), store.predicate)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        alloc = self.rewrite_children(alloc)
        return alloc.body if alloc.buffer_var in self.pointers else alloc

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        decl = self.rewrite_children(decl)
        return decl.body if decl.buffer.data in self.pointers else decl

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        return NO_OP if id(attr) in self.fills else self.rewrite_children(attr)

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        return seq([self.visit(stmt) for stmt in block.seq])

    def _shifted(self, indices: Sequence[PrimExpr], view: Buffer) -> list[PrimExpr]:
        (index,) = indices
        size = op.truncdiv(view.shape[0], 2)
        return [op.add(index, op.multiply(self.half, size))]


class DoubleBufferInjector(Rewriter):
    """Works from the inside out: each loop takes care of the marks in its own iteration."""

    def __init__(self, split: int) -> None:
        self.split = split

    def visit_for(self, loop: For) -> Stmt:
        loop = self.rewrite_children(loop)
        if loop.kind is not ForKind.SERIAL or loop.annotations:
            return loop
        doubles = find_double_buffers(loop)
        if not doubles:
            return loop
        stmt = self._run_ahead(loop, doubles)
        for double in reversed(doubles):
            for view in reversed(double.views.values()):
                stmt = DeclBuffer(view, stmt)
            alloc = double.alloc
            stmt = alloc.replace(extents=(alloc.extents[0] * 2,), body=stmt)
        return stmt

    def _run_ahead(self, loop: For, doubles: Sequence[DoubleBuffer]) -> Stmt:
        """Each iteration fills the buffers of the next one before it uses its own."""
        var, count = loop.loop_var, constant_extent(loop)

        def filled(at: PrimExpr) -> Stmt:
            select = HalfSelector(doubles, at - loop.min)
            return seq([
                AttrStmt(
                    double.alloc.buffer_var,
                    WRITE,
                    const(1, "int32"),
                    select.visit(substitute(double.fill.body, {var: at})),
                )
                for double in doubles
            ])  # fmt: skip

        use = HalfSelector(doubles, var - loop.min).visit(loop.body)
        first = filled(loop.min)
        if count is None:
            first = IfThenElse(loop.extent > 0, first)
        if self.split == 0 or count is None:
            ahead = IfThenElse(var + 1 < loop.min + loop.extent, filled(var + 1))
            return seq([first, loop.replace(body=seq([ahead, use]))])
        return seq([first, *self._split(loop, seq([filled(var + 1), use]), use, count)])

    def _split(self, loop: For, step: Stmt, use: Stmt, count: int) -> list[Stmt]:
        """All iterations but the last without a condition, several at a time."""
        var = loop.loop_var
        outer, rest = divmod(count - 1, self.split)
        numbers = [loop.min + (outer * self.split + number) for number in range(rest + 1)]
        stmts: list[Stmt] = []
        if outer and self.split == 1:
            stmts.append(loop.replace(extent=const(outer, var.dtype), body=step))
        elif outer:
            index = Var(f"{var.name}_outer", var.dtype)
            places = [loop.min + (index * self.split + copy) for copy in range(self.split)]
            copies = seq([substitute(step, {var: place}) for place in places])
            stmts.append(For(index, 0, outer, ForKind.SERIAL, copies))
        stmts += [substitute(step, {var: number}) for number in numbers[:-1]]
        return [*stmts, substitute(use, {var: numbers[-1]})]


class MarkRemover(Rewriter):
    """Drops the marks that are left."""

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        attr = self.rewrite_children(attr)
        return attr.body if attr.attr_key == SCOPE else attr


def find_double_buffers(loop: For) -> list[DoubleBuffer]:
    """The marked buffers of an iteration that can be filled ahead of time."""
    fills: list[AttrStmt] = []
    allocs: dict[Var, Allocate] = {}
    find_marks(loop.body, fills, allocs)
    found = []
    for fill in fills:
        inside = accesses_of(fill)
        written = [var for var in inside.writes if var not in inside.allocated]
        alloc = allocs.get(written[0]) if len(written) == 1 else None
        if alloc is not None and can_run_ahead(loop, fill, alloc):
            views = ViewFinder(alloc.buffer_var)
            views.visit(loop.body)
            shape = (alloc.extents[0] * 2,)
            new = {view: view.replace(shape=shape) for view in views.found}
            found.append(DoubleBuffer(fill, alloc, new))
    return found


def find_marks(stmt: Stmt, fills: list[AttrStmt], allocs: dict[Var, Allocate]) -> None:
    """The marks that every iteration passes, and the allocations on the way to them."""
    if isinstance(stmt, SeqStmt):
        for item in stmt.seq:
            find_marks(item, fills, allocs)
    elif isinstance(stmt, AttrStmt) and stmt.attr_key == SCOPE:
        fills.append(stmt)
    elif isinstance(stmt, AttrStmt) and stmt.attr_key == THREADS:
        return  # filling ahead of the loop would stand outside of the threads
    elif isinstance(stmt, (Allocate, AttrStmt, DeclBuffer)):
        if isinstance(stmt, Allocate):
            allocs[stmt.buffer_var] = stmt
        find_marks(stmt.body, fills, allocs)


def can_run_ahead(loop: For, fill: AttrStmt, alloc: Allocate) -> bool:
    """Whether the next iteration's filling may come before the rest of this iteration."""
    pointer = alloc.buffer_var
    flat = len(alloc.extents) == 1 and loop.loop_var not in variables_of(alloc.extents[0])
    if not flat or not is_const(alloc.condition, 1):
        return False
    inside = accesses_of(fill)
    rest = accesses_of(loop.body, without=fill)
    return not (
        inside.effects
        or pointer in inside.pointers
        or pointer in rest.pointers
        or any([var in rest.writes or var in rest.pointers for var in inside.reads])
    )


def accesses_of(stmt: Stmt, without: Stmt | None = None) -> Accesses:
    """What a statement accesses, but for one inside it."""
    accesses = Accesses(without)
    accesses.visit(stmt)
    return accesses


@prim_func_pass("tir.InjectDoubleBuffer", InjectDoubleBufferConfig)
def inject_double_buffer(func: PrimFunc, config: InjectDoubleBufferConfig) -> PrimFunc:
    """Double the buffers that are marked, where they can be filled ahead of time."""
    body = DoubleBufferInjector(config.split_loop).visit(func.body)
    if body is not func.body:
        body = separate_definitions(body, func)
    return func.with_body(MarkRemover().visit(body))


InjectDoubleBuffer = inject_double_buffer.factory
