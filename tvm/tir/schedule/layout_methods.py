"""Methods of `Schedule` about buffers' layouts and properties, and about blocks as intrinsics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.tir.expr import as_expr, const
from tvm.tir.function import TensorIntrin
from tvm.tir.index_map import IndexMap

from ._type_checker import type_checked
from .base import ScheduleBase
from .primitives import (
    blockize,
    buffer_properties,
    hide_buffer_access,
    tensorize,
    transform_layout,
)
from .random_variables import BlockRV, LoopRV


class LayoutMethods(ScheduleBase):
    """Layouts, scopes and types of buffers; blockize and tensorize."""

    @type_checked
    def storage_align(
        self, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int
    ) -> None:
        """Ask for strides of an axis of what a block writes: ``offset`` behind multiples of ``factor``.

        Parameters
        ----------
        block : BlockRV or str
        buffer_index : int
            The number of the buffer among the block's writes.
        axis, factor, offset : int
        """
        given = self._block_rv(block)
        args = (buffer_index, axis, factor, offset)
        self._run("storage-align", buffer_properties.storage_align, self._block(given), *args)
        self._record("StorageAlign", [given], args)

    @type_checked
    def set_scope(
        self, block: BlockRV | str, buffer_index: int | str | Any, storage_scope: str
    ) -> None:
        """Put what a block writes into another storage scope.

        Parameters
        ----------
        block : BlockRV or str
        buffer_index : int, str or Buffer
        storage_scope : str
        """
        given = self._block_rv(block)
        index = self._region_index(given, buffer_index, "write")
        self._run(
            "set-scope", buffer_properties.set_scope, self._block(given), index, storage_scope
        )
        self._record("SetScope", [given], [index, storage_scope])

    @type_checked
    def unsafe_set_dtype(self, block: BlockRV | str, buffer_index: int, dtype: str) -> None:
        """Give what a block writes another data type; values are rounded as casts do.

        Parameters
        ----------
        block : BlockRV or str
        buffer_index : int
        dtype : str
        """
        given = self._block_rv(block)
        index = self._region_index(given, buffer_index, "write")
        self._run(
            "unsafe-set-dtype", buffer_properties.unsafe_set_dtype, self._block(given), index, dtype
        )
        self._record("UnsafeSetDType", [given], [index, dtype])

    @type_checked
    def set_axis_separator(
        self, block: BlockRV | str, buffer: Any, axis_separators: Sequence[int] | None
    ) -> None:
        """Say where the dimensions of a buffer are divided when it becomes flat.

        Parameters
        ----------
        block : BlockRV or str
        buffer : (str, int), str or Buffer
        axis_separators : list of int, optional
        """
        given = self._block_rv(block)
        kind, index, _ = self._buffer_index(given, buffer)
        separators = [int(separator) for separator in axis_separators or ()]
        self._run(
            "set-axis-separator", buffer_properties.set_axis_separator, self._block(given), index,
            kind, separators,
        )  # fmt: skip
        self._record("SetAxisSeparator", [given], [index, kind, separators])

    @type_checked
    def transform_layout(
        self,
        block: BlockRV | str,
        buffer: Any,
        index_map: IndexMap | Callable[..., Any],
        pad_value: int | float | PrimExpr | IndexMap | Callable[..., Any] | None = None,
        *,
        assume_injective_transform: bool = False,
    ) -> None:
        """Store a buffer's elements at other indices.

        Parameters
        ----------
        block : BlockRV or str
            A block that accesses the buffer.
        buffer : (str, int), str or Buffer
            ``("write", 0)``, the buffer's name, or itself.
        index_map : IndexMap or callable
            From the old indices to the new ones; ``IndexMap.AXIS_SEPARATOR`` among them divides the
            dimensions.
        pad_value : int, float, PrimExpr, IndexMap or callable, optional
            What is where no element is: a value, or a function of the new indices.
        assume_injective_transform : bool
            Take it that no two elements come to one place.
        """
        given = self._block_rv(block)
        kind, index, node = self._buffer_index(given, buffer)
        separators: list[int] = []
        if not isinstance(index_map, IndexMap):
            index_map, separators = IndexMap.from_func_with_separators(
                index_map, ndim=len(node.shape), index_dtype=_index_dtype(node)
            )
        filler = self._pad_map(pad_value, index_map, node)
        self._run(
            "transform_layout", transform_layout.transform_layout, self._block(given), index, kind,
            self._evaluated(index_map), filler, assume_injective_transform,
        )  # fmt: skip
        attrs = [index, kind, filler, assume_injective_transform]
        self._record("TransformLayout", [given, index_map], attrs)
        if separators:
            self.set_axis_separator(given, (kind, index), separators)

    @staticmethod
    def _pad_map(pad_value: Any, index_map: IndexMap, buffer: Any) -> IndexMap | None:
        if pad_value is None or isinstance(pad_value, IndexMap):
            return pad_value
        rank, dtype = len(index_map.final_indices), _index_dtype(buffer)
        if callable(pad_value):
            return IndexMap.from_func(pad_value, ndim=rank, index_dtype=dtype)
        value = (
            const(pad_value, buffer.dtype)
            if isinstance(pad_value, (int, float))
            else as_expr(pad_value)
        )
        return IndexMap.from_func(lambda *_: [value], ndim=rank, index_dtype=dtype)

    @type_checked
    def transform_block_layout(
        self, block: BlockRV | str, index_map: IndexMap | Callable[..., Any]
    ) -> None:
        """Iterate over a block's instances in another order.

        Parameters
        ----------
        block : BlockRV or str
        index_map : IndexMap or callable
            From the block's variables to the new ones.
        """
        given = self._block_rv(block)
        if not isinstance(index_map, IndexMap):
            axes = self._block(given).block.iter_vars
            dtype = axes[0].var.dtype if axes else "int32"
            index_map = IndexMap.from_func(index_map, ndim=len(axes), index_dtype=dtype)
        self._run(
            "transform_block_layout", transform_layout.transform_block_layout, self._block(given),
            self._evaluated(index_map),
        )  # fmt: skip
        self._record("TransformBlockLayout", [given], [index_map])

    # ---- what blocks say of their accesses

    @type_checked
    def unsafe_hide_buffer_access(
        self, block: BlockRV | str, buf_type: str, buf_index_array: Sequence[int]
    ) -> None:
        """Leave regions out of what a block says it accesses; the dependencies on them are gone.

        Parameters
        ----------
        block : BlockRV or str
        buf_type : str
            ``"read"`` or ``"write"``.
        buf_index_array : list of int
            The numbers of the regions.
        """
        given = self._block_rv(block)
        indices = [int(index) for index in buf_index_array]
        self._run(
            "unsafe-hide-buffer-access", hide_buffer_access.unsafe_hide_buffer_access,
            self._block(given), buf_type, indices,
        )  # fmt: skip
        self._record("UnsafeHideBufferAccess", [given], [buf_type, indices])

    @type_checked
    def annotate_buffer_access(
        self,
        block: BlockRV | str,
        buffer_index: int,
        buf_type: str,
        gen_new_ranges: IndexMap | Callable[..., Any],
    ) -> None:
        """State the region of a buffer that a block accesses.

        Parameters
        ----------
        block : BlockRV or str
        buffer_index : int
            The number of the region among the block's reads or writes.
        buf_type : str
            ``"read"`` or ``"write"``.
        gen_new_ranges : IndexMap or callable
            From the block's variables to an index or a pair of begin and end for each dimension.
        """
        given = self._block_rv(block)
        index_map = gen_new_ranges
        if not isinstance(index_map, IndexMap):
            function, axes = index_map, self._block(given).block.iter_vars
            variables = [axis.var.replace(name=axis.var.name) for axis in axes]
            sides = [
                side if isinstance(side, tuple) else (side, side + 1)
                for side in function(*variables)
            ]
            index_map = IndexMap(
                tuple(variables), tuple([as_expr(end) for side in sides for end in side])
            )
        self._run(
            "annotate-buffer-access", hide_buffer_access.annotate_buffer_access,
            self._block(given), buffer_index, buf_type, index_map,
        )  # fmt: skip
        self._record("AnnotateBufferAccess", [given], [buffer_index, buf_type, index_map])

    # ---- blocks as intrinsics

    @type_checked
    def blockize(
        self, target: LoopRV | Sequence[BlockRV], preserve_unit_iters: bool = True
    ) -> BlockRV:
        """A block around a loop.

        Parameters
        ----------
        target : LoopRV or list of BlockRV
            The loop; or blocks, for a block around all of them.
        preserve_unit_iters : bool
            Whether block variables of one value stay.
        """
        if isinstance(target, LoopRV):
            sref = self._run("blockize", blockize.blockize, self._loop(target), preserve_unit_iters)
        else:
            srefs = [self._block(self._block_rv(block)) for block in target]
            sref = self._run("blockize", blockize.blockize_blocks, srefs, preserve_unit_iters)
        found = self._new_block(sref)
        self._record("Blockize", [target], [preserve_unit_iters], [found])
        return found

    @type_checked
    def tensorize(
        self,
        block_or_loop: BlockRV | LoopRV | str,
        tensor_intrin: str | TensorIntrin,
        preserve_unit_iters: bool = True,
    ) -> None:
        """Do the work of a block, or inside a loop, by an intrinsic.

        Parameters
        ----------
        block_or_loop : BlockRV, LoopRV or str
        tensor_intrin : str
            The name that the intrinsic was registered by.
        preserve_unit_iters : bool
            Whether block variables of one value stay.
        """
        given: Any = (
            self._block_rv(block_or_loop) if isinstance(block_or_loop, str) else block_or_loop
        )
        intrin = (
            TensorIntrin.get(tensor_intrin) if isinstance(tensor_intrin, str) else tensor_intrin
        )
        self._run("tensorize", tensorize.tensorize, self._place(given), intrin, preserve_unit_iters)
        self._record("Tensorize", [given], [tensor_intrin, preserve_unit_iters])


def _index_dtype(buffer: Any) -> str:
    return str(buffer.shape[0].dtype) if buffer.shape else "int32"
