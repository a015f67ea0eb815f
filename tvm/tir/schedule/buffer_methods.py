"""Methods of `Schedule` that give intermediate buffers less, more or other room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._type_checker import type_checked
from .base import ScheduleBase
from .primitives import cache_at, cache_index, pad_einsum, rolling_buffer
from .random_variables import BlockRV, LoopRV


class BufferMethods(ScheduleBase):
    """Buffers that roll, buffers of indices, padded operands, copies in a loop."""

    @type_checked
    def rolling_buffer(self, block: BlockRV | str, write_buffer_index: int | str | Any) -> None:
        """Keep what neighbouring iterations share, in a buffer with room for one iteration.

        Along the outermost loop whose iterations overlap, the buffer is as large as what one iteration
        needs, and is written over in turns. Nothing that overlaps is computed twice.

        Parameters
        ----------
        block : BlockRV or str
            The only block that writes the buffer, in a loop that all its consumers are in too.
        write_buffer_index : int, str or Buffer
            The buffer, or its number among the block's writes.
        """
        given = self._block_rv(block)
        index = self._region_index(given, write_buffer_index, "write")
        self._run("rolling-buffer", rolling_buffer.rolling_buffer, self._block(given), index)
        self._record("RollingBuffer", [given], [index])

    @type_checked
    def cache_index(
        self, block: BlockRV | str, storage_scope: str, cse_thresh: int = 0
    ) -> list[BlockRV]:
        """Compute what a block's indices are made of once, before the loops around the block.

        The block's declared regions stay as they are: they do not name the buffers of indices.

        Parameters
        ----------
        block : BlockRV or str
            A block whose indices are dear to compute.
        storage_scope : str
            Where the computed values are.
        cse_thresh : int
            How often an expression has to occur in the block.

        Returns
        -------
        list of BlockRV
            The blocks that compute the values, the largest expression first.
        """
        given = self._block_rv(block)
        srefs = self._run(
            "cache-index", cache_index.cache_index, self._block(given), storage_scope, cse_thresh
        )
        found = [self._new_block(sref) for sref in srefs]
        self._record("CacheIndex", [given], [storage_scope, cse_thresh], found)
        return found

    @type_checked
    def pad_einsum(self, block: BlockRV | str, padding: Sequence[int]) -> None:
        """Let an einsum run over multiples of given extents.

        What it reads is copied to buffers with zeros behind, and what it computes is copied back without
        them.

        Parameters
        ----------
        block : BlockRV or str
            A block whose indices are its variables and constants, each variable a loop of its own. Along
            a reduction that is padded, zeros have to leave the result as it is.
        padding : list of int
            For each of the block's variables, what its extent is to be a multiple of.
        """
        given = self._block_rv(block)
        factors = [int(factor) for factor in padding]
        self._run("pad-einsum", pad_einsum.pad_einsum, self._block(given), factors)
        self._record("PadEinsum", [given], [factors])

    @type_checked
    def read_at(
        self,
        loop: LoopRV,
        block: BlockRV | str,
        read_buffer_index: int | str | Any,
        storage_scope: str,
    ) -> BlockRV:
        """Copy in each iteration of a loop what the blocks in it read of a buffer.

        Parameters
        ----------
        loop : LoopRV
            A loop around the block.
        block : BlockRV or str
            A block that reads the buffer.
        read_buffer_index : int, str or Buffer
            The buffer, or its number among the block's reads.
        storage_scope : str
            Where the copy is.

        Returns
        -------
        BlockRV
            The block that copies all of it; it is annotated ``auto_copy``.
        """
        return self._cache_at(
            "ReadAt", cache_at.read_at, "read", loop, block, read_buffer_index, storage_scope
        )

    @type_checked
    def write_at(
        self,
        loop: LoopRV,
        block: BlockRV | str,
        write_buffer_index: int | str | Any,
        storage_scope: str,
    ) -> BlockRV:
        """Let a block write to a buffer of its own, which is copied back in each iteration of a loop.

        Parameters
        ----------
        block : BlockRV or str
            The only block in the loop that uses the buffer.
        loop, write_buffer_index, storage_scope :
            As of :meth:`read_at`, of what the block writes.

        Returns
        -------
        BlockRV
            The block that copies all of it; it is annotated ``auto_copy``.
        """
        return self._cache_at(
            "WriteAt", cache_at.write_at, "write", loop, block, write_buffer_index, storage_scope
        )

    def _cache_at(
        self,
        kind: str,
        primitive: Callable[..., Any],
        access: str,
        loop: LoopRV,
        block: BlockRV | str,
        buffer: Any,
        storage_scope: str,
    ) -> BlockRV:
        given = self._block_rv(block)
        index = self._region_index(given, buffer, access)
        place, name = self._loop(loop), f"{access}-at"
        sref = self._run(name, primitive, place, self._block(given), index, storage_scope)
        found = self._new_block(sref)
        self._record(kind, [loop, given], [index, storage_scope], [found])
        return found
