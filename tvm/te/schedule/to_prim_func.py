"""From a statement over tensors to a function over buffers (``SchedulePostProcToPrimFunc``).

realize B: C[i] = B[i] + 1      ->      def f(A: Buffer, C: Buffer):
                                            BufferRealize(B): C[i] = B[i] + 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.support.scope import deep
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import BufferLoad, ProducerLoad, Range, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    AttrStmt,
    BufferRealize,
    BufferStore,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    Stmt,
    seq,
)

from ..buffer_options import buffer_options
from ..tensor import Operation, Tensor
from .bind_buffer import bind_placeholder
from .layout import Layout
from .prefetch import PREFETCH_SCOPE


@deep
def to_prim_func(
    args: Sequence[Tensor | Buffer | Var],
    body: Stmt,
    binds: Mapping[Tensor, Buffer] | None = None,
    name: str = "main",
    layouts: Mapping[Tensor, Layout] | None = None,
) -> PrimFunc:
    """The function with the given parameters.

    Parameters
    ----------
    args : list of Tensor, Buffer or Var
        A tensor that ``binds`` does not name gets a compact buffer of its shape, laid out as the
        context says.
    body : Stmt
        From ``ScheduleOps``.
    binds : dict of Tensor to Buffer, optional
        Buffers that tensors lie in.
    layouts : dict of Tensor to Layout, optional
        Of the tensors that do not lie in order.
    """
    placed = layouts or {}
    buffers = {t: placed[t].buffer(b) if t in placed else b for t, b in (binds or {}).items()}
    params: list[Buffer | Var] = []
    for arg in args:
        if isinstance(arg, Tensor):
            if arg not in buffers:
                buffer = decl_buffer(arg.shape, arg.dtype, arg.name, **buffer_options())
                buffers[arg] = placed[arg].buffer(buffer) if arg in placed else buffer
            params.append(buffers[arg])
        elif isinstance(arg, (Buffer, Var)):
            params.append(arg)
        else:
            raise LoweringError(
                f"{name} requires tensors, buffers and variables as arguments, "
                f"got a value of {type(arg).__name__}"
            )
    body = _BufferAssigner(buffers, name, placed).visit(body)
    attrs = {"global_symbol": name, "tir.noalias": True, "from_legacy_te_schedule": True}
    return PrimFunc(params, body, None, None, attrs)


class _BufferAssigner(Rewriter):
    """Puts buffers in the place of tensors."""

    def __init__(
        self, buffers: dict[Tensor, Buffer], function: str, layouts: Mapping[Tensor, Layout]
    ) -> None:
        self.buffers = buffers
        self.function = function
        self.layouts = layouts
        # the region of each tensor that is kept inside
        self.bounds: dict[Tensor, tuple[Range, ...]] = {}
        # how the strides of such tensors are padded
        self.aligns: dict[Tensor, dict[int, tuple[int, int]]] = {}

    def buffer_of(self, tensor: Any) -> Buffer:
        buffer = self.buffers.get(tensor)
        if buffer is None:
            raise LoweringError(
                f"{self.function} requires every input among its arguments, got none for "
                f"{tensor.name} of shape {list(tensor.shape)}",
                hint=f"add {tensor.name} to the arguments of lower or build",
            )
        return buffer

    def visit_producer_load(self, load: ProducerLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        indices = self._indices(load.producer, load.indices)
        read: PrimExpr = BufferLoad._make(self.buffer_of(load.producer), indices, None, load.span)
        return read

    def _indices(self, tensor: Any, indices: tuple[PrimExpr, ...]) -> tuple[PrimExpr, ...]:
        layout = self.layouts.get(tensor)
        return indices if layout is None else layout.indices(indices)

    def visit_producer_store(self, store: ProducerStore) -> Stmt:
        store = self.rewrite_children(store)
        indices = self._indices(store.producer, store.indices)
        return BufferStore(self.buffer_of(store.producer), store.value, indices)

    def visit_producer_realize(self, realize: ProducerRealize) -> Stmt:
        tensor: Any = realize.producer
        if tensor in self.buffers:
            # an argument has its memory already
            rewritten: Stmt = self.visit(realize.body)
            return rewritten
        buffer = decl_buffer(tensor.shape, tensor.dtype, tensor.name, scope=realize.storage_scope)
        bounds = realize.bounds
        if (layout := self.layouts.get(tensor)) is not None:
            buffer, bounds = layout.buffer(buffer), layout.region(bounds)
        self.buffers[tensor] = buffer
        self.bounds[tensor] = bounds
        body = self.visit(realize.body)
        del self.buffers[tensor]
        return BufferRealize(buffer, bounds, realize.condition, body)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == "buffer_bind_scope":
            return self._bind(attr)
        if attr.attr_key == PREFETCH_SCOPE:
            bounds = tuple(self._region(attr))
            if (layout := self.layouts.get(attr.node)) is not None:
                bounds = layout.region(bounds)
            return seq([Prefetch(self.buffer_of(attr.node), bounds), self.visit(attr.body)])
        node: Any = attr.node
        if isinstance(node, Tensor):
            return self._align(attr, node)
        if isinstance(node, Operation):
            body: Stmt = self.visit(attr.body)
            for tensor in reversed(node.outputs):
                data = self.buffer_of(tensor).data
                body = AttrStmt(data, attr.attr_key, attr.value, body)
            return body
        value, body = self.visit(attr.value), self.visit(attr.body)
        if value is attr.value and body is attr.body:
            return attr
        return AttrStmt(node, attr.attr_key, value, body)

    def _region(self, attr: AttrStmt) -> list[Range]:
        """The attribute's value tells begin and extent of each dimension."""
        ends: Any = self.visit(attr.value)
        return [
            Range.from_min_extent(begin, extent)
            for begin, extent in zip(ends.args[::2], ends.args[1::2], strict=True)
        ]

    def _align(self, attr: AttrStmt, tensor: Tensor) -> Stmt:
        """Alignment is said of the buffer that the realization inside brings about."""
        said: list[AttrStmt] = []
        inner: Stmt = attr
        while isinstance(inner, AttrStmt) and isinstance(inner.node, Tensor):
            said.append(inner)
            axis, factor, offset = [number.value for number in inner.value.args]  # type: ignore[attr-defined]
            self.aligns.setdefault(tensor, {})[axis] = (factor, offset)
            inner = inner.body
        result: Stmt = self.visit(inner)
        if isinstance(result, BufferRealize):
            buffer = result.buffer
            for one in reversed(said):
                result = AttrStmt(buffer, one.attr_key, one.value, result)
        return result

    def _bind(self, attr: AttrStmt) -> Stmt:
        """Let the body of an extern operation use the tensor's own buffer."""
        placeholder, tensor = attr.node
        if tensor in self.layouts:
            raise LoweringError(
                f"a body that uses buffers requires tensors in order, got {tensor.name} with "
                "a layout of its own",
                hint="transform the layout of a cache, or write the layout in the te.compute",
            )
        actual = self.buffer_of(tensor)
        body = self.visit(attr.body)
        region = self._region(attr)
        bounds, aligns = self.bounds.get(tensor), self.aligns.get(tensor)
        return bind_placeholder(body, placeholder, actual, region, bounds, aligns)
