"""Whether the host side of a function keeps its hands off the memory of a device."""

from __future__ import annotations

from tvm.ir.visitor import Visitor
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, BufferStore

CPU = 1


def verify_memory(func: PrimFunc) -> bool:
    """Whether a function accesses memory of its target's device in threads only."""
    return not memory_problems(func)


def memory_problems(func: PrimFunc) -> list[str]:
    """The names of the buffers that the host accesses though they are on a device."""
    target = func.get_attr("target")
    if target is None or target.get_target_device_type() in (CPU, 12, 14):  # also ext_dev, hexagon
        return []
    checker = HostAccessChecker({buffer.data: None for buffer in func.buffer_map.values()})
    checker.visit(func.body)
    return list(checker.found)


class HostAccessChecker(Visitor):
    """Collects accesses of arguments outside of thread-bound regions."""

    def __init__(self, pointers: dict[object, None]) -> None:
        self.pointers = pointers
        self.found: dict[str, None] = {}

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key not in ("thread_extent", "pipeline_exec_scope", "device_scope"):
            self.visit_children(attr)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._access(load.buffer)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._access(store.buffer)
        self.visit_children(store)

    def _access(self, buffer: Buffer) -> None:
        if buffer.data in self.pointers:
            self.found[buffer.name] = None
