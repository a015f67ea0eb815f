"""Keep the tiles of ``mma.m16n8k8`` in registers: each thread of a warp has its own elements.

C = T.alloc_buffer((16, 8), scope="m16n8k8.matrixC")         C = T.alloc_buffer((1, 1, 2, 2), scope="local")
C[k * 8 + tx // 4, tx % 4 * 2 + v] = 0.0              ->     C[0, 0, k, v] = 0.0

A thread has the rows ``i`` and the columns ``j`` of a result with ``i % 8 == tx // 4`` and ``j % 8 // 2 == tx % 4``.
Operands are loaded by ``ptx_ldmatrix``, from pointers whose offsets count the thread's elements already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IntImm, Range, Var, const, pointer_type
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BufferRegion, BufferStore, For, MatchBufferRegion, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import contains, prim_func_pass


@dataclass(frozen=True)
class Fragment:
    """A tile, and the elements of it that a thread has."""

    tile: tuple[int, int]
    own: tuple[int, int]


FRAGMENTS = {
    "m16n8k8.matrixA": Fragment((32, 8), (4, 2)),
    "m16n8k8.matrixB": Fragment((8, 32), (4, 2)),
    "m16n8k8.matrixC": Fragment((16, 8), (2, 2)),
}


class FragmentRewriter(BufferRewriter):
    """Makes local memory of fragments."""

    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.pointers: dict[Var, Var] = {}

    def visit_for(self, loop: For) -> Stmt:
        bounds = Range.from_min_extent(loop.min, loop.extent)
        self.analyzer.bind(loop.loop_var, bounds, True)
        return self.rewrite_children(loop)

    def visit_block(self, block: Block) -> Stmt:
        # pointers are known before the statements that name them alone
        for buffer in block.alloc_buffers:
            self.buffer(buffer)
        return super().visit_block(block)

    def visit_var(self, var: Var) -> PrimExpr:
        return self.pointers.get(var, var)

    def map_buffer(self, buffer: Buffer) -> Buffer:
        fragment = FRAGMENTS.get(buffer.scope())
        if fragment is None:
            return super().map_buffer(buffer)
        data = Var(buffer.data.name, pointer_type(buffer.dtype, "local"))
        self.pointers[buffer.data] = data
        return buffer.replace(data=data, shape=_own_shape(buffer, fragment), strides=())

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        new = super().visit_buffer_load(load)
        if load.buffer.scope() not in FRAGMENTS or not isinstance(new, BufferLoad):
            return new
        return new.replace(indices=self._own_indices(load.buffer, new.indices, load))

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        new = super().visit_buffer_store(node)
        if node.buffer.scope() not in FRAGMENTS or not isinstance(new, BufferStore):
            return new
        return new.replace(indices=self._own_indices(node.buffer, new.indices, node))

    def visit_buffer_region(self, node: BufferRegion) -> BufferRegion:
        new = super().visit_buffer_region(node)
        if node.buffer.scope() not in FRAGMENTS:
            return new
        whole = [Range.from_min_extent(const(0, e.dtype), e) for e in new.buffer.shape]
        return new.replace(region=tuple(whole))

    def visit_match_buffer_region(self, node: MatchBufferRegion) -> MatchBufferRegion:
        if node.source.buffer.scope() in FRAGMENTS:
            raise LoweringError(
                f"TransformMmaBufferLayout requires accesses of {node.source.buffer.name} itself, got "
                f"the matched buffer {node.buffer.name}",
                hint="run LowerMatchBuffer before",
            )
        return super().visit_match_buffer_region(node)

    def _own_indices(
        self, buffer: Buffer, indices: Sequence[PrimExpr], at: Node
    ) -> tuple[PrimExpr, ...]:
        if buffer.scope() != "m16n8k8.matrixC":
            raise LoweringError(
                "TransformMmaBufferLayout requires operands to be accessed by ptx_ldmatrix and "
                f"ptx_mma, got an index of {buffer.name}",
                at=at,
            )
        *before, i, j = indices
        own = (
            op.floordiv(i, 16), op.floordiv(j, 8), op.floormod(op.floordiv(i, 8), 2), op.floormod(j, 2),
        )  # fmt: skip
        return (*before, *[self.analyzer.simplify(index) for index in own])


def _own_shape(buffer: Buffer, fragment: Fragment) -> tuple[PrimExpr, ...]:
    """The shape of a thread's elements: tiles, and elements of a tile."""
    sizes = [extent.value if isinstance(extent, IntImm) else 0 for extent in buffer.shape[-2:]]
    tiles = [size // tile for size, tile in zip(sizes, fragment.tile, strict=False)]
    covered = [count * tile for count, tile in zip(tiles, fragment.tile, strict=False)]
    if len(sizes) != 2 or 0 in sizes or covered != sizes or buffer.strides:
        raise LoweringError(
            f"TransformMmaBufferLayout requires {buffer.scope()} of whole tiles of "
            f"{fragment.tile[0]} by {fragment.tile[1]}, got {buffer.name} of shape {list(buffer.shape)}"
        )
    own = [const(extent, buffer.shape[-1].dtype) for extent in (*tiles, *fragment.own)]
    return (*buffer.shape[:-2], *own)


def _allocates_fragments(node: Node) -> bool:
    return isinstance(node, Block) and any([b.scope() in FRAGMENTS for b in node.alloc_buffers])


@prim_func_pass("tir.TransformMmaBufferLayout")
def transform_mma_buffer_layout(func: PrimFunc) -> PrimFunc:
    """Give each thread its elements of fragments."""
    if not contains(func.body, _allocates_fragments):
        return func
    return func.with_body(FragmentRewriter().visit(func.body))


TransformMmaBufferLayout = transform_mma_buffer_layout.factory
