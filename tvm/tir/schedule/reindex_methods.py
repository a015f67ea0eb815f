"""Methods of `Schedule` that give blocks copies of buffers with indices of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.tir.index_map import IndexMap

from ._type_checker import type_checked
from .base import ScheduleBase
from .primitives import reindex
from .random_variables import BlockRV


class ReindexMethods(ScheduleBase):
    """Copies that are accessed at the block's variables, or at expressions of them."""

    @type_checked
    def reindex_cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int,
        storage_scope: str,
        index_map: IndexMap | Callable[..., Any],
    ) -> BlockRV:
        """A copy of what a block reads, with one index for each of given expressions of its variables.

        Parameters
        ----------
        block : BlockRV or str
        read_buffer_index : int
        storage_scope : str
        index_map : IndexMap or callable
            From the block's iteration variables to the indices in the copy.

        Returns
        -------
        BlockRV
            The block that copies.
        """
        return self._reindex_cache("ReindexCacheRead", block, read_buffer_index, storage_scope,
                                   index_map, "read")  # fmt: skip

    @type_checked
    def reindex_cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int,
        storage_scope: str,
        index_map: IndexMap | Callable[..., Any],
    ) -> BlockRV:
        """A buffer that a block writes first, with one index for each of given expressions.

        Parameters
        ----------
        block, write_buffer_index, storage_scope, index_map :
            As of :meth:`reindex_cache_read`, of what the block writes.

        Returns
        -------
        BlockRV
            The block that copies.
        """
        return self._reindex_cache("ReindexCacheWrite", block, write_buffer_index, storage_scope,
                                   index_map, "write")  # fmt: skip

    def _reindex_cache(
        self, kind: str, block: BlockRV | str, index: int, scope: str, index_map: Any, access: str
    ) -> BlockRV:
        given = self._block_rv(block)
        if callable(index_map) and not isinstance(index_map, IndexMap):
            axes = self._block(given).block.iter_vars
            dtype = axes[0].var.dtype if axes else "int32"
            index_map = IndexMap.from_func(index_map, ndim=len(axes), index_dtype=dtype)
        primitive = reindex.reindex_cache_read if access == "read" else reindex.reindex_cache_write
        number = self._region_index(given, index, access)
        sref = self._run(
            f"reindex_cache_{access}", primitive, self._block(given), number, scope,
            self._evaluated(index_map),
        )  # fmt: skip
        found = self._new_block(sref)
        self._record(kind, [given, index_map], [number, scope], [found])
        return found

    @type_checked
    def reindex(self, block: BlockRV | str, buffer: Any) -> BlockRV:
        """A copy of a buffer that has the block's iteration variables as its indices.

        Parameters
        ----------
        block : BlockRV or str
        buffer : (str, int), str or Buffer
            ``("read", 0)``, the buffer's name, or itself.

        Returns
        -------
        BlockRV
            The block that copies.
        """
        given = self._block_rv(block)
        kind, index, _ = self._buffer_index(given, buffer)
        sref = self._run("reindex", reindex.reindex, self._block(given), kind, index)
        found = self._new_block(sref)
        self._record("Reindex", [given], [index, kind], [found])
        return found
