"""Matrix products scheduled for wmma fragments, as a user writes them."""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.tir.tensor_intrin.cuda import get_wmma_intrin_group

TILE = 16


def product(size: int, in_dtype: str, out_dtype: str, b_transposed: bool) -> tir.PrimFunc:
    a, b = [te.placeholder((size, size), in_dtype, name=name) for name in "AB"]
    k = te.reduce_axis((0, size), name="k")

    def element(i: Any, j: Any) -> Any:
        right = b[j, k] if b_transposed else b[k, j]
        return te.sum(a[i, k].astype(out_dtype) * right.astype(out_dtype), axis=k)

    return te.create_prim_func([a, b, te.compute((size, size), element, name="C")])


def wmma_schedule(
    size: int = 32,
    in_dtype: str = "float16",
    out_dtype: str = "float32",
    b_transposed: bool = False,
    store_scope: str = "global",
) -> tir.Schedule:
    """Two warps of a block compute two rows of tiles each."""
    sch = tir.Schedule(product(size, in_dtype, out_dtype, b_transposed))
    names = get_wmma_intrin_group("shared", store_scope, in_dtype, out_dtype, b_transposed)
    loops = sch.get_loops(sch.get_block("C"))
    tiles, inner = zip(*[sch.split(loop, [None, TILE]) for loop in loops], strict=True)
    sch.reorder(*tiles, *inner)
    tile = sch.blockize(inner[0])
    warp, i = sch.split(tiles[0], [2, None])
    block, j = sch.split(tiles[1], [None, 2])
    outer_k, k = sch.split(tiles[2], [None, 2])
    sch.reorder(block, warp, outer_k, k, i, j)
    sch.bind(block, "blockIdx.x")
    sch.bind(warp, "threadIdx.y")
    written = sch.cache_write(tile, 0, store_scope) if store_scope == "shared" else None
    sums = sch.cache_write(tile, 0, "wmma.accumulator")
    sch.reverse_compute_at(sums, warp)
    if written is not None:
        sch.reverse_compute_at(written, block)
        _copy_by_threads(sch, written)
    for index, matrix in enumerate("ab"):
        shared = sch.cache_read(tile, index, "shared")
        fragment = sch.cache_read(tile, index, f"wmma.matrix_{matrix}")
        sch.compute_at(fragment, k)
        sch.compute_at(shared, outer_k)
        _copy_by_threads(sch, shared)
        _tensorize(sch, fragment, names[f"load_{matrix}"])
    init = sch.get_child_blocks(sch.decompose_reduction(tile, outer_k))[0]
    sch.tensorize(sch.get_loops(init)[-2], names["init"])
    [update] = sch.get_child_blocks(sch.get_block("C_o_update"))
    sch.tensorize(sch.get_loops(update)[-3], names["compute"])
    _tensorize(sch, sums, names["store"])
    return sch


def _copy_by_threads(sch: tir.Schedule, block: Any) -> None:
    """Each thread copies four neighbours."""
    _, y, x, vector = sch.split(sch.fuse(*sch.get_loops(block)[-2:]), [None, 2, 32, 4])
    sch.bind(y, "threadIdx.y")
    sch.bind(x, "threadIdx.x")
    sch.vectorize(vector)


def _tensorize(sch: tir.Schedule, block: Any, intrin: str) -> None:
    """Copy a block's elements tile by tile."""
    outer, inner = zip(
        *[sch.split(loop, [None, TILE]) for loop in sch.get_loops(block)[-2:]], strict=True
    )
    sch.reorder(*outer, *inner)
    sch.tensorize(inner[0], intrin)
