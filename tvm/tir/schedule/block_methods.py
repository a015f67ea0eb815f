"""Methods of `Schedule` that move and cache blocks, and take reductions apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.error import ScheduleError
from tvm.tir.block_scope import StmtSRef

from ._type_checker import type_checked
from .base import ScheduleBase
from .primitives import cache, compute_at, compute_inline, padding, reduction, rfactor
from .random_variables import BlockRV, LoopRV


class BlockMethods(ScheduleBase):
    """Where blocks are computed, what they read and write."""

    # ---- caches

    @type_checked
    def cache_read(
        self,
        block: BlockRV | str,
        read_buffer_index: int | str | Any,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """A copy of what a block reads.

        Parameters
        ----------
        block : BlockRV or str
            A block that reads the buffer.
        read_buffer_index : int, str or Buffer
            The buffer, or its number among the block's reads.
        storage_scope : str
            Where the copy is.
        consumer_blocks : list of BlockRV or str, optional
            The blocks that read the copy; all that read the buffer by default.

        Returns
        -------
        BlockRV
            The block that copies.
        """
        return self._cache("CacheRead", cache.cache_read, "read", block, read_buffer_index,
                           storage_scope, consumer_blocks)  # fmt: skip

    @type_checked
    def cache_write(
        self,
        block: BlockRV | str,
        write_buffer_index: int | str | Any,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None = None,
    ) -> BlockRV:
        """A buffer that a block writes first, and that is copied to where it wrote before.

        Parameters
        ----------
        block : BlockRV or str
            The block that writes.
        write_buffer_index, storage_scope, consumer_blocks :
            As of :meth:`cache_read`, of what the block writes.

        Returns
        -------
        BlockRV
            The block that copies.
        """
        return self._cache("CacheWrite", cache.cache_write, "write", block, write_buffer_index,
                           storage_scope, consumer_blocks)  # fmt: skip

    def _cache(
        self,
        kind: str,
        primitive: Callable[..., Any],
        access: str,
        block: BlockRV | str,
        buffer: Any,
        storage_scope: str,
        consumer_blocks: Sequence[BlockRV | str] | None,
    ) -> BlockRV:
        given = self._block_rv(block)
        consumers = [self._block_rv(consumer) for consumer in consumer_blocks or ()]
        index = self._region_index(given, buffer, access)
        srefs = [self._block(consumer) for consumer in consumers]
        name = f"cache-{access}"
        sref = self._run(name, primitive, self._block(given), index, storage_scope, srefs)
        found = self._new_block(sref)
        self._record(kind, [given, consumers], [index, storage_scope], [found])
        return found

    @type_checked
    def cache_inplace(
        self, block: BlockRV | str, read_buffer_index: int | str | Any, storage_scope: str
    ) -> list[BlockRV]:
        """A copy of a buffer that a block changes in place, before it and back after it.

        Parameters
        ----------
        block : BlockRV or str
        read_buffer_index : int, str or Buffer
        storage_scope : str

        Returns
        -------
        list of BlockRV
            The block that copies there, and the one that copies back.
        """
        given = self._block_rv(block)
        index = self._region_index(given, read_buffer_index, "read")
        srefs = self._run(
            "cache-inplace", cache.cache_inplace, self._block(given), index, storage_scope
        )
        found = [self._new_block(sref) for sref in srefs]
        self._record("CacheInplace", [given], [index, storage_scope], found)
        return found

    # ---- where blocks are computed

    @type_checked
    def compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Compute what the blocks inside a loop need of a block right there.

        Parameters
        ----------
        block : BlockRV or str
            The block that is moved.
        loop : LoopRV
            A loop around all the blocks that use it.
        preserve_unit_loops : bool
            Whether to keep loops of one iteration.
        index : int
            Before which statement of the loop's body; -1 for the last place possible, -2 for the first.
        """
        self._compute_at(
            "ComputeAt", compute_at.compute_at, block, loop, preserve_unit_loops, index
        )

    @type_checked
    def reverse_compute_at(
        self,
        block: BlockRV | str,
        loop: LoopRV,
        preserve_unit_loops: bool = False,
        index: int = -1,
    ) -> None:
        """Use what the blocks inside a loop compute right there.

        Parameters
        ----------
        block, preserve_unit_loops, index :
            As of :meth:`compute_at`.
        loop : LoopRV
            A loop around all the blocks that it uses.
        """
        self._compute_at(
            "ReverseComputeAt",
            compute_at.reverse_compute_at,
            block,
            loop,
            preserve_unit_loops,
            index,
        )

    def _compute_at(
        self,
        kind: str,
        primitive: Callable[..., Any],
        block: Any,
        loop: LoopRV,
        keep: bool,
        index: int,
    ) -> None:
        given = self._block_rv(block)
        place = self._loop(loop)
        name = "compute-at" if kind == "ComputeAt" else "reverse-compute-at"
        inlines = (
            compute_inline.compute_inline
            if kind == "ComputeAt"
            else compute_inline.reverse_compute_inline
        )
        # sample_compute_location gives marks for the places that are no loops
        if place is StmtSRef.inline_mark():
            self._run(name, inlines, self._block(given))
        elif place is not StmtSRef.root_mark():
            self._run(name, primitive, self._block(given), place, keep, index)
        self._record(kind, [given, loop], [keep, index])

    @type_checked
    def compute_inline(self, block: BlockRV | str) -> None:
        """Compute a block's result where it is used.

        Parameters
        ----------
        block : BlockRV or str
            A block that stores one value at its variables.
        """
        given = self._block_rv(block)
        self._run("compute-inline", compute_inline.compute_inline, self._block(given))
        self._record("ComputeInline", [given])

    @type_checked
    def reverse_compute_inline(self, block: BlockRV | str) -> None:
        """Compute a block's result right where what it uses is computed.

        Parameters
        ----------
        block : BlockRV or str
            A block that uses one element of one other block.
        """
        given = self._block_rv(block)
        self._run(
            "reverse-compute-inline", compute_inline.reverse_compute_inline, self._block(given)
        )
        self._record("ReverseComputeInline", [given])

    # ---- reductions

    @type_checked
    def decompose_reduction(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Initialise a reduction before a loop.

        Parameters
        ----------
        block : BlockRV or str
            The reduction.
        loop : LoopRV
            A loop around it.

        Returns
        -------
        BlockRV
            The block of the initialisation.
        """
        given = self._block_rv(block)
        sref = self._run(
            "decompose-reduction",
            reduction.decompose_reduction,
            self._block(given),
            self._loop(loop),
        )
        found = self._new_block(sref)
        self._record("DecomposeReduction", [given, loop], [], [found])
        return found

    @type_checked
    def rfactor(self, loop: LoopRV, factor_axis: int) -> BlockRV:
        """Reduce to one partial result for each iteration of a loop, and those to the result.

        Parameters
        ----------
        loop : LoopRV
            A loop over which one block reduces.
        factor_axis : int
            Where the partial results have the new dimension.

        Returns
        -------
        BlockRV
            The block of the partial results.
        """
        found = self._new_block(
            self._run("rfactor", rfactor.rfactor, self._loop(loop), factor_axis)
        )
        self._record("RFactor", [loop], [factor_axis], [found])
        return found

    @type_checked
    def decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> BlockRV:
        """Fill with the value of a padding before a loop, and copy what is inside in the loop.

        Parameters
        ----------
        block : BlockRV or str
            A block that stores a value or, in the padding, a constant.
        loop : LoopRV
            A loop around it.

        Returns
        -------
        BlockRV
            The block that fills.
        """
        given = self._block_rv(block)
        sref = self._run(
            "decompose-padding", padding.decompose_padding, self._block(given), self._loop(loop)
        )
        found = self._new_block(sref)
        self._record("DecomposePadding", [given, loop], [], [found])
        return found

    @type_checked
    def can_decompose_padding(self, block: BlockRV | str, loop: LoopRV) -> bool:
        """Whether :meth:`decompose_padding` applies.

        Parameters
        ----------
        block : BlockRV or str
        loop : LoopRV
        """
        trial = self.copy()  # type: ignore[attr-defined]
        try:
            trial.decompose_padding(self._block_rv(block), loop)
        except ScheduleError:
            return False
        return True
