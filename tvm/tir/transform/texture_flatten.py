"""Lay arrays in textures: images of four channels a pixel.

realize(T[0:8, 0:4, 0:16, 0:4])      ->    let T = nd_mem_alloc_with_scope(16, 32, 4)
    T[n, h, w, c] = A[n, h, w, c]              texture2d_store(T, w, n*4 + h, A[n, h, w, c])
    B[n, h, w, c] = T[n, h, w, c]              B[n, h, w, c] = texture2d_load(T, w, n*4 + h, c)

The last dimension is the channels. Of the others, the scope says how many make the rows: all but one for
``global.texture``, the first for ``global.texture-weight``, the first two for ``global.texture-nhwc``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.builtin import call_intrin
from tvm.tir.expr import BufferLoad, IntImm, StringImm, Var, const, pointer_type
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BufferRealize, BufferStore, Evaluate, LetStmt, Stmt
from tvm.tir.transform.common import prim_func_pass

CHANNELS = (1, 4)


def row_dimensions(scope: str, rank: int) -> int:
    """How many leading dimensions make the rows of the image."""
    if scope == "global.texture":
        return rank - 2
    if scope == "global.texture-weight":
        return 1
    if scope == "global.texture-nhwc":
        return 1 if rank == 3 else 2
    raise LoweringError(
        f"a texture is of scope global.texture, global.texture-weight or global.texture-nhwc, got {scope}"
    )


class TextureFlattener(Rewriter):
    """Rewrites memory of texture scopes, and accesses to it."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.textures: dict[Var, Var] = {}

    def visit_buffer_realize(self, realize: BufferRealize) -> Stmt:
        buffer = realize.buffer
        if not is_texture(buffer):
            return self.rewrite_children(realize)
        extents = [domain.extent for domain in realize.bounds]
        channels = extents[-1]
        if len(extents) < 3 or not isinstance(channels, IntImm) or channels.value not in CHANNELS:
            raise LoweringError(
                f"a texture needs rows, columns, and 1 or 4 channels at last, got {extents}",
                at=realize,
            )
        rows = row_dimensions(buffer.scope(), len(extents))
        width, height = _product(extents[rows:-1]), _product(extents[:rows])
        texture = Var(buffer.data.name, pointer_type(str(buffer.dtype), buffer.scope()))
        self.textures[buffer.data] = texture
        sizes = call_intrin("handle", "tir.tvm_stack_make_shape", width, height, channels)
        scope, rank = StringImm(buffer.scope()), const(2, "int64")
        memory = call_intrin("handle", "tir.nd_mem_alloc_with_scope", scope, rank, sizes)
        return LetStmt(texture, memory, self.visit(realize.body))

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        store = self.rewrite_children(store)
        if not is_texture(store.buffer):
            return store
        place = self._place(store.buffer, store.indices)
        dtype = str(store.buffer.dtype)
        return Evaluate(call_intrin(dtype, "tir.texture2d_store", *place, store.value))

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        if not is_texture(load.buffer):
            return load
        place = self._place(load.buffer, load.indices)
        dtype = str(load.buffer.dtype)
        return call_intrin(dtype, "tir.texture2d_load", *place, load.indices[-1])

    def _place(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> tuple[Any, PrimExpr, PrimExpr]:
        """The texture, and the column and row in it."""
        rows = row_dimensions(buffer.scope(), len(indices))
        column = self._offset(buffer.shape[rows:-1], indices[rows:-1])
        row = self._offset(buffer.shape[:rows], indices[:rows])
        return self.textures.get(buffer.data, buffer.data), column, row

    def _offset(self, shape: Sequence[PrimExpr], indices: Sequence[PrimExpr]) -> PrimExpr:
        total: PrimExpr = const(0, "int32")
        for extent, index in zip(shape, indices, strict=True):
            total = op.add(op.multiply(total, extent), index)
        return self.analyzer.simplify(total)


def is_texture(buffer: Buffer) -> bool:
    """Whether a buffer lies in a texture."""
    return buffer.scope().startswith("global.texture")


def _product(extents: Sequence[PrimExpr]) -> PrimExpr:
    total: PrimExpr = const(1, "int32")
    for extent in extents:
        total = op.multiply(total, extent)
    return total


@prim_func_pass("tir.TextureFlatten")
def texture_flatten(func: PrimFunc) -> PrimFunc:
    """Lay realized regions and arguments of texture scopes in textures."""
    return func.with_body(TextureFlattener().visit(func.body))


TextureFlatten = texture_flatten.factory
