"""Schedules of matrix products on matrix units, for tests of what comes after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.ir.module import IRModule
from tvm.tir.function import PrimFunc
from tvm.tir.schedule import Schedule

_TILE = 16  # rows and columns of a product of the matrix unit


@dataclass(frozen=True)
class _MatrixUnit:
    """What tells one kind of matrix unit from another."""

    threads: int  # that hold one tile
    fragment_scope: str
    vector_bytes: int  # that a thread copies at once
    has_padding: bool  # rows in shared memory are apart


_MMA = _MatrixUnit(32, "warp", 16, True)
_MFMA = _MatrixUnit(64, "local", 8, False)
_BYTES = {"int8": 1, "float16": 2, "float32": 4}


def mma_schedule(
    workload: PrimFunc,
    k_inner: int,
    in_dtype: str,
    b_transposed: bool,
    i_factors: Sequence[int],
    j_factors: Sequence[int],
    k_factors: Sequence[int],
    index_map_A: Callable[..., Any],
    index_map_B: Callable[..., Any],
    index_map_C: Callable[..., Any],
    ldmatrix_a_intrin: str,
    ldmatrix_b_intrin: str,
    mma_intrin: str,
    mma_fill_intrin: str,
    mma_store_intrin: str,
    shared_scope: str = "shared",
) -> Schedule:
    """A schedule of a matrix product for the matrix units of NVIDIA's devices.

    Parameters
    ----------
    workload : PrimFunc
        The product, with a block "C" over i, j and k.
    k_inner : int
        How many products the unit sums at once.
    in_dtype : str
        The data type of the factors.
    b_transposed : bool
        Whether the second factor has k last.
    i_factors, j_factors, k_factors : list of int
        Five, five and three extents of the tiles' loops, from the outside.
    index_map_A, index_map_B, index_map_C : callable
        Where the elements of matrices are in the threads' registers.
    ldmatrix_a_intrin, ldmatrix_b_intrin, mma_intrin, mma_fill_intrin, mma_store_intrin : str
        The intrinsics that load the factors, multiply, start at zero and store.
    shared_scope : str
        The scope of the memory that the threads share.
    """
    return _scheduled(
        _MMA, workload, k_inner, in_dtype, b_transposed, (i_factors, j_factors, k_factors),
        (index_map_A, index_map_B, index_map_C), (ldmatrix_a_intrin, ldmatrix_b_intrin),
        (mma_intrin, mma_fill_intrin, mma_store_intrin), shared_scope,
    )  # fmt: skip


def mfma_schedule(
    workload: PrimFunc,
    k_inner: int,
    in_dtype: str,
    b_transposed: bool,
    i_factors: Sequence[int],
    j_factors: Sequence[int],
    k_factors: Sequence[int],
    index_map_A: Callable[..., Any],
    index_map_B: Callable[..., Any],
    index_map_C: Callable[..., Any],
    ldmatrix_a_intrin: str,
    ldmatrix_b_intrin: str,
    mfma_intrin: str,
    mfma_fill_intrin: str,
    mfma_store_intrin: str,
    shared_scope: str = "shared",
) -> Schedule:
    """A schedule of a matrix product for the matrix units of AMD's devices; see `mma_schedule`."""
    return _scheduled(
        _MFMA, workload, k_inner, in_dtype, b_transposed, (i_factors, j_factors, k_factors),
        (index_map_A, index_map_B, index_map_C), (ldmatrix_a_intrin, ldmatrix_b_intrin),
        (mfma_intrin, mfma_fill_intrin, mfma_store_intrin), shared_scope,
    )  # fmt: skip


def _scheduled(
    unit: _MatrixUnit,
    workload: PrimFunc,
    k_inner: int,
    in_dtype: str,
    b_transposed: bool,
    factors: Sequence[Sequence[int]],
    index_maps: Sequence[Callable[..., Any]],
    loads: Sequence[str],
    products: tuple[str, str, str],
    scope: str,
) -> Schedule:
    plan = _Plan(workload, unit, in_dtype, k_inner, scope)
    fragments = plan.tile(*factors)
    heights = (_TILE, _TILE if b_transposed else k_inner)
    widths = (k_inner, k_inner if b_transposed else _TILE)
    loops = plan.fragment_loops(fragments, heights, widths)
    plan.lay_out(fragments, index_maps)
    plan.use(fragments, loops, loads, *products)
    return plan.sch


class _Plan:
    """The steps of such a schedule."""

    def __init__(
        self, workload: PrimFunc, unit: _MatrixUnit, in_dtype: str, k_inner: int, scope: str
    ) -> None:
        self.unit, self.in_dtype, self.k_inner, self.scope = unit, in_dtype, k_inner, scope
        self.sch = Schedule(IRModule({"main": workload}))
        self.product = self.sch.get_block("C")

    def tile(self, *factors: Sequence[int]) -> tuple[Any, Any, Any]:
        """Split the loops, bind them to threads and make the blocks that hold fragments."""
        sch = self.sch
        outer, inner = zip(
            *[
                sch.split(loop, factors=[None, extent])
                for loop, extent in zip(
                    sch.get_loops(self.product), (_TILE, _TILE, self.k_inner), strict=True
                )
            ],
            strict=True,
        )
        sch.reorder(*outer, *inner)
        self.tiles = tiles = sch.blockize(inner[0])
        i, j, k = [
            sch.split(loop, factors=list(each)) for loop, each in zip(outer, factors, strict=True)
        ]
        sch.reorder(i[0], j[0], i[1], j[1], j[2], i[2], k[0], k[1], i[3], j[3], k[2], i[4], j[4])
        for pair, thread in (
            ((i[0], j[0]), "blockIdx.x"),
            ((i[1], j[1]), "blockIdx.y"),
            ((j[2], i[2]), "threadIdx.y"),
        ):
            bound = sch.fuse(*pair)
            sch.bind(bound, thread)
        warps = factors[0][2] * factors[1][2]
        for operand in range(2):
            self._share(operand, k[0], warps)
        fragments = [sch.cache_read(tiles, n, self.unit.fragment_scope) for n in range(2)]
        for fragment in fragments:
            sch.compute_at(fragment, k[1])
        result = sch.cache_write(tiles, 0, self.unit.fragment_scope)
        sch.reverse_compute_at(result, bound)
        self._split_tile(result, _TILE, _TILE)
        sch.decompose_reduction(tiles, sch.get_loops(tiles)[3])
        return fragments[0], fragments[1], result

    def _share(self, operand: int, loop: Any, warps: int) -> None:
        """Copy a factor to shared memory, all threads together."""
        sch, unit = self.sch, self.unit
        copy = sch.cache_read(self.tiles, operand, self.scope)
        sch.compute_at(copy, loop)
        lanes = unit.vector_bytes // _BYTES[self.in_dtype]
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, warp, thread, lane = sch.split(fused, factors=[None, warps, unit.threads, lanes])
        sch.bind(thread, "threadIdx.x")
        sch.bind(warp, "threadIdx.y")
        sch.vectorize(lane)
        if unit.has_padding:
            sch.storage_align(copy, 0, axis=-2, factor=32, offset=lanes)

    def _split_tile(self, block: Any, height: int, width: int) -> Any:
        """Split the last two loops of a block into tiles; the first loop within one."""
        sch = self.sch
        rows, columns = sch.get_loops(block)[-2:]
        row, inner_row = sch.split(rows, factors=[None, height])
        column, inner_column = sch.split(columns, factors=[None, width])
        sch.reorder(row, column, inner_row, inner_column)
        return inner_row

    def fragment_loops(
        self, fragments: Sequence[Any], heights: Sequence[int], widths: Sequence[int]
    ) -> list[Any]:
        """The loops over one tile of each factor."""
        return [
            self._split_tile(fragment, height, width)
            for fragment, height, width in zip(fragments[:2], heights, widths, strict=True)
        ]

    def lay_out(self, fragments: Sequence[Any], maps: Sequence[Callable[..., Any]]) -> None:
        """Give fragments the order of elements that the unit wants."""
        sides = ("write", "write", "read")
        for fragment, side, index_map in zip(fragments, sides, maps, strict=True):
            self.sch.transform_layout(fragment, (side, 0), index_map)

    def use(
        self,
        fragments: Sequence[Any],
        loops: Sequence[Any],
        loads: Sequence[str],
        multiply: str,
        fill: str,
        store: str,
    ) -> None:
        """Put the intrinsics in the places of loops."""
        sch = self.sch
        for loop, load in zip(loops, loads, strict=True):
            sch.tensorize(loop, load)
        sch.tensorize(sch.get_loops(self.product)[-3], multiply)
        sch.tensorize(sch.get_loops(sch.get_block("C_init"))[-2], fill)
        sch.tensorize(sch.get_loops(fragments[2])[-2], store)
