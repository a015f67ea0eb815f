"""Properties of the buffers that blocks write: storage scope, data type, alignment, axis separators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm.ir.expr import PrimExpr
from tvm.ir.type import PointerType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer, content_dtype
from tvm.tir.expr import BufferLoad, IntImm, Var, const, pointer_type
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BufferStore, MatchBufferRegion, Stmt

from ..errors import PrimitiveError
from ..rewriting import BufferReplacer, Reuse
from ..state import ScheduleState
from ..tree import root_of
from .cache_stage import nth_buffer, require_storage_scope

DIM_ALIGN = "buffer_dim_align"


def storage_align(
    state: ScheduleState, block_sref: StmtSRef, index: int, axis: int, factor: int, offset: int
) -> None:
    """Ask for strides of an axis that are an offset behind multiples of a factor."""
    block = block_sref.block
    buffer = nth_buffer(block, index, "write")
    if factor <= 0:
        raise PrimitiveError(
            "ScheduleError: The input factor is expected to be positive",
            f"The factor is required to be positive, got {factor}",
            block,
        )
    rank = len(buffer.shape)
    if not -rank <= axis < rank:
        raise PrimitiveError(
            "ScheduleError: The input axis is out of range",
            f"The axis {axis} is required to be from {-rank} to {rank - 1}, for the buffer "
            f"{buffer.name} of {{0}}",
            block,
        )
    if allocating_block(block_sref, buffer) is None:
        raise PrimitiveError(
            "ScheduleError: The input buffer is not allocated by a block",
            f"The buffer {buffer.name} of {{0}} is not allocated by a block: how it lies in memory "
            "is not for the function to choose",
            block,
        )
    wanted = (index, axis + rank if axis < 0 else axis, factor, offset)
    known = [tuple([int(item) for item in entry]) for entry in block.annotations.get(DIM_ALIGN, ())]
    kept = [entry for entry in known if entry[:2] != wanted[:2]]
    entries = [*kept, wanted]
    annotations = {**block.annotations, DIM_ALIGN: [[*entry] for entry in entries]}
    new = Block(
        block.iter_vars, block.reads, block.writes, block.name_hint, block.body, block.init,
        block.alloc_buffers, block.match_buffers, annotations,
    )  # fmt: skip
    state.replace(block_sref, new, {block: new})


def set_scope(state: ScheduleState, block: StmtSRef, index: int, storage_scope: str) -> None:
    """Put a buffer that a block writes into another storage scope."""
    require_storage_scope(storage_scope)
    buffer = nth_buffer(block.block, index, "write")
    if buffer.scope() == storage_scope:
        return
    annotation = buffer.data.type_annotation
    assert isinstance(annotation, PointerType)

    def moved(other: Buffer) -> Buffer:
        data = Var(other.data.name, PointerType(annotation.element_type, storage_scope))
        return other.replace(data=data)

    _require_allocated(block, buffer)
    exchange_buffer(state, block, buffer, moved(buffer), ViewReplacer.of(moved))


class ViewReplacer(BufferReplacer):
    """A replacer that changes the views of a replaced buffer in inner blocks too."""

    change: Callable[[Buffer], Buffer]

    @classmethod
    def of(cls, change: Callable[[Buffer], Buffer]) -> Callable[..., BufferReplacer]:
        """What makes replacers that change views by a function."""

        def make(buffers: dict[Buffer, Buffer], reuse: Reuse) -> BufferReplacer:
            replacer = cls(buffers, reuse)
            replacer.change = change
            return replacer

        return make

    def visit_block(self, block: Block) -> Stmt:
        for match in block.match_buffers:
            if match.source.buffer in self.buffers:
                self.buffers[match.buffer] = self.change(match.buffer)
        return super().visit_block(block)

    def visit_match_buffer_region(self, match: MatchBufferRegion) -> MatchBufferRegion:
        match = super().visit_match_buffer_region(match)
        view = self.buffers.get(match.buffer)
        return match if view is None else match.replace(buffer=view)


def unsafe_set_dtype(state: ScheduleState, block: StmtSRef, index: int, dtype: str) -> None:
    """Give the elements of a buffer that a block writes another data type; values are converted."""
    buffer = nth_buffer(block.block, index, "write")
    element = as_dtype(dtype)
    if buffer.dtype is element:
        return
    data = Var(buffer.data.name, pointer_type(content_dtype(element), buffer.scope()))
    new = buffer.replace(data=data, dtype=element)
    _require_allocated(block, buffer)
    exchange_buffer(state, block, buffer, new, ConvertingReplacer)


class ConvertingReplacer(BufferReplacer):
    """A replacer whose buffers have elements of another type: values are converted on the way."""

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        old = load.buffer
        new = super().visit_buffer_load(load)
        return new if old not in self.buffers else op.cast(new, old.dtype)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        new = self.buffers.get(store.buffer)
        store = self.rewrite_children(store)
        if new is None:
            return store
        return store.replace(buffer=new, value=op.cast(store.value, new.dtype))


def set_axis_separator(
    state: ScheduleState, block: StmtSRef, index: int, kind: str, separators: Sequence[int]
) -> None:
    """Say where the dimensions of a buffer are divided when it becomes flat."""
    buffer = nth_buffer(block.block, index, kind)
    marks = tuple([const(int(separator), "int32") for separator in separators])
    assert all([isinstance(mark, IntImm) for mark in marks])

    def divided(other: Buffer) -> Buffer:
        dropped = len(buffer.shape) - len(other.shape)
        own = [mark.value - dropped for mark in marks if isinstance(mark, IntImm)]
        return other.replace(axis_separators=tuple([const(max(m, 0), "int32") for m in own]))

    exchange_buffer(state, block, buffer, divided(buffer), ViewReplacer.of(divided))


def allocating_block(sref: StmtSRef, buffer: Buffer) -> StmtSRef | None:
    """The block around a block that allocates a buffer; None for a parameter's buffer."""
    for above in sref.ancestors():
        if above.is_block and any([buffer is other for other in above.block.alloc_buffers]):
            return above
    return None


def _require_allocated(block: StmtSRef, buffer: Buffer) -> None:
    if allocating_block(block, buffer) is None:
        raise PrimitiveError(
            "ScheduleError: The buffer is not allocated by a block",
            f"The buffer {buffer.name} of {{0}} is required to be allocated by a block, it is a "
            "parameter of the function",
            block.block,
        )


def exchange_buffer(
    state: ScheduleState,
    block: StmtSRef,
    old: Buffer,
    new: Buffer,
    replacer: Callable[[dict[Buffer, Buffer], Reuse], BufferReplacer],
) -> None:
    """Put a buffer into the place of another one, where it is allocated or in the whole function."""
    place = allocating_block(block, old)
    whole = root_of(block) if place is None else place
    reuse: Reuse = {}
    changed = replacer({old: new}, reuse).visit(whole.block)
    if place is None:
        exchange_parameter(state, whole, old, new)
    state.replace(whole, changed, reuse)


def exchange_parameter(state: ScheduleState, root: StmtSRef, old: Buffer, new: Buffer) -> None:
    """Put a buffer into the place of a parameter's."""
    gvar = state.function_of(root)
    func = state.mod.functions[gvar]
    assert isinstance(func, PrimFunc)
    buffers = {param: new if b is old else b for param, b in func.buffer_map.items()}
    changed = func.replace(buffer_map=buffers)
    state.mod = state.mod.with_functions({**state.mod.functions, gvar: changed})
