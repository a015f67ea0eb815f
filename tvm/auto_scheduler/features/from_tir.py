"""The stores of a loop-level function."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.scope import deep
from tvm.tir import expr, stmt
from tvm.tir.buffer import Buffer
from tvm.tir.function import PrimFunc

from ..affine import AffineForm
from ..indices import LANE, parse_value
from ..loops import ANNOTATION_NAMES, Annotation
from .operations import OperationCounter
from .program import Access, AccessType, Program, Store

_KINDS = {
    "parallel": Annotation.PARALLEL,
    "vectorized": Annotation.VECTORIZE,
    "unrolled": Annotation.UNROLL,
}
_THREADS = {name: Annotation(place) for place, name in enumerate(ANNOTATION_NAMES)}


@deep
def program_of_function(func: PrimFunc) -> Program:
    """The stores of a function, in their order.

    Parameters
    ----------
    func : PrimFunc
        Lowered or not.
    """
    finder = _StoreFinder()
    finder.visit(func.body)
    return finder.program


class _StoreFinder(Visitor):
    def __init__(self) -> None:
        self.program = Program({}, {})
        self.values: dict[Any, AffineForm] = {}  # of variables
        self.loops: list[int] = []
        self.buffers: dict[Any, int] = {}
        self.allocated: dict[int, tuple[int, float]] = {}
        self.unroll_step = 0

    def number(self, buffer: Buffer) -> int:
        return self.buffers.setdefault(buffer.data, len(self.buffers))

    def around(self) -> float:
        product = 1.0
        for loop in self.loops:
            product *= self.program.extents[loop]
        return product

    def visit_for(self, loop: stmt.For) -> None:
        kind = loop.kind.name.lower()
        annotation = _KINDS.get(kind, Annotation.NONE)
        if loop.thread_binding is not None:
            annotation = _THREADS.get(loop.thread_binding.thread_tag, annotation)
        self.enter(loop.loop_var, loop.min, loop.extent, annotation, loop.body)

    def enter(
        self, var: Any, start: PrimExpr | int, extent: PrimExpr, kind: Annotation, body: Any
    ) -> None:
        """Visit the body of a loop."""
        number = len(self.program.extents)
        count = max(int(extent.value), 0) if isinstance(extent, expr.IntImm) else 1
        first = int(start.value) if isinstance(start, expr.IntImm) else 0
        self.program.extents[number] = count
        self.program.kinds[number] = kind
        self.values[var] = AffineForm(first, {number: 1} if count != 1 else {})
        if count != 1:
            self.loops.append(number)
        self.visit(body)
        if count != 1:
            self.loops.pop()

    def visit_attr_stmt(self, attr: stmt.AttrStmt) -> None:
        if attr.attr_key in ("thread_extent", "virtual_thread") and isinstance(
            attr.node, expr.IterVar
        ):
            tag = "vthread" if attr.attr_key == "virtual_thread" else attr.node.thread_tag
            kind = _THREADS.get(tag, Annotation.NONE)
            self.enter(attr.node.var, 0, attr.value, kind, attr.body)
            return
        before = self.unroll_step
        if attr.attr_key == "pragma_auto_unroll_max_step":
            self.unroll_step = int(getattr(attr.value, "value", 0))
        self.visit_children(attr)
        self.unroll_step = before

    def visit_allocate(self, allocate: stmt.Allocate) -> None:
        size = max(int(allocate.dtype.bits) // 8, 1)
        for extent in allocate.extents:
            size *= int(getattr(extent, "value", 1))
        number = self.buffers.setdefault(allocate.buffer_var, len(self.buffers))
        self.allocated[number] = (size, self.around())
        self.visit_children(allocate)

    def visit_buffer_realize(self, realize: stmt.BufferRealize) -> None:
        size = max(int(realize.buffer.dtype.bits) // 8, 1)
        for bound in realize.bounds:
            size *= int(getattr(bound.extent, "value", 1))
        self.allocated[self.number(realize.buffer)] = (size, self.around())
        self.visit_children(realize)

    def visit_buffer_store(self, store: stmt.BufferStore) -> None:
        lanes = int(store.value.dtype.lanes)
        if lanes == 1:
            self.add_store(store)
            return
        number = len(self.program.extents)
        self.program.extents[number] = lanes
        self.program.kinds[number] = Annotation.VECTORIZE
        self.values[LANE] = AffineForm(0, {number: 1})
        self.loops.append(number)
        self.add_store(store)
        self.loops.pop()

    def add_store(self, store: stmt.BufferStore) -> None:
        """Add a store that is in all of its loops."""
        reads = _Reads()
        reads.visit(store.value)
        number = self.number(store.buffer)
        own = Access(
            number, AccessType.WRITE, [self.forms(store.buffer, store.indices)],
            self.shape(store.buffer), self.width(store.buffer),
        )  # fmt: skip
        accesses = {number: own}
        for load in reads.found:
            source = self.number(load.buffer)
            forms = self.forms(load.buffer, load.indices)
            if source not in accesses:
                accesses[source] = Access(
                    source, AccessType.READ, [forms], self.shape(load.buffer),
                    self.width(load.buffer),
                )  # fmt: skip
                continue
            found = accesses[source]
            found.kind = AccessType.READ_WRITE if found is own else found.kind
            if len(forms) == len(found.shape):
                found.indices.append(forms)
        counter = OperationCounter()
        counter.visit(store.value)
        made = Store(number, list(self.loops), list(accesses.values()), counter.counts)
        made.auto_unroll_max_step = self.unroll_step
        made.allocated = self.allocated.get(number)
        self.program.stores.append(made)

    def forms(self, buffer: Buffer, indices: Any) -> list[AffineForm]:
        """Indices over the loops around."""
        shape = self.shape(buffer)
        return [
            parse_value(index, self.values, extent)
            for index, extent in zip(indices, shape, strict=True)
        ]

    def shape(self, buffer: Buffer) -> list[int]:
        return [int(getattr(dim, "value", 1)) for dim in buffer.shape]

    def width(self, buffer: Buffer) -> int:
        return max(int(buffer.dtype.bits) // 8, 1)


class _Reads(Visitor):
    """The loads of an expression."""

    def __init__(self) -> None:
        self.found: list[expr.BufferLoad] = []

    def visit_buffer_load(self, load: expr.BufferLoad) -> None:
        self.found.append(load)
        self.visit_children(load)
