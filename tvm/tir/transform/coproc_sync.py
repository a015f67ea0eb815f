"""Let a processor and its coprocessor, and the stages of the coprocessor, wait for each other.

for i in range(n):                            for i in range(n):
    A[i] = A[i] + 1                               A[i] = A[i] + 1
    attr coproc_scope 1:              ->          coproc_read_barrier(A, 32, 0, 10)
        for j in range(10):                       attr coproc_scope 1:
            A[j] = A[j] + 2                           for j in range(10):
                                                          A[j] = A[j] + 2
                                                  coproc_sync()
                                                  coproc_write_barrier(A, 32, 0, 10)

Statements of the coprocessor run while the processor goes on. It waits before it accesses what they write, or writes
what they read, and at the end. A read barrier shows the coprocessor what the processor has written, a write barrier the
processor what the coprocessor has. The stages of a coprocessor, which the values of the attributes number, run beside
each other: each pushes a token to the next one, which pops it, in the order of the program (``coproc_stages``).

The calls are operators of the coprocessor's name, ``tir.cop.coproc_sync`` for a thread axis ``cop``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tvm.arith import Analyzer, IntervalSet
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.op import has_op
from tvm.ir.visitor import Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Call, IterVar, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import (
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    SeqStmt,
    Stmt,
    While,
    seq,
)
from tvm.tir.transform.common import prim_func_pass
from tvm.tir.transform.coproc_stages import SCOPE, with_stages_in_order

ACCESS_PTR = INTRINSICS["tvm_access_ptr"]


@dataclass(frozen=True)
class Touch:
    """The elements of memory that a statement accesses."""

    pointer: Var
    bits: int
    low: PrimExpr
    high: PrimExpr  # the last one
    is_write: bool

    def in_all_turns(self, loop: For) -> Touch:
        """What all iterations of a loop access."""
        turns = {loop.loop_var: turns_of(loop)}
        low = Analyzer().int_set(self.low, turns).min_value
        high = Analyzer().int_set(self.high, turns).max_value
        return replace(self, low=low, high=high)


def turns_of(loop: For) -> IntervalSet:
    """The values of a loop's variable."""
    return IntervalSet(loop.min, loop.min + loop.extent - 1)


@dataclass
class Touches(Visitor):
    """What the processor and the coprocessor access in a statement, whatever the loops inside do."""

    cpu: list[Touch] = field(default_factory=list)
    coproc: list[Touch] = field(default_factory=list)
    loops: dict[Var, IntervalSet] = field(default_factory=dict)
    is_coproc: bool = False

    def visit_for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.loops[loop.loop_var] = turns_of(loop)
        self.visit(loop.body)
        del self.loops[loop.loop_var]

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        outer = self.is_coproc
        self.is_coproc |= attr.attr_key == SCOPE
        self.visit_children(attr)
        self.is_coproc = outer

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.visit_children(load)
        self._note_element(load.buffer, load.indices, False)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.visit_children(store)
        self._note_element(store.buffer, store.indices, True)

    def visit_call(self, call: Call) -> None:
        if call.op is not ACCESS_PTR:
            self.visit_children(call)
            return
        element, pointer, offset, extent, mask = call.args
        assert isinstance(pointer, Var)
        for bit, is_write in ((1, False), (2, True)):
            if int(mask) & bit:  # type: ignore[call-overload]
                last = op.add(offset, extent - 1)
                self._note(pointer, element.dtype.bits, offset, last, is_write)

    def _note_element(self, buffer: Buffer, indices: Sequence[PrimExpr], is_write: bool) -> None:
        [offset] = buffer.offset_of(indices)
        self._note(buffer.data, buffer.dtype.bits, offset, offset, is_write)

    def _note(
        self, pointer: Var, bits: int, first: PrimExpr, last: PrimExpr, is_write: bool
    ) -> None:
        analyzer = Analyzer()
        low = analyzer.int_set(first, self.loops).min_value
        high = analyzer.int_set(last, self.loops).max_value
        found = self.coproc if self.is_coproc else self.cpu
        found.append(Touch(pointer, bits, low, high, is_write))


def touches_of(stmt: Stmt) -> Touches:
    """What is accessed in a statement."""
    found = Touches()
    found.visit(stmt)
    return found


def conflicting(first: Sequence[Touch], second: Sequence[Touch]) -> bool:
    """Whether one of two sides writes what the other accesses."""
    return any(
        [a.pointer is b.pointer and (a.is_write or b.is_write) for a in first for b in second]
    )


class Synchronizer:
    """Puts barriers between the processor's statements and the coprocessor's."""

    def __init__(self, axis: Var, shared: dict[Var, None]) -> None:
        self.axis = axis
        self.shared = shared  # what both access
        self.pending: list[Touch] = []  # of the coprocessor, since the processor has waited
        self.unseen: list[Touch] = []  # what the processor has written since the coprocessor looked

    def function(self, body: Stmt) -> Stmt:
        """The body with barriers; when it ends, the coprocessor has ended."""
        new = self.stmt(body)
        return seq([new, *self._waited()]) if self.pending else new

    def stmt(self, stmt: Stmt) -> Stmt:
        """A statement with barriers inside."""
        if isinstance(stmt, AttrStmt) and stmt.attr_key == SCOPE:
            self.pending += touches_of(stmt).coproc or [self._anything()]
            return stmt
        if isinstance(stmt, SeqStmt):
            return seq([part for child in stmt.seq for part in self._child(child)])
        if isinstance(stmt, For):
            return self._loop(stmt)
        if isinstance(stmt, IfThenElse):
            return self._branches(stmt)
        if isinstance(body := getattr(stmt, "body", None), Stmt):
            return stmt.replace(body=self.stmt(body))
        self.unseen += [t for t in touches_of(stmt).cpu if t.is_write and t.pointer in self.shared]
        return stmt

    def _child(self, child: Stmt) -> list[Stmt]:
        touched = touches_of(child)
        before: list[Stmt] = []
        if conflicting(self.pending, touched.cpu):
            before += self._waited()
        reads = [t for t in touched.coproc if not t.is_write]
        seen = {t.pointer: None for t in self.unseen}
        shown = {t.pointer: None for t in reads if t.pointer in seen}
        for pointer in shown:
            read = [t for t in reads if t.pointer is pointer]
            before.append(self._barrier("coproc_read_barrier", read))
        self.unseen = [t for t in self.unseen if t.pointer not in shown]
        return [*before, self.stmt(child)]

    def _loop(self, loop: For) -> Stmt:
        touched = touches_of(loop.body)
        outer, self.pending = self.pending, []
        # what an iteration writes, the next one has to be shown
        self.unseen += [t for t in touched.cpu if t.is_write and t.pointer in self.shared]
        is_sequence = isinstance(loop.body, SeqStmt)
        parts = [self.stmt(loop.body)] if is_sequence else self._child(loop.body)
        if conflicting(self.pending, touched.cpu):
            parts += self._waited()
        self.pending = outer + [t.in_all_turns(loop) for t in self.pending]
        return loop.replace(body=seq(parts))

    def _branches(self, stmt: IfThenElse) -> Stmt:
        before, unseen = self.pending, self.unseen
        after: list[Touch] = []
        hidden: list[Touch] = []
        bodies: list[Stmt | None] = []
        for case in (stmt.then_case, stmt.else_case):
            self.pending, self.unseen = list(before), list(unseen)
            bodies.append(None if case is None else seq(self._child(case)))
            after += [t for t in self.pending if t not in after]
            hidden += [t for t in self.unseen if t not in hidden]
        self.pending, self.unseen = after, hidden
        then, other = bodies
        assert then is not None
        return IfThenElse(stmt.condition, then, other)

    def _waited(self) -> list[Stmt]:
        """The processor waits, and is shown what the coprocessor has written."""
        written = [t for t in self.pending if t.is_write and t.pointer in self.shared]
        self.pending = []
        pointers = {t.pointer: None for t in written}
        return [
            self._call("coproc_sync", []),
            *[
                self._barrier("coproc_write_barrier", [t for t in written if t.pointer is pointer])
                for pointer in pointers
            ],
        ]

    def _barrier(self, name: str, touched: Sequence[Touch]) -> Stmt:
        simple = Analyzer().simplify
        low, high = touched[0].low, touched[0].high
        for touch in touched[1:]:
            low, high = op.minimum(low, touch.low), op.maximum(high, touch.high)
        first = touched[0]
        args = [first.pointer, const(first.bits, "int32"), simple(low), simple(high - low + 1)]
        return self._call(name, args)

    def _call(self, name: str, args: Sequence[PrimExpr]) -> Stmt:
        return coproc_call(self.axis, name, args)

    def _anything(self) -> Touch:
        """Work on nothing that is known, which has to be waited for all the same."""
        zero = const(0, "int32")
        return Touch(self.axis, 0, zero, zero, False)


def coproc_call(axis: Var, name: str, args: Sequence[PrimExpr]) -> Stmt:
    """A call of one of the coprocessor's operators."""
    full = f"tir.{axis.name}.{name}"
    if not has_op(full):
        raise LoweringError(
            f"CoProcSync requires the operator {full}, which is not registered",
            hint=f'tvm.ir.register_op_attr("{full}", "TGlobalSymbol", "the function to call")',
        )
    return Evaluate(Call("int32", full, list(args)))


class _ScopeFinder(Visitor):
    def __init__(self) -> None:
        self.axes: dict[Var, None] = {}

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key == SCOPE:
            if not isinstance(attr.node, IterVar):
                raise LoweringError(
                    f"CoProcSync requires {SCOPE} of a thread axis, got {attr.node}", at=attr
                )
            self.axes[attr.node.var] = None
        self.visit_children(attr)

    def visit_while(self, stmt: While) -> None:
        inner = _ScopeFinder()
        inner.visit(stmt.body)
        if inner.axes:
            raise LoweringError("CoProcSync requires coprocessors in for loops, got while", at=stmt)


@prim_func_pass("tir.CoProcSync")
def coproc_sync(func: PrimFunc) -> PrimFunc:
    """Make a processor and its coprocessor wait for each other."""
    finder = _ScopeFinder()
    finder.visit(func.body)
    if not finder.axes:
        return func
    if len(finder.axes) > 1:
        raise LoweringError(f"CoProcSync requires one coprocessor, got {list(finder.axes)}")
    [axis] = finder.axes
    touched = touches_of(func.body)
    of_coproc = {t.pointer: None for t in touched.coproc}
    shared = {t.pointer: None for t in touched.cpu if t.pointer in of_coproc}
    body = Synchronizer(axis, shared).function(func.body)
    return func.with_body(
        with_stages_in_order(body, lambda name, args: coproc_call(axis, name, args))
    )


CoProcSync = coproc_sync.factory
