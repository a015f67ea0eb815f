"""Turn realized regions of te stages into flat memory.

    realize(B([i, 4], [0, 8]))   ->    B = allocate([32])
        B[i + 1, j] = ...                  B_1[8 + j] = ...

A region need not start at zero: the memory holds its elements only.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir.expr import PrimExpr
from tvm.tir.buffer import Buffer
from tvm.tir.builtin import tvm_tuple
from tvm.tir.expr import Call, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AttrStmt, BufferRealize, DeclBuffer, Prefetch, Stmt
from tvm.tir.transform.common import as_int, comes_from_te, is_const, prim_func_pass
from tvm.tir.transform.dim_align import DIM_ALIGN, DimAlign
from tvm.tir.transform.flatten_buffer import (
    INT8,
    BufferFlattener,
    FlatView,
    compact_strides,
    divided_view,
    product,
)
from tvm.tir.transform.inject_prefetch import PrefetchInjector


@dataclass(frozen=True)
class StorageFlattenConfig:
    """What else is done on the way."""

    cache_line_size: int = 64  # bytes that one prefetch brings, for prefetches still to be lowered
    create_bound_attribute: bool = False  # note the extents of what is allocated, as buffer_bound


class StorageFlattener(BufferFlattener):
    """Allocates what is realized."""

    def __init__(self, config: StorageFlattenConfig) -> None:
        super().__init__()
        self.config = config
        self.aligns: dict[Buffer, dict[int, DimAlign]] = {}

    def visit_prefetch(self, node: Prefetch) -> Stmt:
        loops = PrefetchInjector(self.config.cache_line_size).visit_prefetch(node)
        flat: Stmt = self.visit(loops)
        return flat

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key != DIM_ALIGN:
            return self.rewrite_children(attr)
        assert isinstance(attr.value, Call)
        axis, factor, offset = [as_int(arg) for arg in attr.value.args]
        self.aligns.setdefault(attr.node, {})[axis] = DimAlign(factor, offset)
        body: Stmt = self.visit(attr.body)
        return body

    def visit_decl_buffer(self, decl: DeclBuffer) -> Stmt:
        view = self.view(decl.buffer)
        body = self.visit(decl.body)
        same = view.buffer is decl.buffer and body is decl.body
        return decl if same else DeclBuffer(view.buffer, body)

    def visit_buffer_realize(self, realize: BufferRealize) -> Stmt:
        buffer = realize.buffer
        shape = tuple([self.visit(bound.extent) for bound in realize.bounds])
        mins = tuple([self.visit(bound.min) for bound in realize.bounds])
        view = self._view_of(buffer, shape, mins)
        flat = view.buffer
        self.views[buffer] = view
        condition = self.visit(realize.condition)
        body: Stmt = DeclBuffer(flat, self.visit(realize.body))
        if self.config.create_bound_attribute:
            body = AttrStmt(buffer.data, "buffer_bound", tvm_tuple(*shape), body)
        return Allocate(buffer.data, flat.dtype, flat.shape, condition, body)

    def _view_of(
        self, buffer: Buffer, shape: tuple[PrimExpr, ...], mins: tuple[PrimExpr, ...]
    ) -> FlatView:
        """The memory of what is realized."""
        shifted = None if all([is_const(start, 0) for start in mins]) else mins
        aligned = buffer in self.aligns and bool(shape)
        if buffer.axis_separators and not aligned:
            return divided_view(buffer, shape, shifted)
        strides = self._strides(buffer, shape)
        extent = strides[0] * shape[0] if aligned else product(shape)
        dtype = INT8.with_lanes(buffer.dtype.lanes) if buffer.dtype.is_bool else buffer.dtype
        flat = buffer.replace(
            dtype=dtype, shape=(extent,), strides=(), elem_offset=const(0, extent.dtype),
            axis_separators=(),
        )  # fmt: skip
        return FlatView(flat, shape, strides, shifted)

    def _strides(self, buffer: Buffer, shape: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        aligns = self.aligns.get(buffer)
        if aligns is None:
            return compact_strides(shape)
        strides: list[PrimExpr] = [const(1, shape[-1].dtype)]
        for axis in range(len(shape) - 2, -1, -1):
            stride = strides[0] * shape[axis + 1]
            strides.insert(0, aligns[axis].pad(stride) if axis in aligns else stride)
        return tuple(strides)


@prim_func_pass("tir.StorageFlatten", StorageFlattenConfig)
def storage_flatten(func: PrimFunc, config: StorageFlattenConfig) -> PrimFunc:
    """Allocate realized regions and make every buffer one-dimensional."""
    if not comes_from_te(func):
        return func
    return func.with_body(StorageFlattener(config).visit(func.body))


StorageFlatten = storage_flatten.factory
