"""When allocations of a model are in use, through all functions that its main function calls.

Time is counted along the program's text: an allocation is in use from its first mention to its
last; one that a loop mentions and that lives outside of it is in use during the whole loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.visitor import Visitor
from tvm.tir.expr import BufferLoad, Call, StringImm, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AllocateConst, BufferStore, For, ForKind, While
from tvm.tir.usmp.utils import CANDIDATES, INPUT, OUTPUT, BufferInfo

Interval = tuple[int, int]
Allocation = Allocate | AllocateConst
_ALIGNMENT = 16  # bytes, where the program's builder does not say


@dataclass(frozen=True)
class BufferInfoAnalysis:
    """The allocations with pools to choose from, and the most bytes that are in use at one time.

    Constants, which are in use all the time, are not counted.
    """

    buffer_info_stmts: dict[BufferInfo, Allocation]
    memory_pressure: int


def extract_buffer_info(
    main_func: PrimFunc, mod: IRModule, keep_arguments: bool = False
) -> BufferInfoAnalysis:
    """The allocations that are annotated with ``candidate_memory_pools``, and their conflicts.

    Those right inside of parallel loops are left out: iterations need memory of their own.

    Parameters
    ----------
    main_func : PrimFunc
        Where the program starts.
    mod : IRModule
        The functions that it calls, by name.
    keep_arguments : bool
        Arguments of a call are in use during all of it, rather than from the callee's first mention
        to its last: functions compiled under ``tir.noalias`` may not be given memory that overlaps.
    """
    functions = {
        str(func.get_attr("global_symbol") or gvar.name_hint): func
        for gvar, func in mod.functions.items()
        if isinstance(func, PrimFunc)
    }
    lives = _Lives(functions, keep_arguments)
    lives.visit(main_func.body)
    intervals = {
        info: _extended(lives.intervals.get(info, []), statement, lives.now)
        for info, statement in lives.statements.items()
    }
    constants = [b for b, stmt in lives.statements.items() if isinstance(stmt, AllocateConst)]
    pressure = _set_conflicts(intervals) - sum([constant.size for constant in constants])
    return BufferInfoAnalysis(lives.statements, pressure)


def _extended(spans: list[Interval], statement: Allocation, end: int) -> list[Interval]:
    """When an allocation is in use, before and after the run included."""
    if isinstance(statement, AllocateConst):
        return [(0, end)]  # code and constants stay
    if INPUT in statement.annotations:
        return [(0, spans[-1][1] if spans else 0)]
    if OUTPUT in statement.annotations:
        return [(spans[0][0] if spans else end, end)]
    return spans


@dataclass
class _Instance:
    """An allocation during one run of its body."""

    info: BufferInfo
    first: int = -1
    last: int = -1
    has_ended: bool = False


@dataclass
class _Loop:
    start: int
    is_parallel: bool
    touched: dict[int, _Instance] = field(default_factory=dict)  # by identity


class _Lives(Visitor):
    """Walks the program in the order of execution."""

    def __init__(self, functions: dict[str, PrimFunc], keep_arguments: bool) -> None:
        self.functions = functions
        self.keep_arguments = keep_arguments
        self.now = 0
        self.statements: dict[BufferInfo, Allocation] = {}
        self.intervals: dict[BufferInfo, list[Interval]] = {}
        self.known: dict[int, BufferInfo] = {}  # by identity of the statement
        self.live: dict[Var, _Instance] = {}
        self.loops: list[_Loop] = []
        self.names: Counter[str] = Counter()

    def visit_allocate(self, alloc: Allocate) -> None:
        self._allocation(alloc)

    def visit_allocate_const(self, alloc: AllocateConst) -> None:
        self._allocation(alloc)

    def _allocation(self, alloc: Allocation) -> None:
        pools = alloc.annotations.get(CANDIDATES) if alloc.annotations else None
        count = alloc.constant_size()
        is_shared = bool(self.loops) and self.loops[-1].is_parallel
        if not pools or count is None or is_shared:
            self.visit(alloc.body)
            return
        info = self.known.get(id(alloc))
        if info is None:
            name = self._unique(alloc.buffer_var.name)
            info = BufferInfo(name, count * alloc.dtype.itemsize, pools, _ALIGNMENT)
            self.known[id(alloc)] = info
            self.statements[info] = alloc
        instance = self.live[alloc.buffer_var] = _Instance(info)
        self.visit(alloc.body)
        del self.live[alloc.buffer_var]
        instance.has_ended = True
        if instance.first >= 0:
            self.intervals.setdefault(info, []).append((instance.first, instance.last))

    def _unique(self, name: str) -> str:
        """The name; with a number behind it from the second allocation that has it."""
        self.names[name] += 1
        return name if self.names[name] == 1 else f"{name}{self.names[name]}"

    def visit_for(self, loop: For) -> None:
        self._loop(loop)

    def visit_while(self, loop: While) -> None:
        self._loop(loop)

    def _loop(self, loop: For | While) -> None:
        is_parallel = isinstance(loop, For) and loop.kind is ForKind.PARALLEL
        self.loops.append(_Loop(self._tick(), is_parallel))
        self.visit_children(loop)
        done = self.loops.pop()
        end = self._tick()
        for instance in done.touched.values():
            if not instance.has_ended:
                instance.first = min(instance.first, done.start)
                instance.last = max(instance.last, end)

    def visit_var(self, var: Var) -> None:
        instance = self.live.get(var)
        if instance is None:
            return
        now = self._tick()
        instance.first = now if instance.first < 0 else instance.first
        instance.last = now
        for loop in self.loops:
            loop.touched[id(instance)] = instance

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.visit_var(load.buffer.data)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.visit_children(store)
        self.visit_var(store.buffer.data)

    def visit_call(self, call: Call) -> None:
        callee = self._callee(call)
        if callee is None:
            self.visit_children(call)
        elif self.keep_arguments:
            self.visit_children(call)
            self.visit(callee.body)
            self.visit_children(call)
        else:
            self._visit_callee(callee, _arguments(call))

    def _visit_callee(self, callee: PrimFunc, arguments: Sequence[Any]) -> None:
        """Visit a function whose parameters stand for what it is given."""
        around = self.live
        self.live = dict(around)
        # others may follow the parameters, such as a device
        for param, argument in zip(callee.params, arguments, strict=False):
            instance = around.get(argument) if isinstance(argument, Var) else None
            if instance is None:
                self.visit(argument)
                continue
            self.live[param] = instance
            if (buffer := callee.buffer_map.get(param)) is not None:
                self.live[buffer.data] = instance
        self.visit(callee.body)
        self.live = around

    def _callee(self, call: Call) -> PrimFunc | None:
        if isinstance(call.op, GlobalVar):
            return self.functions.get(call.op.name_hint)
        name = call.args[0] if call.args else None
        return self.functions.get(name.value) if isinstance(name, StringImm) else None

    def _tick(self) -> int:
        self.now += 1
        return self.now


def _share_a_pool(one: BufferInfo, other: BufferInfo) -> bool:
    return any([pool.same_as(p) for pool in one.pool_candidates for p in other.pool_candidates])


def _arguments(call: Call) -> Sequence[Any]:
    """What the callee's parameters are given; calls by name have the name in front."""
    return call.args if isinstance(call.op, GlobalVar) else call.args[1:]


def _set_conflicts(intervals: dict[BufferInfo, list[Interval]]) -> int:
    """Record which allocations are in use together; the most bytes in use at one time."""
    events: list[tuple[int, int, BufferInfo]] = []
    for info, spans in intervals.items():
        events += [(first, 0, info) for first, _ in spans]
        events += [(last, 1, info) for _, last in spans]
    events.sort(key=lambda event: event[:2])  # what begins where another ends meets it
    active: dict[BufferInfo, int] = {}
    conflicts: dict[BufferInfo, dict[BufferInfo, None]] = {info: {} for info in intervals}
    pressure = 0
    for _, is_end, info in events:
        if is_end:
            active[info] -= 1
            if not active[info]:
                del active[info]
            continue
        for other in active:
            if other is not info and _share_a_pool(info, other):
                conflicts[info][other] = None
                conflicts[other][info] = None
        active[info] = active.get(info, 0) + 1
        pressure = max(pressure, sum([other.size for other in active]))
    for info, others in conflicts.items():
        info.set_conflicts(list(others))
    return pressure
