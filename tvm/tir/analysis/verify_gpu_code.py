"""Whether the kernels of a function keep within what a GPU allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm.error import TVMError, suggest
from tvm.ir.visitor import Visitor
from tvm.tir.expr import BufferLoad, IntImm, IterVar
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AttrStmt, BufferStore, For, ForKind

LIMITS = (
    "max_local_memory_per_block", "max_shared_memory_per_block", "max_threads_per_block",
    "max_thread_x", "max_thread_y", "max_thread_z", "max_vthread", "max_vector_bytes", "max_kernels",
)  # fmt: skip


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, Any]) -> bool:
    """Whether a function's kernels keep within limits.

    Parameters
    ----------
    func : PrimFunc
    constraints : dict of str to int
        ``max_threads_per_block``, ``max_shared_memory_per_block``, ``max_thread_x``, ...
    """
    for name in constraints:
        if name not in LIMITS:
            raise TVMError(
                f"verify_gpu_code knows the limits {', '.join(LIMITS)}, got {name!r}",
                hint=suggest(name, LIMITS),
            )
    limits = {name: int(value) for name, value in constraints.items()}
    usage = KernelUsage()
    usage.visit(func.body)
    usage.close()
    return all([usage.peak.get(name, 0) <= limit for name, limit in limits.items()])


class KernelUsage(Visitor):
    """Measures each kernel: what begins with the outermost thread axis."""

    def __init__(self) -> None:
        self.peak: dict[str, int] = {}
        self.axes: dict[str, int] = {}
        self.depth = 0
        self.memory = {"local": 0, "shared": 0}
        self.vthreads = 1

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key not in ("thread_extent", "virtual_thread"):
            self.visit(attr.body)
            return
        if attr.attr_key == "thread_extent" and self.depth == 0:
            self.count("max_kernels", self.peak.get("max_kernels", 0) + 1)
        self._axis(attr.node, attr.value)
        self.depth += 1
        self.visit(attr.body)
        self.depth -= 1
        if self.depth == 0:
            self.close()

    def visit_for(self, loop: For) -> None:
        if loop.kind is ForKind.THREAD_BINDING and loop.thread_binding is not None:
            self._axis(loop.thread_binding, loop.extent)
        if loop.kind is ForKind.VECTORIZED and isinstance(loop.extent, IntImm):
            self._vector(loop.extent.value, loop)
        self.visit_children(loop)

    def visit_allocate(self, alloc: Allocate) -> None:
        kind = getattr(alloc.buffer_var.type_annotation, "storage_scope", "")
        for scope in self.memory:
            if kind.startswith(scope):
                self.memory[scope] += (alloc.constant_size() or 0) * alloc.dtype.itemsize
        self.count("max_vector_bytes", alloc.dtype.itemsize if alloc.dtype.lanes > 1 else 0)
        self.visit(alloc.body)

    def visit_buffer_load(self, load: BufferLoad) -> None:
        if load.dtype.lanes > 1:
            self.count("max_vector_bytes", load.dtype.itemsize)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        if store.value.dtype.lanes > 1:
            self.count("max_vector_bytes", store.value.dtype.itemsize)
        self.visit_children(store)

    def count(self, name: str, value: int) -> None:
        """Remember the greatest value."""
        self.peak[name] = max(self.peak.get(name, 0), value)

    def close(self) -> None:
        """The end of a kernel."""
        threads = 1
        for tag, extent in self.axes.items():
            threads *= extent
            self.count(f"max_thread_{tag[-1]}", extent)
        self.count("max_threads_per_block", threads)
        self.count("max_vthread", self.vthreads)
        for scope, nbytes in self.memory.items():
            self.count(f"max_{scope}_memory_per_block", nbytes)
        self.axes, self.vthreads = {}, 1
        self.memory = dict.fromkeys(self.memory, 0)

    def _axis(self, axis: object, extent: object) -> None:
        if not isinstance(axis, IterVar) or not isinstance(extent, IntImm):
            return
        if axis.thread_tag.startswith("threadIdx"):
            self.axes[axis.thread_tag] = extent.value
        elif axis.thread_tag.startswith(("vthread", "cthread")):
            self.vthreads *= extent.value

    def _vector(self, lanes: int, loop: For) -> None:
        widest = WidestElement()
        widest.visit(loop.body)
        self.count("max_vector_bytes", lanes * widest.nbytes)


class WidestElement(Visitor):
    """The largest element that is read or written."""

    def __init__(self) -> None:
        self.nbytes = 0

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.nbytes = max(self.nbytes, load.dtype.itemsize)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.nbytes = max(self.nbytes, store.value.dtype.itemsize)
        self.visit_children(store)
