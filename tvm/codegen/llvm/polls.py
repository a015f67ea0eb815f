"""Long serial loops look for signals, so that Ctrl-C need not wait for their end.

for i in range(1 << 30): A[i] = 0    ->    for o in range(0, 1 << 30, 1 << 22):
                                               if __TVMBackendPollSignals() != 0: return -1
                                               for i in range(o, o + (1 << 22)): A[i] = 0

Only loops whose number of stores is known, and so large that looking is nothing beside them, do so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm.ir.visitor import Visitor
from tvm.tir.expr import Call, IntImm
from tvm.tir.stmt import BufferStore, For, ForKind, Stmt

if TYPE_CHECKING:
    from .statements import FunctionWriter

# stores of a function that looks for signals: some 20 milliseconds or more
LONG = 1 << 25
# stores of a parallel loop that does; the runtime cuts those that it knows as long into parts
LONG_PARALLEL = 1 << 28
# stores between two looks: some milliseconds, and 200 where each is the slowest there is
STEP = 1 << 22
# stores beside which a look is nothing
LEAST = 1 << 13
# what a call of a function, such as exp, counts
CALL = 4


def find_polls(body: Stmt) -> dict[For, int]:
    """The loops that look for signals, and after how many iterations."""
    polls: dict[For, int] = {}
    if StoreCounter().of(body) < STEP:  # most functions are looked through no further
        return polls
    costs = LoopCosts()
    if costs.of(body) >= LONG:
        _plan(costs.loops, costs.outermost, polls)
    return polls


def _plan(costs: dict[For, int], loops: list[For], polls: dict[For, int]) -> None:
    for loop in loops:
        is_parallel = loop.kind is ForKind.PARALLEL
        if costs[loop] < (LONG_PARALLEL if is_parallel else STEP):
            continue
        inner = LoopCosts()
        body = inner.of(loop.body)
        if not is_parallel:
            polls[loop] = max(STEP // max(body, 1), 1)
        elif body >= LEAST:  # threads share iterations, in different ways: no chunks
            polls[loop] = 1
        _plan(inner.loops, inner.outermost, polls)


def write_poll(w: FunctionWriter) -> None:
    """Leave the function if a signal's handler has raised; older runtimes do not look for any."""
    code = w.code
    poll = code.value(f"load ptr, ptr {w.module.context_slot('TVMBackendPollSignals')}, align 8")
    ask, done = code.new_label("ask"), code.new_label("go")
    before, status = code.label, code.new_label("status")
    code.branch(code.value(f"icmp ne ptr {poll}, null"), ask, done)
    code.start(ask)
    found = code.value(f"call i32 {poll}()")
    code.jump(done)
    code.start(done)
    code.do(f"%{status} = phi i32 [ 0, %{before} ], [ {found}, %{ask} ]")
    w.return_if_failed(f"%{status}")


class StoreCounter(Visitor):
    """Counts stores. What only the run knows counts once."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, stmt: Stmt) -> int:
        """How many stores a statement does."""
        self._count = 0
        self.visit(stmt)
        return self._count

    def visit_for(self, loop: For) -> None:
        before, self._count = self._count, 0
        self.visit(loop.body)
        extent = loop.extent.value if type(loop.extent) is IntImm else 1
        self._count = before + self._count * extent

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._count += 1


class LoopCosts(StoreCounter):
    """Counts calls as well, as several stores each, and keeps what the loops count."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: dict[For, int] = {}
        self.outermost: list[For] = []

    def visit_for(self, loop: For) -> None:
        before, outer = self._count, self.outermost
        self.outermost = []
        super().visit_for(loop)
        self.loops[loop] = self._count - before
        self.outermost = [*outer, loop]

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._count += 1
        self.visit(store.value)

    def visit_call(self, call: Call) -> None:
        self._count += CALL
        self.visit_children(call)
