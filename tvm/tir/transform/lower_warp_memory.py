"""Divide the memory of a warp among its threads' registers; threads ask each other for what they need.

W = allocate([32], scope="warp")     ->    L = allocate([1], scope="local")
W[tx] = A[tx]                              L[0] = A[tx]
B[tx] = W[31 - tx]                         B[tx] = tvm_warp_shuffle(mask, L[0], 31 - tx, 32, 32)

Thread ``tx`` holds the elements that it stores: those at ``tx*m + r`` for r in [0, m), and the same again for each
further ``width*m`` elements. A load of another thread's elements becomes a shuffle. Matrix units take the registers
of each thread: what they load or fill counts as stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.arith import Analyzer, detect_linear_equation
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.builtin import tvm_warp_activemask, tvm_warp_shuffle
from tvm.tir.expr import BufferLoad, Call, IntImm, IterVar, Ramp, Range, Var, const, pointer_type
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import Allocate, AttrStmt, BufferStore, DeclBuffer, For, Stmt
from tvm.tir.transform.common import as_int, prim_func_pass, variables_of
from tvm.tir.transform.register_operands import register_operands

LDMATRIX = INTRINSICS["ptx_ldmatrix"]
MMA_FILL = INTRINSICS["mma_fill"]


@dataclass(frozen=True, slots=True)
class Division:
    """How one allocation is divided: ``run`` neighbouring elements belong to each of ``width`` threads."""

    width: int
    run: int
    memory: Var
    extent: int  # of a thread's part

    def places(self, index: PrimExpr, analyzer: Analyzer) -> tuple[PrimExpr, PrimExpr]:
        """The place in its thread's part of an element, and that thread."""
        if isinstance(index, Ramp):
            place, owner = self.places(index.base, analyzer)
            return Ramp(place, index.stride, index.lanes), owner
        run, width = const(self.run, index.dtype), const(self.width, index.dtype)
        owner = op.floormod(op.floordiv(index, run), width)
        group = op.floordiv(index, op.multiply(run, width))
        place = op.add(op.floormod(index, run), op.multiply(group, run))
        return analyzer.canonical_simplify(place), analyzer.canonical_simplify(owner)


def thread_of(stmt: AttrStmt | For) -> tuple[Var, PrimExpr] | None:
    """The index of threads in x that a statement opens, and its extent."""
    if isinstance(stmt, AttrStmt):
        axis, extent = stmt.node, stmt.value
        var = axis.var if isinstance(axis, IterVar) else None
    else:
        axis, extent, var = stmt.thread_binding, stmt.extent, stmt.loop_var
    is_x = isinstance(axis, IterVar) and axis.thread_tag == "threadIdx.x"
    return (var, extent) if is_x and var is not None else None


class StoreFinder(Visitor):
    """Collects the stores into some memory, with the index of the thread that stores."""

    def __init__(self, memory: Var, thread: tuple[Var, PrimExpr] | None) -> None:
        self.memory = memory
        self.thread = thread
        self.found: list[tuple[PrimExpr, Var]] = []
        self.runs: list[int] = []  # what instructions fill in each thread's part
        self.widths: list[PrimExpr] = [] if thread is None else [thread[1]]

    def _enter(self, stmt: AttrStmt | For) -> None:
        outer = self.thread
        if (thread := thread_of(stmt)) is not None:
            self.thread = thread
            self.widths.append(thread[1])
        self.visit_children(stmt)
        self.thread = outer

    def visit_attr_stmt(self, stmt: AttrStmt) -> None:
        self._enter(stmt)

    def visit_for(self, stmt: For) -> None:
        self._enter(stmt)

    def visit_buffer_store(self, store: BufferStore) -> None:
        if store.buffer.data is self.memory:
            self._note(_only_index(store), store)

    def _note(self, index: PrimExpr, at: Any) -> None:
        if self.thread is None:
            raise LoweringError("memory of a warp needs loops bound to threadIdx.x", at=at)
        self.found.append((index, self.thread[0]))

    def visit_call(self, call: Call) -> None:
        if call.op is MMA_FILL and call.args[1] is self.memory:
            self.runs.append(as_int(call.args[0]))
        elif call.op is LDMATRIX and call.args[3] is self.memory:
            self._note(call.args[4], call)
        self.visit_children(call)


class WarpMemoryLowerer(Rewriter):
    """Goes down to allocations of scope warp, with what is known of the loops around them."""

    def __init__(self, warp_size: int) -> None:
        self.warp_size = warp_size
        self.analyzer = Analyzer()
        self.thread: tuple[Var, PrimExpr] | None = None
        self.divided: dict[Var, Division] = {}
        self.views: dict[Buffer, Buffer] = {}

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == "thread_extent" and isinstance(attr.node, IterVar):
            self.analyzer.bind(attr.node.var, Range(attr.value), True)
        return self._within(attr)

    def visit_for(self, loop: For) -> Stmt:
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), True)
        return self._within(loop)

    def _within(self, stmt: AttrStmt | For) -> Stmt:
        outer = self.thread
        self.thread = thread_of(stmt) or outer
        inside = self.rewrite_children(stmt)
        self.thread = outer
        return inside

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        if _scope(alloc.buffer_var) != "warp":
            return self.rewrite_children(alloc)
        division = self._divide(alloc)
        self.divided[alloc.buffer_var] = division
        extents = (const(division.extent, "int32"),)
        return alloc.replace(
            buffer_var=division.memory, extents=extents, body=self.visit(alloc.body)
        )

    def _divide(self, alloc: Allocate) -> Division:
        finder = StoreFinder(alloc.buffer_var, self.thread)
        finder.visit(alloc.body)
        width = self._width(finder.widths, alloc)
        told = {self._run(index, thread, alloc) for index, thread in finder.found}
        runs = sorted({*told, *finder.runs})
        if len(runs) != 1:
            raise LoweringError(
                f"memory of a warp needs stores with one distance between threads, got {runs}",
                at=alloc,
            )
        run, size = runs[0], alloc.constant_size()
        if size is None or size % (width * run):
            raise LoweringError(
                f"memory of a warp needs a multiple of {width} * {run} elements, got {size}",
                at=alloc,
            )
        memory = Var(alloc.buffer_var.name, pointer_type(str(alloc.dtype), "local"))
        return Division(width, run, memory, size // width)

    def _width(self, extents: list[PrimExpr], alloc: Allocate) -> int:
        widths = sorted({as_int(extent) for extent in extents})
        if len(widths) != 1:
            raise LoweringError(
                f"memory of a warp needs loops bound to one threadIdx.x, got extents {widths}",
                at=alloc,
            )
        if self.warp_size % widths[0]:
            raise LoweringError(
                f"memory of a warp needs an extent of threadIdx.x that divides {self.warp_size}, "
                f"got {widths[0]}",
                at=alloc,
            )
        return widths[0]

    def _run(self, index: PrimExpr, thread: Var, alloc: Allocate) -> int:
        """How far apart the elements are that neighbouring threads store."""
        if isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1:
            index = index.base
        found = detect_linear_equation(index, [thread]) if index.dtype.lanes == 1 else ()
        distance = self.analyzer.simplify(found[0]) if found else None
        if not isinstance(distance, IntImm) or distance.value <= 0:
            raise LoweringError(
                f"memory of a warp needs stores at multiples of {thread}, got [{index}]", at=alloc
            )
        return int(distance.value)

    def _is_mine(self, owner: PrimExpr) -> bool:
        return self.thread is not None and self.analyzer.can_prove_equal(owner, self.thread[0])

    # ---- accesses

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        body = self.visit(decl.body)
        if decl.buffer.data not in self.divided:
            return decl if body is decl.body else decl.replace(body=body)
        return DeclBuffer(self._view(decl.buffer), body)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        value = self.visit(store.value)
        division = self.divided.get(store.buffer.data)
        if division is None:
            indices = [self.visit(index) for index in store.indices]
            return BufferStore(store.buffer, value, indices, store.predicate)
        place, owner = division.places(self.visit(_only_index(store)), self.analyzer)
        if not self._is_mine(owner):
            raise LoweringError(
                f"a thread stores into its own part of a warp's memory only, got [{store.indices[0]}]",
                at=store,
            )
        return BufferStore(self._view(store.buffer), value, [place], store.predicate)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        division = self.divided.get(load.buffer.data)
        if division is None:
            return self.rewrite_children(load)
        place, owner = division.places(self.visit(_only_index(load)), self.analyzer)
        value = BufferLoad(self._view(load.buffer), (place,))
        if self._is_mine(owner):
            return value
        if self.thread is None or self.thread[0] in variables_of(place):
            raise LoweringError(
                f"threads can ask for elements at one place of each part, got [{load.indices[0]}]",
                at=load,
            )
        return tvm_warp_shuffle(tvm_warp_activemask(), value, owner, division.width, self.warp_size)

    def visit_call(self, call: Call) -> PrimExpr:
        own = [place for place in register_operands(call) if call.args[place] in self.divided]
        args = list(call.args)
        for place in own:
            division = self.divided[call.args[place]]  # type: ignore[index]
            index, _ = division.places(self.visit(args[place + 1]), self.analyzer)
            args[place : place + 2] = [division.memory, index]
        return self.rewrite_children(call.replace(args=tuple(args)) if own else call)

    def visit_var(self, var: Var) -> PrimExpr:
        if var in self.divided:
            raise LoweringError(
                f"memory of a warp needs plain loads and stores, got the pointer {var}"
            )
        return var

    def _view(self, buffer: Buffer) -> Buffer:
        if buffer not in self.views:
            division = self.divided[buffer.data]
            self.views[buffer] = decl_buffer(
                (division.extent,), buffer.dtype, buffer.name, data=division.memory, scope="local"
            )
        return self.views[buffer]


def _only_index(access: BufferLoad | BufferStore) -> PrimExpr:
    if len(access.indices) != 1:
        raise LoweringError("memory of a warp must be flat before it is lowered", at=access)
    return access.indices[0]


def _scope(var: Var) -> str:
    return str(getattr(var.type_annotation, "storage_scope", ""))


class _WarpMemoryFinder(Visitor):
    found = False

    def visit_allocate(self, alloc: Allocate) -> None:
        self.found = self.found or _scope(alloc.buffer_var) == "warp"
        self.visit(alloc.body)


@prim_func_pass("tir.LowerWarpMemory")
def lower_warp_memory(func: PrimFunc) -> PrimFunc:
    """Divide memory of scope warp; the target says how many threads a warp has."""
    finder = _WarpMemoryFinder()
    finder.visit(func.body)
    if not finder.found:
        return func
    target = func.get_attr("target")
    if target is None:
        raise LoweringError(
            "LowerWarpMemory needs the function's target for the size of a warp, got none",
            hint="apply tir.transform.BindTarget first",
        )
    size = int(target.attrs.get("thread_warp_size", 1))
    return func.with_body(WarpMemoryLowerer(size).visit(func.body))


LowerWarpMemory = lower_warp_memory.factory
