"""Which loops LLVM is told to open, and which to leave closed.

Left to itself it opens what is short, and each copy costs its time. That pays for sums of few products;
where the iterations have nothing in common the loop is as fast closed.
"""

from __future__ import annotations

from collections.abc import Iterator

from tvm.arith import detect_linear_equation
from tvm.arith.pattern import uses
from tvm.tir.expr import BufferLoad, Call, IntImm
from tvm.tir.stmt import BufferStore, For, ForKind, Stmt
from tvm.tir.transform.common import constant_extent, contains

from .failure import IF_THEN_ELSE

# vector stores of an iteration from which on the counter does not matter
_MANY_STORES = 4
# iterations from which on LLVM does not open a loop as a whole, which may decide its conditions
_LONG = 17


def unroll_hint(loop: For) -> str | None:
    """LLVM's metadata for a loop, None where it decides itself."""
    if loop.kind is ForKind.UNROLLED:
        return "llvm.loop.unroll.enable"
    if _is_row(loop) or _is_copy(loop) or _is_line(loop) or _is_choice(loop):
        return "llvm.loop.unroll.disable"
    return None


def _is_row(loop: For) -> bool:
    """Whether a short loop stores neighbouring elements: vectors, unless LLVM opens it before."""
    store, extent = loop.body, loop.extent
    if type(extent) is not IntImm or type(store) is not BufferStore:
        return False
    if not 16 <= extent.value <= 64 or len(store.indices) != 1:
        return False
    step = detect_linear_equation(store.indices[0], [loop.loop_var])
    return bool(step) and type(step[0]) is IntImm and step[0].value == 1


def _is_copy(loop: For) -> bool:
    """Whether a loop only moves vectors: opened, it is no faster, and hundreds are much text."""
    store, extent = loop.body, loop.extent
    if type(extent) is not IntImm or extent.value <= 4 or type(store) is not BufferStore:
        return False
    return type(store.value) is BufferLoad and store.value.dtype.lanes > 1


def _is_line(loop: For) -> bool:
    """Whether each iteration stores many vectors at places of its own, as transforms of tiles do.

    A sum is no such loop: its exit, after few products, would be guessed wrong each time.
    """
    return _stores_vectors(loop) and len(list(_stores(loop.body))) >= _MANY_STORES


def _is_choice(loop: For) -> bool:
    """Whether a long loop stores a vector that a condition chooses: each copy would ask again."""
    store, extent = loop.body, constant_extent(loop)
    return (
        type(store) is BufferStore
        and (extent is None or extent >= _LONG)
        and store.value.dtype.lanes > 1
        and contains(store.value, lambda part: type(part) is Call and part.op is IF_THEN_ELSE)
    )


def _stores(stmt: Stmt) -> Iterator[BufferStore]:
    if isinstance(stmt, BufferStore):
        yield stmt
    for part in stmt.children():
        if isinstance(part, Stmt):
            yield from _stores(part)


def _stores_vectors(loop: For) -> bool:
    """Whether each iteration stores vectors at places of its own, and nothing else."""
    return _vectors(loop) and all(
        [any([uses(index, [loop.loop_var]) for index in s.indices]) for s in _stores(loop.body)]
    )


def _vectors(loop: For) -> bool:
    stores = list(_stores(loop.body))
    return bool(stores) and all([store.value.dtype.lanes > 1 for store in stores])
