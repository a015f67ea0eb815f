"""Copies of the fragments of matrix units, tile by tile.

for i, j in grid(128, 128):              for i, j in grid(8, 8):
    F[i, j] = S[i, j]              ->        tvm_load_matrix_sync(F, tile i * 8 + j, S[i * 16.., j * 16..])

A fragment goes to global memory through shared memory, one row of tiles after the other: every warp stores its
tiles, then all threads copy those of all warps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import BufferLoad, Call, IterVar, Range, StringImm, Var, const
from tvm.tir.stmt import (
    AttrStmt,
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    MatchBufferRegion,
    Stmt,
    seq,
)
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import TRUE, as_int, fresh, variables_of

WARP = 32
WMMA_TILE = 16
MMA_TILE = 8
WMMA_INPUTS = ("wmma.matrix_a", "wmma.matrix_b")
TILE_OF = {
    **dict.fromkeys((*WMMA_INPUTS, "wmma.accumulator"), WMMA_TILE),
    "m16n8k8.matrixC": MMA_TILE,
}
Distribute = Callable[[Sequence[For], BufferStore], Stmt]


def is_fragment(scope: str) -> bool:
    """Whether memory of a scope is spread over the registers of a warp in an order of its own."""
    return scope.startswith(("wmma.", "m16n8k8."))


@dataclass(frozen=True)
class Tiles:
    """The loops of a copy, the last two cut into tiles."""

    outer: tuple[For, ...]  # all loops up to the number of a tile in its row
    inner: tuple[Var, Var]  # within a tile
    size: int
    values: Mapping[Var, PrimExpr]  # what the last two loops were

    def region(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> BufferRegion:
        """The elements of a tile."""
        analyzer = Analyzer()
        zeros = {var: const(0, var.dtype) for var in self.inner}
        ranges = [
            Range.from_min_extent(
                analyzer.simplify(substitute(index, zeros)),
                const(self.size if axis >= len(indices) - 2 else 1, index.dtype),
            )
            for axis, index in enumerate(indices)
        ]
        return BufferRegion(buffer, tuple(ranges))

    def axes(self, indices: Sequence[PrimExpr]) -> list[Var | None]:
        """The variable within a tile that each index moves along by ones."""
        return [self._axis(index) for index in indices]

    def _axis(self, index: PrimExpr) -> Var | None:
        analyzer = Analyzer()
        found = [var for var in self.inner if var in variables_of(index)]
        if not found:
            return None
        start = substitute(index, {found[0]: const(0, found[0].dtype)})
        if len(found) > 1 or not analyzer.can_prove(op.equal(index, op.add(start, found[0]))):
            raise LoweringError(
                f"LowerAutoCopy needs fragments to be accessed along rows and columns, got index {index}"
            )
        return found[0]


def tiled(loops: Sequence[For], size: int, at: Block) -> Tiles:
    """The last two loops cut into tiles."""
    extents = [as_int(loop.extent) for loop in loops[-2:]]
    if len(extents) < 2 or any([extent % size for extent in extents]):
        raise LoweringError(
            f"LowerAutoCopy needs fragments of whole tiles of {size} by {size}, got loops of {extents}",
            at=at,
        )
    rows, columns = loops[-2:]
    outer, inner, values = list(loops[:-2]), [], {}
    for loop in (rows, columns):
        var = loop.loop_var
        tile, within = [var.replace(name=f"{var.name}_{part}") for part in (0, 1)]
        outer.append(
            For(
                tile,
                const(0, var.dtype),
                const(as_int(loop.extent) // size, var.dtype),
                loop.kind,
                at,
            )
        )
        inner.append(within)
        values[var] = op.add(loop.min, op.add(op.multiply(tile, size), within))
    return Tiles(tuple(outer), (inner[0], inner[1]), size, values)


def copied_by_warps(loops: Sequence[For], store: BufferStore, at: Block) -> Stmt:
    """A copy between shared memory and a fragment."""
    load = store.value
    if not isinstance(load, BufferLoad):
        raise LoweringError(
            f"LowerAutoCopy needs a plain copy between fragments and shared memory, got {store}",
            at=at,
        )
    fragment = load if is_fragment(load.buffer.scope()) else store
    tiles = tiled(loops, TILE_OF.get(fragment.buffer.scope(), WMMA_TILE), at)
    source, target = [
        tuple([Analyzer().simplify(substitute(index, tiles.values)) for index in access.indices])
        for access in (load, store)
    ]
    order = [tiles.axes(indices)[-2:] for indices in (source, target)]
    is_transposed = order[0] == order[1][::-1]
    if set(order[0]) != set(tiles.inner) or (order[0] != order[1] and not is_transposed):
        raise LoweringError(
            f"LowerAutoCopy needs a tile to be copied to a tile, got {store}", at=at
        )
    regions = [
        tiles.region(buffer, indices)
        for buffer, indices in ((load.buffer, source), (store.buffer, target))
    ]
    realize = tile_copy(regions[0], regions[1], is_transposed, at)
    return _nested(tiles.outer, realize)


def copied_through_shared(
    loops: Sequence[For], store: BufferStore, fragment: BufferLoad, warps: Sequence[For],
    distribute: Distribute, at: Block,
) -> tuple[Stmt, Buffer]:  # fmt: skip
    """A copy from a fragment to global memory, and the shared memory that it needs."""
    buffer = fragment.buffer
    tiles = tiled(loops, TILE_OF.get(buffer.scope(), WMMA_TILE), at)
    indices = [Analyzer().simplify(substitute(i, tiles.values)) for i in fragment.indices]
    if tiles.axes(indices)[-2:] != list(tiles.inner):
        raise LoweringError("LowerAutoCopy needs fragments in the order of rows", at=at)
    column = tiles.outer[-1]
    extents = [*[as_int(loop.extent) for loop in (*warps, column)], tiles.size, tiles.size]
    strides = [prod(extents[axis + 1 :]) for axis in range(len(extents))]
    # tiles stay contiguous, so that one is stored as it is
    stage = decl_buffer(
        extents, buffer.dtype, f"{buffer.name}_shared_dyn", None, strides, scope="shared.dyn"
    )
    place = [loop.loop_var for loop in (*warps, column)]
    ones = [Range.from_min_extent(var, const(1, var.dtype)) for var in place]
    whole = Range.from_min_extent(const(0, "int32"), const(tiles.size, "int32"))
    tile = BufferRegion(stage, (*ones, whole, whole))
    to_stage = For(
        column.loop_var, column.min, column.extent, ForKind.SERIAL,
        tile_copy(tiles.region(buffer, indices), tile, False, at),
    )  # fmt: skip
    # the copy of all threads counts the tiles of all warps
    mine = {var: fresh(var) for var in (*place, *tiles.inner)}
    values = {var: substitute(value, mine) for var, value in tiles.values.items()}
    staged = BufferLoad(stage, tuple([mine[var] for var in (*place, *tiles.inner)]))
    moved = substitute(_LoadReplacer(fragment, staged).visit(store), {**mine, **values})
    counters = [
        For(mine[var], const(0, var.dtype), const(extent, var.dtype), ForKind.SERIAL, at)
        for var, extent in zip((*place, *tiles.inner), extents, strict=True)
    ]
    body = seq([to_stage, distribute(counters, moved)])
    return _nested(tiles.outer[:-1], body), stage


def tile_copy(source: BufferRegion, target: BufferRegion, is_transposed: bool, at: Block) -> Stmt:
    """The block in which a warp copies one tile."""
    scopes = (source.buffer.scope(), target.buffer.scope())
    src, tgt = _view(source, "src"), _view(target, "tgt")
    if scopes[0] == "m16n8k8.matrixC" and not is_transposed:
        name, body = "mma_store", _stored_by_pairs(src, tgt)
    elif scopes[0] == "wmma.accumulator" and not is_transposed:
        name, body = "wmma_store", _matrix_sync("tvm_store_matrix_sync", source, src, tgt, "w")
    elif scopes[1] in WMMA_INPUTS:
        layout = "col_major" if is_transposed else "row_major"
        name, body = (
            "wmma_load",
            _matrix_sync("tvm_load_matrix_sync", target, tgt, src, "r", layout),
        )
    else:
        raise LoweringError(
            f"LowerAutoCopy copies accumulators of matrix units to memory and memory to their operands, "
            f"got from {scopes[0]} to {scopes[1]}",
            at=at,
        )
    views = [MatchBufferRegion(src, source), MatchBufferRegion(tgt, target)]
    block = Block((), [source], [target], name, body, None, (), views)
    return BlockRealize((), TRUE, block)


def _view(region: BufferRegion, name: str) -> Buffer:
    buffer, size = region.buffer, as_int(region.region[-1].extent)
    scope = buffer.scope()
    strides = None if is_fragment(scope) else [Var("s1", "int32"), Var("s0", "int32")]
    return decl_buffer(
        (size, size), buffer.dtype, name, None, strides, scope=scope, data_alignment=buffer.data_alignment,
        offset_factor=size,
    )  # fmt: skip


def _matrix_sync(
    call: str, region: BufferRegion, fragment: Buffer, memory: Buffer, access: str,
    layout: str = "row_major",
) -> Stmt:  # fmt: skip
    row = memory.strides[0]
    number = _tile_number(fragment, as_int(region.buffer.shape[-1]))
    sizes = [const(WMMA_TILE, "int32")] * 3
    pointer = memory.access_ptr(access)
    return Evaluate(
        Call(
            "handle",
            f"tir.{call}",
            [fragment.data, *sizes, number, pointer, row, StringImm(layout)],
        )
    )


def _tile_number(fragment: Buffer, row: int) -> PrimExpr:
    """The number of the tile that a view of a fragment is, rows of tiles after each other."""
    offset, tile = fragment.elem_offset, WMMA_TILE * WMMA_TILE
    if row <= tile:
        # the tiles of a row are those of its first 256 elements
        first = op.floordiv(offset, tile)
        return op.add(first, op.floordiv(op.floormod(offset, tile), WMMA_TILE))
    band = WMMA_TILE * row
    first = op.multiply(op.floordiv(offset, band), row // WMMA_TILE)
    return op.add(first, op.floordiv(op.floormod(offset, row), WMMA_TILE))


def _stored_by_pairs(fragment: Buffer, memory: Buffer) -> Stmt:
    """Each thread stores the two neighbours that it has of a tile of 8 by 8."""
    thread, vec = Var("threadIdx_x", "int32"), Var("vec", "int32")
    column = op.add(op.multiply(op.floormod(thread, 4), 2), vec)
    place = (op.floordiv(thread, 4), column)
    store = BufferStore(memory, BufferLoad(fragment, place), place)
    pair = For(vec, const(0, "int32"), const(2, "int32"), ForKind.VECTORIZED, store)
    axis = IterVar(
        Range.from_min_extent(const(0, "int32"), const(WARP, "int32")), thread, IterVar.ThreadIndex,
        "threadIdx.x",
    )  # fmt: skip
    return AttrStmt(axis, "thread_extent", const(WARP, "int32"), pair)


class _LoadReplacer(Rewriter):
    """Puts a load of staged elements in the place of one of a fragment."""

    def __init__(self, old: BufferLoad, new: BufferLoad) -> None:
        self.old, self.new = old, new

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        if load.buffer is self.old.buffer:
            if load is not self.old:
                raise LoweringError(
                    f"LowerAutoCopy needs a fragment to be read once, got {load} beside {self.old}"
                )
            return self.new
        rewritten: PrimExpr = self.rewrite_children(load)
        return rewritten


def _nested(loops: Sequence[For], body: Stmt) -> Stmt:
    for loop in reversed(loops):
        body = loop.replace(body=body)
    return body
