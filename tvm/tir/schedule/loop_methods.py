"""Methods of `Schedule` that find blocks and loops and transform loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.tir.expr import as_expr

from ._type_checker import type_checked
from .base import ScheduleBase
from .primitives import annotation, for_kind, get, loop_partition, loops, merge
from .random_variables import BlockRV, LoopRV
from .tree import loops_of


class LoopMethods(ScheduleBase):
    """Finding blocks and loops; split, fuse, reorder, how loops run."""

    # ---- finding

    @type_checked
    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of a name.

        Parameters
        ----------
        name : str
            The block's name.
        func_name : str, optional
            The function it is in; by default the one that is worked on.
        """
        if func_name is not None:
            gvar = self.mod.get_global_var(func_name)
        elif self._working_on is None:
            raise RuntimeValueError(
                "The schedule does not know which function to be working on, and get_block was "
                "called without func_name; hint: sch.work_on(func_name)"
            )
        else:
            gvar = self._working_on
        found = self._new_block(self._run("get-block", get.get_block, name, gvar))
        self._record("GetBlock", [], [name, gvar.name_hint], [found])
        return found

    @type_checked
    def get_loops(self, block: BlockRV | str) -> list[LoopRV]:
        """The loops around a block in its scope, the outermost first.

        Parameters
        ----------
        block : BlockRV or str
        """
        given = self._block_rv(block)
        found = [self._new_loop(sref) for sref in loops_of(self._block(given))]
        self._record("GetLoops", [given], [], found)
        return found

    @type_checked
    def get_child_blocks(self, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
        """The blocks directly inside a block or a loop.

        Parameters
        ----------
        block_or_loop : BlockRV or LoopRV
        """
        place = self._place(block_or_loop)
        srefs = self._run("get-child-blocks", get.get_child_blocks, place)
        return self._found("GetChildBlocks", block_or_loop, srefs)

    @type_checked
    def get_producers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks whose results a block uses.

        Parameters
        ----------
        block : BlockRV or str
        """
        return self._near_block("GetProducers", "get-producers", get.get_producers, block)

    @type_checked
    def get_consumers(self, block: BlockRV | str) -> list[BlockRV]:
        """The blocks that use a block's results.

        Parameters
        ----------
        block : BlockRV or str
        """
        return self._near_block("GetConsumers", "get-consumers", get.get_consumers, block)

    @type_checked
    def get_output_blocks(self, scope_block: BlockRV | str) -> list[BlockRV]:
        """The blocks inside another one that write what outlives it.

        Parameters
        ----------
        scope_block : BlockRV or str
        """
        return self._near_block(
            "GetOutputBlocks", "get-output-blocks", get.get_output_blocks, scope_block
        )

    def _near_block(
        self, kind: str, name: str, primitive: Callable[..., Any], block: BlockRV | str
    ) -> list[BlockRV]:
        given = self._block_rv(block)
        return self._found(kind, given, self._run(name, primitive, self._block(given)))

    def _found(self, kind: str, given: Any, srefs: Sequence[Any]) -> list[BlockRV]:
        found = [self._new_block(sref) for sref in srefs]
        self._record(kind, [given], [], found)
        return found

    # ---- loops

    @type_checked
    def merge(self, *loops_to_merge: LoopRV) -> LoopRV:
        """One loop in the place of loops that stand side by side, at the same depth and of one extent.

        Parameters
        ----------
        loops_to_merge : LoopRV
            Two or more loops, in the order of execution.
        """
        srefs = [self._loop(loop) for loop in loops_to_merge]
        found = self._new_loop(self._run("merge", merge.merge, srefs))
        self._record("Merge", loops_to_merge, [], [found])
        return found

    @type_checked
    def fuse(self, *loops_to_fuse: LoopRV, preserve_unit_iters: bool = True) -> LoopRV:
        """One loop in the place of loops that are each the only thing inside the one before.

        Parameters
        ----------
        loops_to_fuse : LoopRV
            The loops, the outermost first.
        preserve_unit_iters : bool
            Whether block variables of one value stay.
        """
        srefs = [self._loop(loop) for loop in loops_to_fuse]
        if not srefs:
            raise RuntimeValueError("fuse requires at least one loop")
        found = self._new_loop(self._run("fuse", loops.fuse, srefs, preserve_unit_iters))
        self._record("Fuse", loops_to_fuse, [preserve_unit_iters], [found])
        return found

    @type_checked
    def split(
        self,
        loop: LoopRV,
        factors: Sequence[int | PrimExpr | None],
        preserve_unit_iters: bool = True,
        disable_predication: bool = False,
    ) -> list[LoopRV]:
        """Nested loops in the place of one.

        Parameters
        ----------
        loop : LoopRV
            A loop from 0, without annotation and thread binding.
        factors : list of int, ExprRV or None
            The extents of the new loops; one may be None.
        preserve_unit_iters : bool
            Whether block variables of one value stay.
        disable_predication : bool
            Leave the check out that the index is inside the old loop; the result is right only where
            that is known.
        """
        values = [None if f is None else as_expr(self._evaluated(f)) for f in factors]
        srefs = self._run(
            "split", loops.split, self._loop(loop), values, preserve_unit_iters, disable_predication
        )
        found = [self._new_loop(sref) for sref in srefs]
        attrs = [preserve_unit_iters, disable_predication]
        self._record("Split", [loop, *factors], attrs, found)
        return found

    @type_checked
    def loop_partition(
        self,
        loop: LoopRV,
        factors: Sequence[int | PrimExpr | None],
        preserve_unit_iters: bool = True,
    ) -> list[LoopRV]:
        """Loops one after the other in the place of one.

        Parameters
        ----------
        loop : LoopRV
            A loop from 0, without annotation and thread binding.
        factors : list of int, ExprRV or None
            The extents of the new loops; one may be None. What is left over is a loop of its own.
        preserve_unit_iters : bool
            Whether block variables of one value stay.
        """
        values = [None if f is None else as_expr(self._evaluated(f)) for f in factors]
        srefs = self._run(
            "loop_partition", loop_partition.loop_partition, self._loop(loop), values,
            preserve_unit_iters,
        )  # fmt: skip
        found = [self._new_loop(sref) for sref in srefs]
        self._record("LoopPartition", [loop, *factors], [preserve_unit_iters], found)
        return found

    @type_checked
    def reorder(self, *ordered_loops: LoopRV) -> None:
        """Bring loops of one chain into another order.

        Parameters
        ----------
        ordered_loops : LoopRV
            The loops in their new order; others of the chain stay where they are.
        """
        srefs = [self._loop(loop) for loop in ordered_loops]
        self._run("reorder", loops.reorder, srefs)
        self._record("Reorder", ordered_loops)

    @type_checked
    def reorder_block_iter_var(self, block: BlockRV | str, new_order: Sequence[int]) -> None:
        """Bring a block's iteration variables into another order.

        Parameters
        ----------
        block : BlockRV or str
        new_order : list of int
            The positions of the variables, in their new order.
        """
        given = self._block_rv(block)
        order = [int(position) for position in new_order]
        self._run("reorder_block_iter_var", loops.reorder_block_iter_var, self._block(given), order)
        self._record("ReorderBlockIterVar", [given], [order])

    @type_checked
    def add_unit_loop(self, block_or_loop: LoopRV | BlockRV) -> LoopRV:
        """A loop of one iteration around a loop or a block.

        Parameters
        ----------
        block_or_loop : LoopRV or BlockRV
        """
        sref = self._run("add-unit-loop", loops.add_unit_loop, self._place(block_or_loop))
        found = self._new_loop(sref)
        self._record("AddUnitLoop", [block_or_loop], [], [found])
        return found

    # ---- how loops run

    @type_checked
    def parallel(self, loop: LoopRV) -> None:
        """Execute a loop's iterations on several cores.

        Parameters
        ----------
        loop : LoopRV
        """
        self._run("parallel", for_kind.parallel, self._loop(loop))
        self._record("Parallel", [loop])

    @type_checked
    def vectorize(self, loop: LoopRV) -> None:
        """Execute a loop's iterations as lanes of vectors.

        Parameters
        ----------
        loop : LoopRV
        """
        self._run("vectorize", for_kind.vectorize, self._loop(loop))
        self._record("Vectorize", [loop])

    @type_checked
    def bind(self, loop: LoopRV, thread_axis: str) -> None:
        """Execute a loop's iterations on threads.

        Parameters
        ----------
        loop : LoopRV
        thread_axis : str
            Such as ``"blockIdx.x"``, ``"threadIdx.y"``, ``"vthread.x"``.
        """
        self._run("bind", for_kind.bind, self._loop(loop), thread_axis)
        self._record("Bind", [loop], [thread_axis])

    @type_checked
    def unroll(self, loop: LoopRV) -> None:
        """Write a loop's iterations out one after the other.

        Parameters
        ----------
        loop : LoopRV
        """
        self._run("unroll", for_kind.unroll, self._loop(loop))
        self._record("Unroll", [loop])

    # ---- annotations

    @type_checked
    def annotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str, ann_val: Any) -> None:
        """Annotate a block or a loop.

        Parameters
        ----------
        block_or_loop : BlockRV or LoopRV
        ann_key : str
        ann_val : str, int, float, ExprRV, or lists and dictionaries of them
        """
        place = self._place(self._block_or_loop(block_or_loop))
        self._run("annotate", annotation.annotate, place, ann_key, self._evaluated(ann_val))
        self._record("Annotate", [block_or_loop, ann_val], [ann_key])

    @type_checked
    def unannotate(self, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
        """Take an annotation off a block or a loop.

        Parameters
        ----------
        block_or_loop : BlockRV or LoopRV
        ann_key : str
        """
        place = self._place(self._block_or_loop(block_or_loop))
        self._run("unannotate", annotation.unannotate, place, ann_key)
        self._record("Unannotate", [block_or_loop], [ann_key])

    def _block_or_loop(self, given: Any) -> Any:
        return self._block_rv(given) if isinstance(given, str) else given
