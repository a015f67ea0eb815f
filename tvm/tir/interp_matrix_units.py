"""Matrix units in the interpreter: fragments of wmma, products of registers by mma, loads by ldmatrix.

All threads of a warp take part in each instruction. What a fragment is made of is left to the device, so each thread
has all of its elements here; the registers of ``mma`` and ``ldmatrix`` lie as PTX says. Threads number the
words of 32 bits of an operand so that a word ``w`` of thread ``t`` has elements

    of A: row t//4 + 8*(w%2), columns from e*(t%4) + 4*e*(w//2) on      (e elements in a word)
    of B: column t//4, rows from e*(t%4) + 4*e*w on
    of C: row t//4 + 8*w, columns 2*(t%4) and 2*(t%4) + 1               (a pair, of any type)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm.error import TVMError

from . import expr as e
from .interp_threads import WARP, KernelThreads, is_shared

Shape = tuple[int, int, int]
_BITS = {"fp16": 16, "float16": 16, "bf16": 16, "int8": 8, "uint8": 8, "tf32": 32}


def fragment_extents(scope: str, shape: Shape) -> tuple[int, int]:
    """The rows and columns of a fragment of a product of m by n by k."""
    m, n, k = shape
    return {"wmma.matrix_a": (m, k), "wmma.matrix_b": (k, n)}.get(scope, (m, n))


def places_of_a(thread: int, shape: Shape, elements: int) -> list[tuple[int, int]]:
    """Where the elements of a thread's registers lie in the first factor; ``elements`` are in one word."""
    m, _, k = shape
    heights = m // 8
    return [
        (thread // 4 + 8 * (w % heights), elements * (thread % 4) + i + 4 * elements * (w // heights))
        for w in range(m * k // WARP // elements)
        for i in range(elements)
    ]  # fmt: skip


def places_of_b(thread: int, shape: Shape, elements: int) -> list[tuple[int, int]]:
    """The same for the second factor."""
    _, n, k = shape
    return [
        (elements * (thread % 4) + i + 4 * elements * w, thread // 4)
        for w in range(n * k // WARP // elements)
        for i in range(elements)
    ]


def places_of_c(thread: int, shape: Shape) -> list[tuple[int, int]]:
    """The same for sums."""
    m, n, _ = shape
    pairs = range(m * n // WARP // 2)
    return [(thread // 4 + 8 * w, 2 * (thread % 4) + i) for w in pairs for i in range(2)]


class MatrixUnits(KernelThreads):
    """The part of the interpreter that runs instructions of matrix units, for one thread."""

    _fragments: dict[e.Var, Shape]
    _address: Any

    # ---- memory

    def _pointer(self, node: Any) -> tuple[e.Var, Any, int]:
        """The variable of a pointer, the elements of its memory, and the number of the one it points to."""
        if isinstance(node, e.Var):
            return node, self.memory[node].data, 0
        name = getattr(node.op, "name", "") if isinstance(node, e.Call) else ""
        if name == "tir.tvm_access_ptr":
            kind, data, offset = node.args[:3]
            first = int(self.visit(offset)) * kind.dtype.lanes
            return data, self.memory[data].of_type(kind.dtype.element), first
        if name == "tir.address_of":
            load = node.args[0]
            memory, first = self._address(load.buffer, load.indices)
            return load.buffer.data, memory.of_type(load.buffer.dtype), first
        raise TVMError(f"an instruction of a matrix unit needs a pointer to memory, got {node}")

    def _element(self, pointer: Any, offset: Any) -> tuple[e.Var, Any, int]:
        var, data, first = self._pointer(pointer)
        return var, data, first + int(self.visit(offset))

    def _read(self, var: e.Var, data: Any, places: Any) -> Any:
        self._require_inside(var, data, places)
        if self.thread is not None and is_shared(var):
            self.thread.block.memory.read(var, data, places, self.thread.number)
        return data[places]

    def _write(self, var: e.Var, data: Any, places: Any, values: Any) -> None:
        self._require_inside(var, data, places)
        if self.thread is not None and is_shared(var):
            self.thread.block.memory.write(var, data, places, values, self.thread.number)
        data[places] = values

    @staticmethod
    def _require_inside(var: e.Var, data: Any, places: Any) -> None:
        if len(places) and (places.min() < 0 or places.max() >= len(data)):
            raise TVMError(
                f"the memory {var.name} has {len(data)} elements, an instruction of a matrix unit accesses "
                f"element {places.max()}"
            )

    # ---- threads of a warp

    def _warp(self, node: e.Call, value: Any) -> list[Any]:
        """What each thread of the warp shows at an instruction, which all of them have to reach."""
        name = getattr(node.op, "name", "").removeprefix("tir.")
        if self.thread is None:
            raise TVMError(f"{name} needs the threads of a warp around it")
        first = self.thread.number // WARP * WARP
        shown = self._shown("warp", node, value)
        found = [shown[number] for number in range(first, first + WARP) if number in shown]
        if len(found) != WARP:
            raise TVMError(
                f"{name} needs the {WARP} threads of a warp, got {len(found)}",
                hint="bind a loop of 32 to threadIdx.x",
            )
        return found

    def _lane(self) -> int:
        return 0 if self.thread is None else self.thread.number % WARP

    # ---- wmma

    def _fragment(self, node: e.Call, at: int, shape: Shape | None = None) -> Any:
        """The elements of a fragment as rows and columns, which this thread has all of."""
        var, index = node.args[at], int(self.visit(node.args[at + 4 if shape else at + 1]))
        if not isinstance(var, e.Var):
            raise TVMError(f"a fragment needs to be a pointer variable, got {var}")
        if shape is not None:
            self._fragments[var] = shape
        elif var not in self._fragments:
            raise TVMError(f"the fragment {var.name} is used before it is filled or loaded")
        scope = str(getattr(var.type_annotation, "storage_scope", ""))
        rows, columns = fragment_extents(scope, self._fragments[var])
        data = self.memory[var].data
        start = index * rows * columns
        if not 0 <= start <= len(data) - rows * columns:
            count = len(data) // (rows * columns)
            raise TVMError(f"{var.name} has {count} fragments, got fragment {index}")
        return data[start : start + rows * columns].reshape(rows, columns)

    def _shape_of(self, node: e.Call) -> Shape:
        m, n, k = [int(self.visit(arg)) for arg in node.args[1:4]]
        return m, n, k

    def _tile_places(self, node: e.Call, extents: Any) -> tuple[e.Var, Any, Any]:
        """The memory that a fragment is loaded from or stored to, and the places of its elements."""
        var, data, first = self._pointer(node.args[5])
        stride, layout = int(self.visit(node.args[6])), self.visit(node.args[7])
        rows, columns = np.indices(extents)
        by_rows = layout == "row_major"
        return var, data, first + (rows * stride + columns if by_rows else columns * stride + rows)

    def _call_tvm_fill_fragment(self, node: e.Call) -> Any:
        self._warp(node, None)
        self._fragment(node, 0, self._shape_of(node))[:] = self.visit(node.args[5])
        return 0

    def _call_tvm_load_matrix_sync(self, node: e.Call) -> Any:
        self._warp(node, None)
        fragment = self._fragment(node, 0, self._shape_of(node))
        var, data, places = self._tile_places(node, fragment.shape)
        fragment[:] = self._read(var, data, places.reshape(-1)).reshape(places.shape)
        return 0

    def _call_tvm_store_matrix_sync(self, node: e.Call) -> Any:
        self._warp(node, None)
        fragment = self._fragment(node, 0, self._shape_of(node))
        var, data, places = self._tile_places(node, fragment.shape)
        mine = slice(self._lane(), None, WARP)  # which thread stores what is left to the device
        self._write(var, data, places.reshape(-1)[mine], fragment.reshape(-1)[mine])
        return 0

    def _call_tvm_mma_sync(self, node: e.Call) -> Any:
        self._warp(node, None)
        a, b, c = [self._fragment(node, at) for at in (2, 4, 6)]
        target, added = node.args[0], node.args[6]
        if isinstance(target, e.Var) and isinstance(added, e.Var):
            self._fragments.setdefault(target, self._fragments[added])
        self._fragment(node, 0)[:] = _product(a, b, c)
        return 0

    # ---- registers

    def _call_ptx_ldmatrix(self, node: e.Call) -> Any:
        """Tiles of 8 by 8 elements of 16 bits; a thread tells where a row of one of them begins."""
        transposed, count = bool(self.visit(node.args[0])), int(self.visit(node.args[1]))
        var, data, first = self._element(*node.args[5:7])
        rows = self._warp(node, first * data.itemsize)
        lane = self._lane()
        words = []
        for tile in range(count):
            for half in range(2):
                row, column = lane // 4, 2 * (lane % 4) + half
                if transposed:
                    row, column = column, row
                words.append(rows[8 * tile + row] + 2 * column)
        elements = 2 // data.itemsize or 1
        starts = np.asarray(words) // data.itemsize
        places = (starts[:, None] + np.arange(elements)).reshape(-1)
        self._put_registers(node, 3, self._read(var, data, places))
        return 0

    def _put_registers(self, node: e.Call, at: int, values: Any) -> None:
        var, data, first = self._element(*node.args[at : at + 2])
        self._write(var, data, first + np.arange(len(values)), values)

    def _operand(self, node: e.Call, at: int, extents: Any, places: Callable[[int], Any]) -> Any:
        """A factor or sum, of the registers of all threads."""
        var, data, first = self._element(*node.args[at : at + 2])
        count = len(places(0))
        shown = self._warp(node, self._read(var, data, first + np.arange(count)).copy())
        whole = np.zeros(extents, data.dtype)
        for lane, values in enumerate(shown):
            for place, value in zip(places(lane), values, strict=True):
                whole[place] = value
        return whole

    def _call_ptx_mma(self, node: e.Call) -> Any:
        text, a_layout, b_layout, *names = [self.visit(arg) for arg in node.args[:6]]
        m, n, k = shape = _shape(text)
        bits = _BITS.get(names[0])
        if bits is None or names[0] != names[1] or (a_layout, b_layout) != ("row", "col"):
            raise TVMError(
                f"the interpreter has no product {text} of {names[0]} by {names[1]}, {a_layout} by {b_layout}"
            )
        a = self._operand(node, 6, (m, k), lambda lane: places_of_a(lane, shape, 32 // bits))
        b = self._operand(node, 8, (k, n), lambda lane: places_of_b(lane, shape, 32 // bits))
        c = self._operand(node, 10, (m, n), lambda lane: places_of_c(lane, shape))
        result = _product(a, b, c)
        mine = [result[place] for place in places_of_c(self._lane(), shape)]
        self._put_registers(node, 10, np.asarray(mine, c.dtype))
        return 0

    def _own_part(self, node: e.Call, at: int, count: int) -> tuple[e.Var, Any, Any]:
        """This thread's registers; memory of a warp has those of all of its threads."""
        var, data, first = self._element(*node.args[at : at + 2])
        scope = str(getattr(var.type_annotation, "storage_scope", ""))
        first += self._lane() * count if scope == "warp" else 0
        return var, data, first + np.arange(count)

    def _call_mma_fill(self, node: e.Call) -> Any:
        count = int(self.visit(node.args[0]))
        self._write(*self._own_part(node, 1, count), 0)
        return 0

    def _call_mma_store(self, node: e.Call) -> Any:
        """A tile of 16 by 16: two products beside each other."""
        rows, columns = [int(self.visit(arg)) for arg in node.args[:2]]
        if (rows, columns) != (16, 16):
            raise TVMError(f"mma_store takes tiles of 16 x 16, got {rows} x {columns}")
        var, data, first = self._pointer(node.args[2])
        values = self._read(*self._own_part(node, 3, 8))
        stride = int(self.visit(node.args[5]))
        places = [
            first + row * stride + column + 8 * half
            for half in range(2)
            for row, column in places_of_c(self._lane(), (16, 8, 16))
        ]
        self._write(var, data, np.asarray(places), values)
        return 0

    # ---- copies that go on by themselves

    def _call_ptx_cp_async(self, node: e.Call) -> Any:
        """Copies at once: a program that waits where it must sees the same."""
        (to, target, at), (var, source, first) = [
            self._element(*node.args[i : i + 2]) for i in (0, 2)
        ]
        count = int(self.visit(node.args[4])) // target.itemsize
        chosen = len(node.args) <= 5 or bool(self.visit(node.args[5]))
        values = self._read(var, source, first + np.arange(count)) if chosen else 0
        self._write(to, target, at + np.arange(count), values)
        return 0

    def _call_ptx_commit_group(self, node: e.Call) -> Any:
        """Nothing is under way."""
        return 0

    _call_ptx_wait_group = _call_ptx_commit_group


def _shape(text: str) -> Shape:
    m, n, k = [int(extent) for extent in re.findall(r"\d+", text)]
    return m, n, k


def _product(a: Any, b: Any, c: Any) -> Any:
    """c + a * b, summed in more digits than the result has."""
    wide = np.int64 if c.dtype.kind in "iu" else np.float64 if c.itemsize > 4 else np.float32
    return (c.astype(wide) + a.astype(wide) @ b.astype(wide)).astype(c.dtype)
