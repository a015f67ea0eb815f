"""Methods of `Schedule` that draw numbers and places at random."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.tir.block_scope import StmtSRef

from ._type_checker import type_checked
from .base import MODULUS, ScheduleBase
from .primitives import sampling
from .random_variables import BlockRV, LoopRV
from .state import ScheduleState


class SamplingMethods(ScheduleBase):
    """What is drawn is kept in the trace as a decision, which a replay takes again."""

    def _draw(self, limit: int) -> int:
        """A number from 0 up to, but not, the limit."""
        return (self._next_random() - 1) * limit // (MODULUS - 1)

    @type_checked
    def sample_categorical(
        self,
        candidates: Sequence[int],
        probs: Sequence[float],
        decision: int | None = None,
    ) -> PrimExpr:
        """One of several numbers.

        Parameters
        ----------
        candidates : list of int
        probs : list of float
            How likely each is.
        decision : int, optional
            The index of the one to take.
        """
        values = [int(c) for c in candidates]
        weights = [float(getattr(p, "value", p)) for p in probs]
        if len(values) != len(weights):
            raise RuntimeValueError(
                f"sample_categorical requires a probability for each of {len(values)} candidates, "
                f"got {len(weights)}"
            )
        index = sampling.draw_index(self._draw, weights) if decision is None else int(decision)
        if not 0 <= index < len(values):
            raise RuntimeValueError(
                f"the decision requires an index up to {len(values) - 1}, got {index}"
            )
        found = self._new_number(values[index])
        self._record("SampleCategorical", [], [values, weights], [found], index)
        return found

    @type_checked
    def sample_perfect_tile(
        self,
        loop: LoopRV,
        n: int,
        max_innermost_factor: int = 16,
        decision: Sequence[int] | None = None,
    ) -> list[PrimExpr]:
        """Factors of a loop's extent.

        Parameters
        ----------
        loop : LoopRV
        n : int
            How many factors.
        max_innermost_factor : int
            The largest that the last one may be.
        decision : list of int, optional
            The factors to take.
        """
        extent = self._run("sample-perfect-tile", _extent, self._loop(loop))
        if decision is None:
            factors = sampling.perfect_tile(self._draw, extent, n, max_innermost_factor)
        else:
            factors = _fitted([int(factor) for factor in decision], extent)
        found = [self._new_number(factor) for factor in factors]
        self._record("SamplePerfectTile", [loop], [n, max_innermost_factor], found, factors)
        return list(found)

    @type_checked
    def sample_partitioned_tile(
        self,
        loop: LoopRV,
        n: int,
        partition_pos: int = 0,
        innerpart_factor: int = 1,
        decision: Sequence[int] | None = None,
    ) -> list[PrimExpr]:
        """Factors of a loop's extent, of which the inner ones have a product that a number divides.

        Parameters
        ----------
        loop : LoopRV
        n : int
            How many factors.
        partition_pos : int
            The position of the first inner factor.
        innerpart_factor : int
            What divides the product of the inner factors.
        decision : list of int, optional
            The factors to take.
        """
        extent = self._run("sample-partitioned-tile", _extent, self._loop(loop))
        if decision is None:
            factors = sampling.partitioned_tile(
                self._draw, extent, n, partition_pos, innerpart_factor
            )
        else:
            factors = _fitted([int(factor) for factor in decision], extent)
        found = [self._new_number(factor) for factor in factors]
        attrs = [n, partition_pos, innerpart_factor]
        self._record("SamplePartitionedTile", [loop], attrs, found, factors)
        return list(found)

    @type_checked
    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> LoopRV:
        """A loop at which a block may be computed.

        Parameters
        ----------
        block : BlockRV or str
        decision : int, optional
            The number of the loop to take; -1 for the place where it is, -2 for inlining.
        """
        given = self._block_rv(block)
        places, numbers = self._run(
            "sample-compute-location", sampling.compute_locations, self._block(given)
        )
        if decision is None:
            at = self._draw(len(places))
        else:
            wanted = int(decision)
            # a loop that is gone is replaced by the nearest one outside
            at = max([i for i, number in enumerate(numbers) if number <= wanted], default=0)
        found = LoopRV()
        self._srefs[found] = places[at]
        self._record("SampleComputeLocation", [given], [], [found], numbers[at])
        return found


def _extent(state: ScheduleState, loop: StmtSRef) -> int:
    del state
    return sampling.constant_extent(loop)


def _fitted(factors: list[int], extent: int) -> list[int]:
    """The factors of a decision, the first one such that the product is the extent again."""
    rest = 1
    for factor in factors[1:]:
        rest *= factor
    return [-(-extent // rest), *factors[1:]]
