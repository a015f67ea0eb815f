"""Let one thread of the device do what a program for it binds to no threads.

for i in range(8): A[i] = ...        ->    blockIdx.x = 1, threadIdx.x = 1:
blockIdx.x = 4, threadIdx.x = 64:              for i in range(8): A[i] = ...
    B[...] = ...                           blockIdx.x = 4, threadIdx.x = 64:
                                               B[...] = ...

It is slow, and right: for operators whose loops depend on each other, and the ends of others. Memory that is
allocated around such statements stays memory of the device.
"""

from __future__ import annotations

from typing import Any

from tvm.error import LoweringError
from tvm.tir.expr import BufferLoad, Call, IterVar, Range, StringImm, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
    seq,
)
from tvm.tir.transform.common import contains, prim_func_pass

PACKED = ("tir.tvm_call_packed", "tir.tvm_call_cpacked")


class ThreadBinder:
    """Puts threads around statements of the host that access memory."""

    def visit(self, stmt: Any) -> Stmt:
        """The statement, with threads around all that accesses memory."""
        if isinstance(stmt, SeqStmt):
            return self._sequence(stmt)
        if _opens_threads(stmt) or not contains(stmt, _accesses_memory):
            return stmt  # type: ignore[no-any-return]
        if isinstance(stmt, (Allocate, DeclBuffer, AttrStmt)):
            return _with_body(stmt, self.visit(stmt.body))
        if isinstance(stmt, LetStmt) and not contains(stmt.value, _accesses_memory):
            return _with_body(stmt, self.visit(stmt.body))
        if not contains(stmt, _opens_threads):
            return _one_thread(stmt)
        if isinstance(stmt, (For, While)):
            return _with_body(stmt, self.visit(stmt.body))
        if isinstance(stmt, IfThenElse):
            no = None if stmt.else_case is None else self.visit(stmt.else_case)
            return IfThenElse(stmt.condition, self.visit(stmt.then_case), no)
        raise LoweringError("a statement of the host cannot access the device's memory", at=stmt)

    def _sequence(self, block: SeqStmt) -> Stmt:
        """Neighbours without threads get one thread together."""
        done: list[Stmt] = []
        waiting: list[Stmt] = []

        def flush() -> None:
            if waiting:
                done.append(_one_thread(seq(list(waiting))))
                waiting.clear()

        for part in block.seq:
            has_scope = isinstance(part, (Allocate, DeclBuffer, AttrStmt, LetStmt, SeqStmt))
            if has_scope or contains(part, _opens_threads):
                flush()
                done.append(self.visit(part))
            elif contains(part, _accesses_memory):
                waiting.append(part)
            else:
                flush()
                done.append(part)
        flush()
        return seq(done)


def _with_body(stmt: Any, body: Stmt) -> Stmt:
    found: Stmt = stmt if body is stmt.body else stmt.replace(body=body)
    return found


def _opens_threads(node: Any) -> bool:
    return isinstance(node, AttrStmt) and node.attr_key == "thread_extent"


def _accesses_memory(node: Any) -> bool:
    return isinstance(node, (BufferLoad, BufferStore)) or _calls_packed(node)


def _calls_packed(node: Any) -> bool:
    return isinstance(node, Call) and getattr(node.op, "name", "") in PACKED


def _one_thread(stmt: Stmt) -> Stmt:
    found: list[str] = []

    def note(node: Any) -> bool:
        if _calls_packed(node) and isinstance(node.args[0], StringImm):
            found.append(node.args[0].value)
        return False

    contains(stmt, note)
    if found:
        raise LoweringError(
            f"the function {found[0]} runs on the host, and its arrays are on a device"
        )
    for tag in ("threadIdx.x", "blockIdx.x"):
        axis = IterVar(Range(0, 1), Var(tag, "int32"), IterVar.ThreadIndex, tag)
        stmt = AttrStmt(axis, "thread_extent", const(1, "int32"), stmt)
    return stmt


@prim_func_pass("tir.RunOnOneThread")
def run_on_one_thread(func: PrimFunc) -> PrimFunc:
    """Bind the rest of a function for a device with threads."""
    return func.with_body(ThreadBinder().visit(func.body))


RunOnOneThread = run_on_one_thread.factory
