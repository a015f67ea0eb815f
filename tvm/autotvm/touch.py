"""What each loop of a lowered program does: iterations, arithmetic, and the elements that it touches.

Of each access a loop knows the stride with which it steps through the buffer, how many elements the
iterations inside touch, and how often each of them is used again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir import expr, stmt
from tvm.tir.expr import IntImm, Var
from tvm.tir.stmt import ForKind

# what a loop can be, in the order of its one-hot feature
ANNOTATIONS = (
    "blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z",
    "unrolled", "vectorized", "parallel", "serial", "vthread",
)  # fmt: skip
_KINDS = {
    ForKind.UNROLLED: "unrolled",
    ForKind.VECTORIZED: "vectorized",
    ForKind.PARALLEL: "parallel",
    ForKind.SERIAL: "serial",
}
_CONCURRENT = ("blockIdx", "threadIdx", "vthread", "parallel")


@dataclass
class Touch:
    """One access, as seen from a loop around it."""

    stride: float = 0  # how far one iteration steps, in elements; 0 if it stays
    mod: int = -1  # after how many values the index wraps around; -1 if it does not
    count: int = 1  # elements touched by the iterations inside
    reuse: int = 1  # how often each of them is
    thread_count: int = 0  # of these, by loops that run concurrently; 0 if this one does not
    thread_reuse: int = 0


@dataclass
class Loop:
    """One loop."""

    var: Var
    length: int
    nest_level: int  # 1 for the outermost loops
    topdown: int  # iterations of this loop and those around it, together
    annotation: str
    bottomup: int = 1  # iterations of this loop and those inside, together
    add: int = 0  # operations of all iterations
    mul: int = 0
    div: int = 0
    touches: dict[str, Touch] = field(default_factory=dict)


def loops_of(body: stmt.Stmt) -> list[Loop]:
    """The loops of a program, each before those inside."""
    extractor = _Extractor()
    extractor.visit(body)
    return extractor.loops


class _Extractor(Visitor):
    def __init__(self) -> None:
        self.loops: list[Loop] = []
        self.around: list[Loop] = []
        self.accesses: dict[str, int] = {}  # of buffers by their names
        self.in_index = False

    def visit_for(self, loop: stmt.For) -> None:
        annotation = _KINDS.get(loop.kind, "serial")
        if loop.thread_binding is not None:
            annotation = loop.thread_binding.thread_tag
        self._enter(loop.loop_var, loop.extent, annotation, loop.body)

    def visit_attr_stmt(self, attr: stmt.AttrStmt) -> None:
        if attr.attr_key in ("thread_extent", "virtual_thread"):
            self._enter(attr.node.var, attr.value, attr.node.thread_tag, attr.body)
        else:
            self.visit(attr.body)

    def _enter(self, var: Var, extent: PrimExpr, annotation: str, body: stmt.Stmt) -> None:
        length = int(extent.value) if isinstance(extent, IntImm) else 1
        above = self.around[-1].topdown if self.around else 1
        known = annotation if annotation in ANNOTATIONS else "serial"
        loop = Loop(var, length, len(self.around) + 1, above * length, known)
        self.loops.append(loop)
        self.around.append(loop)
        self.visit(body)
        self.around.pop()
        loop.bottomup *= length
        if self.around:
            self.around[-1].bottomup = max(self.around[-1].bottomup, loop.bottomup)

    def visit_buffer_store(self, store: stmt.BufferStore) -> None:
        self._touch(store.buffer, store.indices)
        self.visit(store.value)

    def visit_buffer_load(self, load: expr.BufferLoad) -> None:
        self._touch(load.buffer, load.indices)

    def _add(self, value: expr.Add | expr.Sub) -> None:
        self._count("add", value)

    def visit_mul(self, value: expr.Mul) -> None:
        self._count("mul", value)

    def _div(self, value: expr.Div | expr.Mod | expr.FloorDiv | expr.FloorMod) -> None:
        self._count("div", value)

    visit_add = visit_sub = _add
    visit_div = visit_mod = visit_floor_div = visit_floor_mod = _div

    def _count(self, what: str, value: Any) -> None:
        inside = 1
        for loop in () if self.in_index else reversed(self.around):
            inside *= loop.length
            setattr(loop, what, getattr(loop, what) + inside)
        self.visit(value.a)
        self.visit(value.b)

    def _touch(self, buffer: Any, indices: Sequence[PrimExpr]) -> None:
        pattern = _Strides(buffer, indices)
        number = self.accesses[buffer.name] = self.accesses.get(buffer.name, -1) + 1
        count, reuse = 1, 1
        together = (1, 1)  # of the loops that run concurrently
        for loop in reversed(self.around):
            stride = pattern.strides.get(loop.var, 0)
            factor = (loop.length, 1) if stride else (1, loop.length)
            count, reuse = count * factor[0], reuse * factor[1]
            touch = Touch(stride, pattern.mods.get(loop.var, -1), count, reuse)
            if loop.annotation.startswith(_CONCURRENT):
                together = (together[0] * factor[0], together[1] * factor[1])
                touch.thread_count, touch.thread_reuse = together
            loop.touches[f"{buffer.name}_{number}"] = touch
        # what is computed in an index is no arithmetic of the program, what it loads is touched
        before, self.in_index = self.in_index, True
        for index in indices:
            self.visit(index)
        self.in_index = before


class _Strides(Visitor):
    """How far the place in a buffer moves with each variable of its indices."""

    def __init__(self, buffer: Any, indices: Sequence[PrimExpr]) -> None:
        self.strides: dict[Var, float] = {}
        self.mods: dict[Var, int] = {}
        extents = [int(d.value) if isinstance(d, IntImm) else 1 for d in buffer.shape]
        for dim, index in enumerate(indices):
            self.scale: float = math.prod(extents[dim + 1 :])
            self.mod = -1
            self.visit(index)

    def visit_var(self, var: Var) -> None:
        self.strides[var] = self.strides.get(var, 0) + self.scale
        if self.mod > 0:
            self.mods[var] = self.mod

    def visit_sub(self, value: expr.Sub) -> None:
        self.visit(value.a)
        self._scaled(value.b, -1)

    def visit_mul(self, value: expr.Mul) -> None:
        factor, other = (value.a, value.b) if isinstance(value.a, IntImm) else (value.b, value.a)
        if isinstance(factor, IntImm):
            self._scaled(other, factor.value)
        else:
            self.visit_children(value)

    def visit_floor_div(self, value: expr.FloorDiv) -> None:
        if isinstance(value.b, IntImm) and value.b.value:
            self._scaled(value.a, 1 / value.b.value)
        else:
            self.visit_children(value)

    def visit_floor_mod(self, value: expr.FloorMod) -> None:
        before = self.mod
        self.mod = int(value.b.value) if isinstance(value.b, IntImm) else before
        self.visit(value.a)
        self.mod = before

    def _scaled(self, value: PrimExpr, factor: float) -> None:
        before = self.scale
        self.scale *= factor
        self.visit(value)
        self.scale = before
