"""Let threads wait for each other between accesses of the memory they share.

S[tx] = A[tx]                ->    S[tx] = A[tx]
for k in range(64):                tvm_storage_sync("shared")
    B[tx] += S[k]                  for k in range(64):
                                       B[tx] += S[k]

Two accesses of a buffer, one of them a write, have a barrier between them, unless every thread accesses an element of
its own; so have a read and a write of two iterations of a loop, but not two writes: iterations that fill memory
together have elements of their own, and the interpreter rejects programs where they have not. A barrier stands in
front of the outermost statement of which it is in front of the access, so that loops without writes have none.

What stands in a kernel outside of the axis of its threads is run by all of them. Where they add to one element, all
read it before one writes; the interpreter rejects that where some threads take another branch.

S[0] = S[0] + A[k]           ->    value = S[0] + A[k]
                                   tvm_storage_sync("shared")
                                   S[0] = value
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tvm.arith import detect_linear_equation
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.transform import Pass
from tvm.ir.visitor import Visitor
from tvm.tir.analysis.side_effect import side_effect
from tvm.tir.builtin import tvm_storage_sync
from tvm.tir.expr import BufferLoad, Call, CallEffectKind, IntImm, IterVar, Var
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
)
from tvm.tir.transform.common import prim_func_pass, variables_of
from tvm.tir.transform.register_operands import register_operands

T = TypeVar("T")
SYNC = INTRINSICS["tvm_storage_sync"]
ACCESS_PTR = INTRINSICS["tvm_access_ptr"]
READS, WRITES = 1, 2  # of the access mask of tvm_access_ptr
DOUBLE_BUFFER_WRITE = "double_buffer_write"


@dataclass(frozen=True)
class Access:
    """One access of shared memory; the index is None where others may do anything with the pointer."""

    pointer: Var
    is_write: bool
    index: PrimExpr | None
    is_of_next_round: bool = False  # a write into the half of a double buffer that is not read yet


Accesses = list[Access]


@dataclass(frozen=True)
class Summary:
    """The accesses of a statement before its first barrier and behind its last one."""

    head: Accesses
    tail: Accesses
    passes_barrier: bool = False  # on every way through


@dataclass(frozen=True)
class Item:
    """A statement with the barriers that it needs inside."""

    stmt: Stmt
    summary: Summary


@dataclass(frozen=True)
class Carried:
    """What an iteration leaves behind for the next, and the variables that differ between them."""

    accesses: Accesses
    varying: frozenset[Var]


class SharedAccesses(Visitor):
    """Collects accesses of one storage scope; a pointer that is passed on counts as both.

    Those by ``tvm_access_ptr`` are what its mask says. A thread's registers in a matrix unit are its own.
    """

    def __init__(self, scope: str, is_of_next_round: bool) -> None:
        self.scope = scope
        self.is_of_next_round = is_of_next_round
        self.found: Accesses = []

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._add(load.buffer.data, False, load.indices)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        # the value is computed first
        self.visit(store.value)
        for index in store.indices:
            self.visit(index)
        self._add(store.buffer.data, True, store.indices)

    def visit_call(self, call: Call) -> None:
        if call.op is ACCESS_PTR and isinstance(call.args[4], IntImm):
            mask = call.args[4].value
            for does, is_write in ((READS, False), (WRITES, True)):
                if mask & does and isinstance(call.args[1], Var):
                    self._add(call.args[1], is_write, ())
            self.visit(call.args[2])
            return
        own = register_operands(call)
        for place, arg in enumerate(call.args):
            if place not in own or not isinstance(arg, Var):
                self.visit(arg)

    def visit_var(self, var: Var) -> None:
        self._add(var, False, ())
        self._add(var, True, ())

    def _add(self, pointer: Var, is_write: bool, indices: tuple[PrimExpr, ...]) -> None:
        if getattr(pointer.type_annotation, "storage_scope", "") != self.scope:
            return
        index = indices[0] if len(indices) == 1 else None
        is_next = is_write and self.is_of_next_round
        self.found.append(Access(pointer, is_write, index, is_next))


Axes = dict[str, tuple[Var, int | None]]  # a variable and an extent by the thread's tag


class KernelAxes(Visitor):
    """Finds the axes of threads of each kernel, wherever in the kernel they begin."""

    def __init__(self) -> None:
        self.found: dict[AttrStmt, Axes] = {}
        self.axes: Axes | None = None  # of the kernel around

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        outer = self.axes
        if attr.attr_key == "thread_extent" and isinstance(attr.node, IterVar):
            if self.axes is None:
                self.axes = self.found[attr] = {}
            tag = attr.node.thread_tag
            if tag.startswith("threadIdx"):
                extent = attr.value.value if isinstance(attr.value, IntImm) else None
                # a variable that no index mentions, until the axis is entered
                self.axes.setdefault(tag, (Var(tag, attr.node.var.dtype), extent))
        self.visit(attr.body)
        self.axes = outer


class Conflicts:
    """Whether accesses need a barrier between them, for the threads of a kernel."""

    def __init__(self) -> None:
        self.axes: Axes = {}

    def is_thread(self, var: Var) -> bool:
        """Whether a variable is the index of a thread."""
        return any([var is thread for thread, _ in self.axes.values()])

    def between(
        self, earlier: Accesses, later: Accesses, varying: frozenset[Var] | None = None
    ) -> bool:
        """``varying`` are the variables of a loop, if the later ones are of another iteration."""
        return any([
            self._conflict(a, b, varying)
            for a in earlier for b in later if a.pointer is b.pointer
        ])  # fmt: skip

    def _conflict(self, a: Access, b: Access, varying: frozenset[Var] | None) -> bool:
        if not a.is_write and not b.is_write:
            return False
        if varying is not None and a.is_write and b.is_write:
            return False
        if varying is None and a.is_of_next_round and not b.is_write:
            return False
        if a.index is None or b.index is None or not structural_equal(a.index, b.index):
            return True
        if varying is not None and any([var in varying for var in variables_of(a.index)]):
            return True
        return not self._is_own_element(a.index)

    def _is_own_element(self, index: PrimExpr) -> bool:
        """Whether threads that differ have different elements: strides are wider than what is below them."""
        extents = {var: n for var, n in self.axes.values() if n != 1}
        if index.dtype.lanes > 1:
            return False
        found = detect_linear_equation(index, list(extents))
        if not found:
            return False
        strides = []
        for stride, extent in zip(found, extents.values(), strict=False):
            if not isinstance(stride, IntImm) or stride.value <= 0 or extent is None:
                return False
            strides.append((stride.value, extent))
        span = 1
        for stride_of, extent in sorted(strides):
            if stride_of < span:
                return False
            span = stride_of * extent
        return True


class BarrierInserter:
    """Puts barriers into statements; what is before them does not matter but to the statements around."""

    def __init__(self, scope: str, kernels: dict[AttrStmt, Axes]) -> None:
        self.scope = scope
        self.kernels = kernels
        self.conflicts = Conflicts()
        self.is_of_next_round = False
        self.is_of_all_threads = True  # rather than in a branch or loop of some
        self.unknown: dict[Var, None] = {}  # variables that may differ between threads

    def insert(self, stmt: Stmt) -> Item:
        """The statement with barriers between its parts."""
        if isinstance(stmt, (For, While)):
            return self._loop(stmt)
        if isinstance(stmt, IfThenElse):
            return self._branches(stmt)
        if isinstance(stmt, SeqStmt) or _is_scope(stmt):
            block = self._open(stmt)
            return self._closed(block, *self._joined(block.items))
        if isinstance(stmt, BufferStore) and self._is_race(stmt):
            return self._read_before_write(stmt)
        found = self._accesses(stmt)
        is_barrier = isinstance(stmt, Evaluate) and getattr(stmt.value, "op", None) is SYNC
        return Item(stmt, Summary(found, [] if is_barrier else found, is_barrier))

    def _is_race(self, store: BufferStore) -> bool:
        """Whether threads write what others read in this statement, and all of them run it."""
        reads = self._accesses(store.value)
        writes = [access for access in self._accesses(store) if access.is_write]
        return self.is_of_all_threads and self.conflicts.between(reads, writes)

    def _read_before_write(self, store: BufferStore) -> Item:
        reads = self._accesses(store.value)
        value = Var("value", store.value.dtype)
        write = store.replace(value=value)
        barrier = Evaluate(tvm_storage_sync(self.scope))
        stmt = LetStmt(value, store.value, seq([barrier, write]))
        return Item(stmt, Summary(reads, self._accesses(write), True))

    def _is_same_for_all(self, *parts: PrimExpr) -> bool:
        """Whether all threads are known to have the same values."""
        variables = [var for part in parts for var in variables_of(part)]
        if any([var in self.unknown or self.conflicts.is_thread(var) for var in variables]):
            return False
        return all([side_effect(part) <= CallEffectKind.Pure for part in parts])

    def _inside(self, parts: list[PrimExpr], insert: Callable[[], T]) -> T:
        """What ``insert`` makes of the inside of a branch or loop with these conditions or bounds."""
        outer = self.is_of_all_threads
        self.is_of_all_threads = outer and self._is_same_for_all(*parts)
        result = insert()
        self.is_of_all_threads = outer
        return result

    # ---- statements of statements

    def _loop(self, loop: For | While) -> Item:
        """What one iteration leaves behind is met by the next."""
        parts = [loop.min, loop.extent] if isinstance(loop, For) else [loop.condition]
        own = [access for part in parts for access in self._accesses(part)]
        block = self._inside(parts, lambda: self._open(loop.body))
        stmts, summary = self._joined(block.items)
        varying = variables_defined_in(loop)
        if self.conflicts.between(summary.tail, summary.head, varying):
            stmts, summary = self._joined(block.items, Carried(summary.tail, varying))
        body = self._closed(block, stmts, summary)
        if body.stmt is not loop.body:
            self._require_all_threads(loop, parts)
        runs = isinstance(loop, For) and isinstance(loop.extent, IntImm) and loop.extent.value > 0
        passes = runs and summary.passes_barrier
        tail = summary.tail if passes else own + summary.tail
        new = loop if body.stmt is loop.body else loop.replace(body=body.stmt)
        return Item(new, Summary(own + summary.head, tail, passes))

    def _branches(self, stmt: IfThenElse) -> Item:
        own = self._accesses(stmt.condition)
        cases = [case for case in (stmt.then_case, stmt.else_case) if case is not None]
        yes, *others = self._inside([stmt.condition], lambda: [self.insert(case) for case in cases])
        no = others[0] if others else None
        other = Summary([], []) if no is None else no.summary
        passes = yes.summary.passes_barrier and other.passes_barrier
        head = own + yes.summary.head + other.head
        tail = yes.summary.tail + other.tail + ([] if passes else own)
        else_case = None if no is None else no.stmt
        if yes.stmt is stmt.then_case and else_case is stmt.else_case:
            return Item(stmt, Summary(head, tail, passes))
        self._require_all_threads(stmt, [stmt.condition])
        return Item(IfThenElse(stmt.condition, yes.stmt, else_case), Summary(head, tail, passes))

    def _require_all_threads(self, stmt: Stmt, parts: list[PrimExpr]) -> None:
        if any([self.conflicts.is_thread(var) for part in parts for var in variables_of(part)]):
            raise LoweringError("threads cannot wait for each other in a branch of some", at=stmt)

    # ---- sequences

    def _open(self, stmt: Any) -> Block:
        """The statements inside of scopes such as allocations."""
        scopes: list[Stmt] = []
        outer = self.is_of_next_round
        while _is_scope(stmt) and not self._own_accesses(stmt):
            self._enter(stmt)
            scopes.append(stmt)
            stmt = stmt.body
        parts = stmt.seq if isinstance(stmt, SeqStmt) else (stmt,)
        if _is_scope(stmt):
            items = [self._with_own_accesses(stmt)]
        else:
            items = [self.insert(part) for part in parts]
        self.is_of_next_round = outer
        return Block(scopes, stmt, items)

    def _enter(self, stmt: Stmt) -> None:
        if isinstance(stmt, LetStmt) and not self._is_same_for_all(stmt.value):
            self.unknown[stmt.var] = None
        if not isinstance(stmt, AttrStmt):
            return
        if stmt in self.kernels:
            self.conflicts.axes = dict(self.kernels[stmt])
        axis = stmt.node
        if stmt.attr_key == "thread_extent" and isinstance(axis, IterVar):
            if axis.thread_tag in self.conflicts.axes:
                _, extent = self.conflicts.axes[axis.thread_tag]
                self.conflicts.axes[axis.thread_tag] = axis.var, extent
        self.is_of_next_round = self.is_of_next_round or stmt.attr_key == DOUBLE_BUFFER_WRITE

    def _own_accesses(self, scope: Any) -> Accesses:
        return self._accesses(scope.value) if isinstance(scope, LetStmt) else []

    def _with_own_accesses(self, scope: Any) -> Item:
        """A definition of a value that is read from shared memory."""
        self._enter(scope)
        own, body = self._own_accesses(scope), self.insert(scope.body)
        if self.is_of_all_threads and self.conflicts.between(own, body.summary.head):
            barrier = Evaluate(tvm_storage_sync(self.scope))
            stmt = scope.replace(body=seq([barrier, body.stmt]))
            return Item(stmt, Summary(own, body.summary.tail, True))
        stmt = scope if body.stmt is scope.body else scope.replace(body=body.stmt)
        passes = body.summary.passes_barrier
        tail = body.summary.tail if passes else own + body.summary.tail
        return Item(stmt, Summary(own + body.summary.head, tail, passes))

    def _joined(
        self, items: list[Item], carried: Carried | None = None
    ) -> tuple[list[Stmt], Summary]:
        """Statements one after the other, with barriers between them."""
        stmts: list[Stmt] = []
        head: Accesses = []
        pending: Accesses = []
        passes = False
        for item in items:
            first = item.summary.head
            waits = self.conflicts.between(pending, first) or (
                carried is not None
                and self.conflicts.between(carried.accesses, first, carried.varying)
            )
            if waits:
                stmts.append(Evaluate(tvm_storage_sync(self.scope)))
                pending, carried, passes = [], None, True
            stmts.append(item.stmt)
            if not passes:
                head = head + first
            if item.summary.passes_barrier:
                pending, carried, passes = item.summary.tail, None, True
            else:
                pending = pending + item.summary.tail
        return stmts, Summary(head, pending, passes)

    def _closed(self, block: Block, stmts: list[Stmt], summary: Summary) -> Item:
        """The scopes around the statements, as they were if nothing has changed."""
        old = block.body.seq if isinstance(block.body, SeqStmt) else (block.body,)
        same = len(old) == len(stmts) and all(
            [new is before for new, before in zip(stmts, old, strict=True)]
        )
        new: Any = block.body if same else seq(stmts)
        for scope in reversed(block.scopes):
            new = scope if new is scope.body else scope.replace(body=new)
        return Item(new, summary)

    def _accesses(self, node: Stmt | PrimExpr) -> Accesses:
        accesses = SharedAccesses(self.scope, self.is_of_next_round)
        accesses.visit(node)
        return accesses.found


@dataclass(frozen=True)
class Block:
    """Scopes around a body, and what became of its statements."""

    scopes: list[Any]
    body: Any
    items: list[Item]


def _is_scope(stmt: Any) -> bool:
    return isinstance(stmt, (AttrStmt, LetStmt, Allocate, AllocateConst, DeclBuffer))


def variables_defined_in(loop: For | While) -> frozenset[Var]:
    """The variables that have other values in the next iteration."""
    finder = _Definitions()
    finder.visit(loop)
    return frozenset(finder.found)


class _Definitions(Visitor):
    def __init__(self) -> None:
        self.found: list[Var] = []

    def visit_for(self, loop: For) -> None:
        self.found.append(loop.loop_var)
        self.visit(loop.body)

    def visit_let_stmt(self, let: LetStmt) -> None:
        self.found.append(let.var)
        self.visit(let.body)


def ThreadSync(storage_scope: str) -> Pass:
    """The pass for one kind of memory, such as ``"shared"``."""

    @prim_func_pass("tir.ThreadSync")
    def thread_sync(func: PrimFunc) -> PrimFunc:
        axes = KernelAxes()
        axes.visit(func.body)
        return func.with_body(BarrierInserter(storage_scope, axes.found).insert(func.body).stmt)

    return thread_sync.factory()
