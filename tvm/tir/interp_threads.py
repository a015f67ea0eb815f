"""Kernels in the interpreter: the threads of each block, the memory that they share, and what they must not do.

The threads of a block are threads of the host of which one runs at a time, in order: each until it waits for others or
ends. What happens between two barriers is remembered for each element of shared memory, so that two errors are found
that devices leave unnoticed:

* two threads access one element, one of them changing it, without a barrier between them;
* some threads wait at a barrier, others have ended or wait at another one.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.visitor import Visitor

from . import expr as e
from . import stmt as s
from .buffer import Buffer

STACK_BYTES = 32 << 20
COLLECTIVE = (
    "tir.tvm_storage_sync", "tir.tvm_thread_allreduce", "tir.tvm_warp_shuffle", "tir.tvm_warp_shuffle_up",
    "tir.tvm_warp_shuffle_down", "tir.tvm_warp_activemask", "tir.tvm_load_matrix_sync",
    "tir.tvm_store_matrix_sync", "tir.tvm_fill_fragment", "tir.tvm_mma_sync", "tir.ptx_mma",
    "tir.ptx_ldmatrix", "tir.mma_fill", "tir.mma_store",
)  # fmt: skip
WARP = 32


def is_shared(var: e.Var) -> bool:
    """Whether the threads of a block share the memory at a pointer."""
    return str(getattr(var.type_annotation, "storage_scope", "")).startswith(("shared", "warp"))


def is_of_a_warp(var: e.Var) -> bool:
    """Whether the threads of a warp share the memory at a pointer, and those of others do not."""
    return str(getattr(var.type_annotation, "storage_scope", "")) == "warp"


class ThreadAxes(Visitor):
    """The axes of blocks and threads in a kernel, and whether its threads have to do with each other."""

    def __init__(self, evaluate: Any) -> None:
        self.evaluate = evaluate
        self.extents: dict[str, int] = {}
        self.is_collective = False

    def visit_attr_stmt(self, node: s.AttrStmt) -> None:
        axis = node.node
        if node.attr_key == "thread_extent" and isinstance(axis, e.IterVar):
            self._add(axis.thread_tag, node.value)
        self.visit(node.body)

    def visit_for(self, node: s.For) -> None:
        if node.kind is s.ForKind.THREAD_BINDING and isinstance(node.thread_binding, e.IterVar):
            self._add(node.thread_binding.thread_tag, node.extent)
        self.visit_children(node)

    def _add(self, tag: str, extent: Any) -> None:
        if tag.startswith(("blockIdx", "threadIdx")) and tag not in self.extents:
            self.extents[tag] = int(self.evaluate(extent))

    def visit_allocate(self, node: s.Allocate) -> None:
        self.is_collective = self.is_collective or is_shared(node.buffer_var)
        self.visit(node.body)

    def visit_buffer_realize(self, node: s.BufferRealize) -> None:
        self.is_collective = self.is_collective or is_shared(node.buffer.data)
        self.visit(node.body)

    def visit_block(self, node: s.Block) -> None:
        shared = [is_shared(buffer.data) for buffer in node.alloc_buffers]
        self.is_collective = self.is_collective or any(shared)
        self.visit_children(node)

    def visit_call(self, node: e.Call) -> None:
        name = getattr(node.op, "name", "")
        self.is_collective = self.is_collective or name in COLLECTIVE
        self.visit_children(node)


@dataclass(slots=True)
class Touched:
    """The threads that have accessed an element since the last barrier; those that wrote, wrote one value."""

    readers: set[int] = field(default_factory=set)
    writers: set[int] = field(default_factory=set)


class SharedMemory:
    """What a block shares."""

    def __init__(self) -> None:
        self.allocations: dict[tuple[e.Var, int, int], Any] = {}  # by size and warp
        self.touched: dict[int, Touched] = {}  # by address
        self.shown: dict[int, Any] = {}  # what threads show each other

    def read(self, buffer: Buffer | e.Var, data: Any, address: Any, thread: int) -> None:
        """Remember a read; an error if another thread has written without a barrier since."""
        for place in np.atleast_1d(address).tolist():
            found = self._touched(data, place)
            if found.writers and thread not in found.writers:
                raise _race(buffer, place, thread, "reads", found.writers, "wrote")
            found.readers.add(thread)

    def write(
        self, buffer: Buffer | e.Var, data: Any, address: Any, value: Any, thread: int
    ) -> None:
        """Remember a write; threads may write one value, but not change what others have accessed."""
        places = np.atleast_1d(address).tolist()
        values = np.broadcast_to(value, len(places))
        for place, new in zip(places, values, strict=True):
            found = self._touched(data, place)
            if data[place].tobytes() != np.asarray(new, data.dtype).tobytes():
                if others := found.writers - {thread}:
                    raise _race(buffer, place, thread, "writes", others, "wrote")
                if others := found.readers - {thread}:
                    raise _race(buffer, place, thread, "writes", others, "read")
            found.writers.add(thread)

    def _touched(self, data: Any, place: int) -> Touched:
        start = data.__array_interface__["data"][0] + place * data.itemsize
        return self.touched.setdefault(start, Touched())


def _race(
    buffer: Buffer | e.Var, place: int, thread: int, does: str, others: set[int], did: str
) -> TVMError:
    return TVMError(
        f"element {place} of {buffer.name} needs a barrier between threads: thread {thread} {does} it, "
        f"thread {min(others)} {did} it before",
        hint='put T.tvm_storage_sync("shared") between the accesses, or run tir.transform.ThreadSync',
    )


class GridThread:
    """One thread of a block: an interpreter of its own on memory that is partly shared."""

    def __init__(self, block: Block, number: int, numbers: dict[str, int]) -> None:
        self.block = block
        self.number = number
        self.numbers = numbers
        self.may_run = threading.Semaphore(0)
        self.waits_for: tuple[str, Any] | None = (
            None  # a kind of group and the place in the program
        )
        self.is_done = False
        self.error: BaseException | None = None

    def wait(self, group: str, place: Any) -> None:
        """Let the others of the group come to the same place."""
        self.waits_for = (group, place)
        self.block.control.release()
        self.may_run.acquire()
        if self.block.is_stopped:
            raise _Stopped


class _Stopped(Exception):
    """The block has failed elsewhere."""


class Block:
    """The threads of one block, run one at a time."""

    def __init__(self) -> None:
        self.control = threading.Semaphore(0)
        self.memory = SharedMemory()
        self.threads: list[GridThread] = []
        self.is_stopped = False

    def run(self, body: Any) -> None:
        """Run ``body(thread)`` for each thread."""
        with _stack_size():
            hosts = [
                threading.Thread(target=self._run_one, args=(thread, body))
                for thread in self.threads
            ]
            for host in hosts:
                host.start()
        try:
            self._schedule()
        finally:
            self.is_stopped = True
            for thread in self.threads:
                if not thread.is_done:
                    thread.may_run.release()
            for host in hosts:
                host.join()

    def _run_one(self, thread: GridThread, body: Any) -> None:
        thread.may_run.acquire()
        try:
            if not self.is_stopped:
                body(thread)
        except _Stopped:
            pass
        except BaseException as error:
            thread.error = error
        thread.is_done = True
        self.control.release()

    def _schedule(self) -> None:
        ready = list(self.threads)
        while ready:
            for thread in ready:
                thread.may_run.release()
                self.control.acquire()
                if thread.error is not None:
                    raise thread.error
            ready = self._released()

    def _released(self) -> list[GridThread]:
        """The threads of complete groups, all of which wait at one place."""
        waiting = [thread for thread in self.threads if not thread.is_done]
        warps: dict[int, list[GridThread]] = {}
        for thread in waiting:
            warps.setdefault(thread.number // WARP, []).append(thread)
        found: list[GridThread] = []
        for warp in warps.values():
            places = {id(t.waits_for[1]) for t in warp if t.waits_for and t.waits_for[0] == "warp"}
            if len(places) == 1 and all([t.waits_for and t.waits_for[0] == "warp" for t in warp]):
                found += warp
        if found or not waiting:
            return found
        self._require_one_place(waiting)
        self.memory.touched.clear()
        return waiting

    def _require_one_place(self, waiting: list[GridThread]) -> None:
        places = {id(t.waits_for[1]): t for t in waiting if t.waits_for is not None}
        missing = [thread for thread in self.threads if thread.is_done]
        if len(places) == 1 and not missing:
            return
        first = waiting[0]
        other = missing[0] if missing else list(places.values())[1]
        where = "has ended" if missing else "waits at another one"
        raise TVMError(
            f"a barrier needs all threads of the block: thread {first.number} waits, "
            f"thread {other.number} {where}",
            hint="put the barrier outside of conditions on the thread",
        )


class KernelThreads:
    """The part of the interpreter that runs kernels: one interpreter is one thread."""

    env: dict[e.Var, Any]
    memory: dict[e.Var, Any]
    thread: GridThread | None = None
    visit: Any
    _arguments: Any

    def starts_kernel(self, node: s.Stmt) -> bool:
        """Run a kernel whose threads have to do with each other; False for others and inside of one."""
        if self.thread is not None:
            return False
        axes = ThreadAxes(self.visit)
        axes.visit(node)
        if not axes.is_collective:
            return False
        self._run_grid(node, axes.extents)
        return True

    def _run_grid(self, node: s.Stmt, extents: dict[str, int]) -> None:
        grid = {tag: extent for tag, extent in extents.items() if tag.startswith("blockIdx")}
        tags = ("threadIdx.z", "threadIdx.y", "threadIdx.x")
        ranges = [range(extents.get(tag, 1)) for tag in tags]
        for of_block in itertools.product(*[range(extent) for extent in grid.values()]):
            numbers = dict(zip(grid, of_block, strict=True))
            block = Block()
            block.threads = [
                GridThread(block, number, {**numbers, **dict(zip(tags, indices, strict=True))})
                for number, indices in enumerate(itertools.product(*ranges))
            ]
            block.run(lambda thread: self._as_thread(thread).visit(node))

    def _as_thread(self, thread: GridThread) -> KernelThreads:
        machine = type(self)()
        machine.env, machine.memory = dict(self.env), dict(self.memory)
        machine.thread = thread
        return machine

    def thread_index(self, tag: str) -> int | None:
        """The index of this thread along an axis, None outside of kernels."""
        return None if self.thread is None else self.thread.numbers.get(tag, 0)

    def shared_data(self, var: e.Var, size: int, allocate: Callable[[], Any]) -> Any:
        """New elements; in shared memory those of the block or warp, made by the first thread that comes here.

        A later iteration has the same elements, wherever its region begins, unless it needs more or fewer.
        """
        if self.thread is None or not is_shared(var):
            return allocate()
        known = self.thread.block.memory.allocations
        warp = self.thread.number // WARP if is_of_a_warp(var) else 0
        if (var, size, warp) not in known:
            known[var, size, warp] = allocate()
        return known[var, size, warp]

    def note_read(self, buffer: Buffer, data: Any, address: Any) -> None:
        """A load, before it happens."""
        if self.thread is not None and is_shared(buffer.data):
            self.thread.block.memory.read(buffer, data, address, self.thread.number)

    def note_write(self, buffer: Buffer, data: Any, address: Any, value: Any) -> None:
        """A store, before it happens."""
        if self.thread is not None and is_shared(buffer.data):
            self.thread.block.memory.write(buffer, data, address, value, self.thread.number)

    # ---- threads together

    def _call_tvm_storage_sync(self, node: e.Call) -> Any:
        if self.thread is not None:
            scope = node.args[0]
            is_warp = isinstance(scope, e.StringImm) and scope.value == "warp"
            self.thread.wait("warp" if is_warp else "block", node)
        return 0

    def _shown(self, group: str, node: e.Call, value: Any) -> dict[int, Any]:
        """What all threads of the group show at this place."""
        assert self.thread is not None
        shown = self.thread.block.memory.shown
        shown[self.thread.number] = value
        self.thread.wait(group, node)
        found = dict(shown)
        self.thread.wait(group, node.op)
        return found

    def _call_tvm_warp_activemask(self, node: e.Call) -> Any:
        return (1 << WARP) - 1

    def _shuffled(self, node: e.Call, lane_of: Any) -> Any:
        if self.thread is None:
            raise TVMError("a warp shuffle needs threads around it")
        _, value, argument, width, _ = [self.visit(arg) for arg in node.args]
        found = self._shown("warp", node, value)
        number = self.thread.number
        lane, start = number % width, number // width * width
        wanted = start + lane_of(lane, int(argument))
        # beyond the part of the warp, and of threads that are not there, it is the thread's own
        inside = start <= wanted < start + width and wanted in found
        return found[wanted] if inside else value

    def _call_tvm_warp_shuffle(self, node: e.Call) -> Any:
        width = int(self.visit(node.args[3]))
        return self._shuffled(node, lambda lane, other: other % width)

    def _call_tvm_warp_shuffle_up(self, node: e.Call) -> Any:
        return self._shuffled(node, lambda lane, distance: lane - distance)

    def _call_tvm_warp_shuffle_down(self, node: e.Call) -> Any:
        return self._shuffled(node, lambda lane, distance: lane + distance)

    def _call_atomic_add(self, node: e.Call) -> Any:
        """Threads run one at a time here, so that nothing comes between load and store."""
        target = node.args[0]
        load = target.args[0] if isinstance(target, e.Call) and target.args else None
        if not isinstance(load, e.BufferLoad):
            raise TVMError("atomic_add needs the address of an element")
        memory, address = self._address(load.buffer, load.indices)  # type: ignore[attr-defined]
        data = memory.of_type(load.buffer.dtype)
        before = data[address]
        data[address] = before + self.visit(node.args[1])
        return before


@contextmanager
def _stack_size() -> Iterator[None]:
    """Threads that are started inside can recurse as deep as programs are."""
    before = threading.stack_size(STACK_BYTES)
    try:
        yield
    finally:
        threading.stack_size(before)
