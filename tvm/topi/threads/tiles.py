"""Products of tensors in tiles: what a block reads is in shared memory, what a thread computes in its registers.

    for by, bx in blocks:                       C[by*64 : by*64 + 64, bx*64 : bx*64 + 64]
        for ko in range(K / 8):
            load A[by*64 .., ko*8 ..] and B[.., ..] by all threads; wait
            for ki in range(8):
                each thread: 4 x 4 of the results, in steps of the number of threads

Sizes are chosen by an estimate of what a block costs: products, reads of shared memory, and reads of global memory,
each at the rate of a processor of the device; with the blocks that have nothing to do where there are too few.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from tvm import te, tir

from ..utils import ceil_div
from .device import GpuInfo
from .reads import Reads, extent_of

# what a processor does in a cycle: products, reads of shared words, bytes of global memory
PRODUCTS = 128.0
SHARED_WORDS = 32.0
GLOBAL_BYTES = 10.0
THREADS_TO_HIDE_LATENCY = 512
BARRIER_CYCLES = 60.0
MOST_RESULTS = 32  # of a thread
FEWEST_REDUCED = 24  # shorter sums are no work for tiles
THREADS = (1, 2, 4, 8, 16, 32)
RESULTS = (1, 2, 4, 8)
CHUNKS = (4, 8, 16)


@dataclass(frozen=True)
class Tiling:
    """For each spatial axis the threads and the results of each; for each axis of the sum, the steps at once."""

    threads: tuple[int, ...]
    results: tuple[int, ...]
    chunks: tuple[int, ...]
    shared: tuple[te.Tensor, ...]

    @property
    def tile(self) -> tuple[int, ...]:
        """What a block computes of each spatial axis."""
        return tuple([t * r for t, r in zip(self.threads, self.results, strict=True)])


def find_tiling(reads: Reads, info: GpuInfo) -> Tiling | None:
    """The cheapest tiling, or None where tiles do not pay."""
    if prod(reads.reduced) < FEWEST_REDUCED or len(reads.reads) < 2 or not reads.spatial:
        return None
    best: tuple[float, Tiling] | None = None
    for tiling in _candidates(reads, info):
        cost = _cost(reads, tiling, info)
        if best is None or cost < best[0]:
            best = cost, tiling
    return None if best is None else best[1]


def _candidates(reads: Reads, info: GpuInfo) -> Iterator[Tiling]:
    """Tilings that fit; at most three axes have more than one element of a tile."""
    wide = sorted(
        [i for i, extent in enumerate(reads.spatial) if extent > 1],
        key=lambda i: (-reads.spatial[i], -i),
    )[:3]
    choices = [_axis_choices(reads.spatial[i], is_third=n == 2) for n, i in enumerate(wide)]
    least = min(32, prod(reads.spatial))
    chunks = list(_chunks(reads.reduced))
    for chosen in itertools.product(*choices):
        threads, results = [1] * len(reads.spatial), [1] * len(reads.spatial)
        for axis, (t, r) in zip(wide, chosen, strict=True):
            threads[axis], results[axis] = t, r
        count = prod(threads)
        if not least <= count <= min(256, info.max_threads) or prod(results) > MOST_RESULTS:
            continue
        for chunk in chunks:
            counts = [t * r for t, r in zip(threads, results, strict=True)] + list(chunk)
            shared = [
                read for read in reads.reads if _is_worth_sharing(read.footprint(counts), counts)
            ]
            size = sum([read.footprint(counts) * read.itemsize for read in shared])
            if shared and size <= min(info.shared_bytes, 32 << 10):
                tensors = tuple([read.tensor for read in shared])
                yield Tiling(tuple(threads), tuple(results), chunk, tensors)


def _axis_choices(extent: int, is_third: bool) -> list[tuple[int, int]]:
    threads = [t for t in THREADS if t < 2 * extent][: 3 if is_third else None]
    results = [r for r in RESULTS if r <= extent][: 2 if is_third else None]
    return [(t, r) for t in threads for r in results if t * r < 2 * extent]


def _chunks(extents: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The steps of the outermost axis of a sum at once, and of the others, which are short, all or one."""
    first, *others = extents
    sizes = sorted({min(size, first) for size in (*CHUNKS, 1, 2)})
    for size in sizes:
        if size * prod(others) <= 4 * max(CHUNKS):
            yield (size, *others)
        if others:
            yield (size, *[1] * len(others))


def _is_worth_sharing(footprint: int, counts: Sequence[int]) -> bool:
    """Whether the threads of a block read an element several times."""
    return prod(counts) >= 4 * footprint


def _cost(reads: Reads, tiling: Tiling, info: GpuInfo) -> float:
    """Cycles of the device for all blocks."""
    tile, chunk = tiling.tile, tiling.chunks
    blocks = prod([ceil_div(n, t) for n, t in zip(reads.spatial, tile, strict=True)])
    steps = prod([ceil_div(n, c) for n, c in zip(reads.reduced, chunk, strict=True)])
    threads = prod(tiling.threads)
    products = prod(tile) * prod(chunk)
    one_thread = [*tiling.results, *[1] * len(chunk)]
    shared_ids = {id(tensor) for tensor in tiling.shared}
    words, bytes_read = 0.0, 0.0
    for read in reads.reads:
        if id(read.tensor) in shared_ids:
            bytes_read += read.footprint([*tile, *chunk]) * read.itemsize
            words += read.footprint(one_thread) * threads * prod(chunk)
        else:
            bytes_read += read.footprint(one_thread) * threads * prod(chunk) * read.itemsize / 2
    cycles = max(products / PRODUCTS, words / SHARED_WORDS) + bytes_read / GLOBAL_BYTES
    if tiling.shared:
        cycles += BARRIER_CYCLES
    # as many blocks at once as hide each other's latency
    at_once = max(THREADS_TO_HIDE_LATENCY // threads, 1)
    rounds = ceil_div(blocks, info.processors * at_once)
    busy = at_once if blocks >= info.processors * at_once else max(blocks / info.processors, 1.0)
    return float(steps * cycles * rounds * busy * max(1.0, at_once / max(busy, 1.0)) ** 0.5)


def schedule_tiles(
    s: te.Schedule, op: te.tensor.ComputeOp, last: te.tensor.ComputeOp, tiling: Tiling
) -> None:
    """Schedule a reduction and the element-wise stage that it ends in."""
    result = op.output(0)
    caches = [_shared_stage(s, tensor, result) for tensor in tiling.shared]
    if op is last:
        local = s.cache_write(result, "local")
        place = result
    else:
        local, place = result, last.output(0)
        s[local].set_scope("local")
    loop, thread = _bind_tiles(s, place, tiling)
    s[local].compute_at(s[place], loop)
    outer, inner = [], []
    for axis, chunk in zip(s[local].op.reduce_axis, tiling.chunks, strict=True):
        step, rest = s[local].split(axis, factor=chunk)
        outer.append(step)
        inner.append(rest)
    s[local].reorder(*outer, *inner, *s[local].op.axis)
    for cache in caches:
        s[cache].compute_at(s[local], outer[-1])
        fused = s[cache].fuse(*s[cache].op.axis)
        _, mine = s[cache].split(fused, factor=extent_of(thread))
        s[cache].bind(mine, thread)


def _shared_stage(s: te.Schedule, tensor: te.Tensor, reader: te.Tensor) -> te.Tensor:
    """A stage that holds what a block reads of a tensor."""
    found: te.Tensor = s.cache_read(tensor, "shared", [reader])
    return found


def _bind_tiles(
    s: te.Schedule, place: te.Tensor, tiling: Tiling
) -> tuple[tir.IterVar, tir.IterVar]:
    """Blocks, results of a thread, threads; the loop of threads with its axis.

    The results of a thread are as many threads apart, so that neighbours access neighbouring elements.
    """
    blocks, several, threads = [], [], []
    for axis, count, results in zip(s[place].op.axis, tiling.threads, tiling.results, strict=True):
        block, rest = s[place].split(axis, factor=count * results)
        one, rest = s[place].split(rest, nparts=results)
        blocks.append(block)
        several.append(one)
        threads.append(rest)
    s[place].reorder(*blocks, *several, *threads)
    grid, loop = [
        loops[0] if len(loops) == 1 else s[place].fuse(*loops) for loops in (blocks, threads)
    ]
    s[place].bind(grid, te.thread_axis("blockIdx.x"))
    for number, (one, count) in enumerate(zip(several, tiling.results, strict=True)):
        if count > 1:
            s[place].bind(one, te.thread_axis("vthread", name=f"v{number}"))
    thread = te.thread_axis((0, prod(tiling.threads)), "threadIdx.x")
    s[place].bind(loop, thread)
    return loop, thread
