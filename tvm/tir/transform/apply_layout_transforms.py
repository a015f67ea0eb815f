"""Give buffers the layouts that the function's attribute asks for.

attrs: layout_transform_map = {A: [(i, j) -> (j, i)]}
A: Buffer([4, 8]); A[x, y]   ->    A: Buffer([8, 4]); A[y, x]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Range
from tvm.tir.function import PrimFunc
from tvm.tir.index_map import IndexMap
from tvm.tir.stmt import BufferRealize, BufferStore, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import prim_func_pass

ATTRIBUTE = "layout_transform_map"


class LayoutTransformer(BufferRewriter):
    """Maps the shapes of buffers and the indices of their accesses."""

    def __init__(self, layouts: Mapping[Buffer, Sequence[IndexMap]]) -> None:
        super().__init__()
        self.layouts = layouts
        self.analyzer = Analyzer()

    def map_buffer(self, buffer: Buffer) -> Buffer:
        shape: Sequence[PrimExpr] = buffer.shape
        for index_map in self.layouts.get(buffer, ()):
            dtype = shape[0].dtype
            shape = [op.cast(extent, dtype) for extent in index_map.map_shape(shape)]
        return super().map_buffer(buffer) if shape is buffer.shape else buffer.replace(shape=shape)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        layouts = self.layouts.get(load.buffer)
        if layouts is None:
            return super().visit_buffer_load(load)
        return BufferLoad(self.buffer(load.buffer), self._mapped(load.indices, layouts))

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        layouts = self.layouts.get(node.buffer)
        if layouts is None:
            return super().visit_buffer_store(node)
        value = self.visit(node.value)
        return BufferStore(self.buffer(node.buffer), value, self._mapped(node.indices, layouts))

    def visit_buffer_realize(self, node: BufferRealize) -> Stmt:
        layouts = self.layouts.get(node.buffer)
        if layouts is None:
            return super().visit_buffer_realize(node)
        buffer = self.buffer(node.buffer)
        # the whole buffer: a part need not be a box in another layout
        bounds = tuple([Range(extent) for extent in buffer.shape])
        return BufferRealize(buffer, bounds, node.condition, self.visit(node.body))

    def _mapped(
        self, indices: Sequence[PrimExpr], layouts: Sequence[IndexMap]
    ) -> tuple[PrimExpr, ...]:
        mapped: Sequence[PrimExpr] = [self.visit(index) for index in indices]
        for index_map in layouts:
            mapped = index_map.map_indices(mapped)
        return tuple([self.analyzer.simplify(index) for index in mapped])


@prim_func_pass("tir.ApplyLayoutTransforms")
def apply_layout_transforms(func: PrimFunc) -> PrimFunc:
    """Transform the layouts of buffers, arguments among them."""
    layouts = func.get_attr(ATTRIBUTE)
    if not layouts:
        return func
    transformer = LayoutTransformer(layouts)
    body = transformer.visit(func.body)
    buffers = {param: transformer.buffer(buffer) for param, buffer in func.buffer_map.items()}
    return func.replace(body=body, buffer_map=buffers).without_attr(ATTRIBUTE)


ApplyLayoutTransforms = apply_layout_transforms.factory
