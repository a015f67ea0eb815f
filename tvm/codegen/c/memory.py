"""Loads and stores."""

from __future__ import annotations

from typing import Any

from tvm.codegen.flat_index import flat_index
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Visitor
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Var
from tvm.tir.stmt import BufferStore, DeclBuffer, Stmt

from .arithmetic import bare
from .types import TYPES
from .vectors import VectorWriter


class MemoryWriter(VectorWriter):
    """Adds buffers."""

    pointees: dict[Var, str]  # the C type of what a pointer points to, if it is declared with one
    constants: set[Var]  # pointers to constant data
    noalias: bool

    def visit_buffer_load(self, load: BufferLoad) -> str:
        item = self._item(load.buffer, load.indices, load)
        if load.predicate is not None:
            return f"({self.visit(load.predicate)} ? {item} : 0)"
        return item

    def _item(self, buffer: Buffer, indices: tuple[PrimExpr, ...], load: BufferLoad) -> str:
        type_ = TYPES[buffer.dtype.element]
        place = self._element_index(buffer, indices)
        pointer, is_declared = self._pointer(buffer)
        self.read.add(buffer.data)
        if is_declared:
            item = f"{pointer}[{bare(place)}]"
        else:
            at = f"{pointer} + {place}"
            item = self.helper(f"tvm_load_{type_.memory}", at)
        return f"({item} != 0)" if type_.kind == "bool" else item

    def visit_buffer_store(self, store: BufferStore) -> None:
        dtype = store.value.dtype
        index = flat_index(store.buffer, store.indices)
        lanes = max(dtype.lanes, index.dtype.lanes * store.buffer.dtype.lanes)
        if lanes == 1:
            value = self.visit(store.value)
            self._store(store, self._element_index(store.buffer, store.indices), value)
            return
        if self._overlaps(store, index):
            self._store_at_end(store, index, lanes)
            return
        with self.lanes(lanes):
            mask = None if store.predicate is None else self.visit(store.predicate)
            with self.code.collected() as steps:
                value = self.visit(store.value)
                self._store(store, self._element_index(store.buffer, store.indices), value)
            self._masked(mask, steps)

    def _masked(self, mask: str | None, steps: list[str]) -> None:
        if mask is None:
            self.code.lines += steps
            return
        with self.code.block(f"if ({bare(mask)})"):
            self.code.lines += steps

    def _store_at_end(self, store: BufferStore, index: PrimExpr, lanes: int) -> None:
        """Store a vector that is computed from the memory it goes to."""
        value = self.array_of(store.value)
        place = None if is_free_of_loads(index) else self.array_of(index)
        mask = None if store.predicate is None else self.array_of(store.predicate)
        scalar = store.value.dtype.lanes == 1
        with self.lanes(lanes) as lane:
            at = (
                self._element_index(store.buffer, store.indices)
                if place is None
                else f"{place}[{lane}]"
            )
            with self.code.collected() as steps:
                self._store(store, at, value if scalar else f"{value}[{lane}]")
            self._masked(None if mask is None else f"{mask}[{lane}]", steps)

    def _store(self, store: BufferStore, place: str, value: str) -> None:
        buffer = store.buffer
        type_ = TYPES[buffer.dtype.element]
        value = self.convert(value, store.value.dtype, buffer.dtype)
        pointer, is_declared = self._pointer(buffer)
        if is_declared:
            self.code.do(f"{pointer}[{bare(place)}] = {bare(value)}")
        else:
            name = f"tvm_store_{type_.memory}"
            self.code.do(self.helper(name, f"{pointer} + {place}", bare(value)))

    def _overlaps(self, store: BufferStore, index: PrimExpr) -> bool:
        """Whether a lane that is stored may be read again for another lane."""
        data = store.buffer.data
        parts = [store.value, index, *([] if store.predicate is None else [store.predicate])]
        for load in [found for part in parts for found in loads_in(part)]:
            same_place = load.buffer.dtype is store.buffer.dtype and structural_equal(
                flat_index(load.buffer, load.indices), index
            )
            is_other = load.buffer.data is not data and self.noalias
            if not is_other and not (load.buffer.data is data and same_place):
                return True
        return False

    # ---- addresses

    def _element_index(self, buffer: Buffer, indices: tuple[PrimExpr, ...]) -> str:
        """The index of the lane at hand, in scalar elements."""
        index = flat_index(buffer, indices)
        lanes = buffer.dtype.lanes
        with self.wrapping(False):
            if lanes == 1:
                return str(self.visit(index))
            if index.dtype.lanes == 1:
                return f"({self.visit(index)} * {lanes} + {self.lane})"
            inner = f"({self.lane} % {lanes})"
            with self.at_lane(f"({self.lane} / {lanes})"):
                return f"({self.visit(index)} * {lanes} + {inner})"

    def element(self, buffer: Buffer, index: PrimExpr) -> str:
        """The address of an element."""
        with self.wrapping(False):
            place = self.visit(index)
        if buffer.dtype.lanes > 1:
            place = f"({place} * {buffer.dtype.lanes})"
        pointer, _ = self._pointer(buffer)
        return f"({pointer} + {place})"

    def _pointer(self, buffer: Buffer) -> tuple[str, bool]:
        """The buffer's data as a pointer to its elements, and whether memory of that type is there.

        C may assume that objects of different types do not overlap, so others are accessed byte by byte.
        """
        wanted = TYPES[buffer.dtype.element].memory
        declared = self.pointees.get(buffer.data)
        if declared == wanted:
            self.used.add(buffer.data)
            return self.values[buffer.data], True
        return f"(({wanted}*){self.visit(buffer.data)})", declared is None


def loads_in(node: PrimExpr) -> list[BufferLoad]:
    """All loads in an expression."""
    found: list[BufferLoad] = []
    pending: list[Any] = [node]
    while pending:
        current = pending.pop()
        if type(current) is BufferLoad:
            found.append(current)
        pending.extend(current.children())
    return found


def is_free_of_loads(node: PrimExpr) -> bool:
    """Whether an expression reads no memory."""
    return not loads_in(node)


class _Mentions(Visitor):
    """Finds a variable where it is more than the memory of a buffer."""

    def __init__(self, var: Var) -> None:
        self.var = var
        self.is_found = False

    def visit_var(self, var: Var) -> None:
        self.is_found |= var is self.var

    def visit_decl_buffer(self, stmt: DeclBuffer) -> None:
        self.visit(stmt.body)


def is_mentioned(var: Var, body: Stmt) -> bool:
    """Whether a pointer is used otherwise than by loads and stores: others may get it."""
    finder = _Mentions(var)
    finder.visit(body)
    return finder.is_found
