"""Schedules drawn at random: whatever a primitive accepts computes what the program did before.

usage: python -m tests.tir.schedule.random_traces [count] [first seed]
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.tir.schedule.zoo import ZOO
from tvm.ir import structural_equal
from tvm.tir import PrimFunc, Schedule, ScheduleError
from tvm.tir.interp import interpret

STEPS = 8
TOLERANCE = 1e-4


def require_same_results(sch: Schedule, original: PrimFunc) -> None:
    """The schedule's function computes what the original one does."""
    for found, wanted in zip(run(sch.mod["main"]), run(original), strict=True):
        np.testing.assert_allclose(found, wanted, 1e-4, 1e-5)


def run(func: PrimFunc) -> list[Any]:
    """The function's arrays after a run on numbers that are the same each time."""
    numbers = np.random.default_rng(0)
    arrays = []
    for param in func.params:
        buffer = func.buffer_map[param]
        shape = [int(extent) for extent in buffer.shape]  # type: ignore[call-overload]
        low, high = (-1, 1) if buffer.dtype.is_float else (0, 5)
        arrays.append(numbers.uniform(low, high, shape).astype(buffer.dtype))
    interpret(func, *arrays)
    return arrays


class RandomScheduler:
    """Applies primitives drawn at random to a program; those that are rejected leave it as it is."""

    def __init__(self, func: PrimFunc, seed: int) -> None:
        self.random = random.Random(seed)
        self.sch = Schedule(func, seed=seed + 1, debug_mask="all")
        self.applied: list[str] = []
        self.moves: list[Callable[[], Any]] = [
            self.split, self.split, self.fuse, self.reorder, self.parallel, self.unroll,
            self.compute_at, self.reverse_compute_at, self.compute_inline,
            self.reverse_compute_inline, self.cache_read, self.cache_write,
            self.decompose_reduction, self.add_unit_loop, self.bind, self.vectorize,
            self.rfactor, self.rfactor, self.blockize, self.transform_layout, self.set_scope,
            self.merge, self.cache_inplace, self.transform_block_layout, self.reindex,
            self.decompose_padding, self.loop_partition, self.rolling_buffer, self.rolling_buffer,
            self.pad_einsum, self.cache_index, self.read_at, self.write_at, self.storage_align,
            self.reorder_block_iter_var, self.reindex_cache_read, self.reindex_cache_write,
            self.blockize_all, self.sample, self.transform_read_layout, self.reindex_read,
            self.separate_axes,
        ]  # fmt: skip

    def step(self) -> None:
        """Try one primitive."""
        move = self.random.choice(self.moves)
        try:
            move()
        except (ScheduleError, IndexError, AssertionError) as rejected:
            # a region or a loop that was drawn does not exist
            if isinstance(rejected, AssertionError) and "regions, got index" not in str(rejected):
                raise
            return
        self.applied.append(move.__name__)

    def block(self) -> Any:
        blocks = self.sch.get_child_blocks(self.sch.get_block("root"))
        return self.random.choice(blocks)

    def loop(self) -> Any:
        loops = self.sch.get_loops(self.block())
        return self.random.choice(loops)

    def split(self) -> None:
        factor = self.random.choice([2, 3, 4, 5])
        factors = [None, factor] if self.random.random() < 0.7 else [factor, None]
        self.sch.split(self.loop(), factors)

    def fuse(self) -> None:
        loops = self.sch.get_loops(self.block())
        at = self.random.randrange(max(1, len(loops) - 1))
        self.sch.fuse(*(loops[at : at + 2] or [self.loop()]))

    def reorder(self) -> None:
        loops = self.sch.get_loops(self.block())
        self.sch.reorder(*self.random.sample(loops, min(len(loops), 3)))

    def parallel(self) -> None:
        self.sch.parallel(self.loop())

    def vectorize(self) -> None:
        self.sch.vectorize(self.loop())

    def unroll(self) -> None:
        self.sch.unroll(self.loop())

    def bind(self) -> None:
        self.sch.bind(self.loop(), "blockIdx.x")

    def add_unit_loop(self) -> None:
        self.sch.add_unit_loop(self.loop())

    def compute_at(self) -> None:
        self.sch.compute_at(self.block(), self.loop(), self.random.random() < 0.3)

    def reverse_compute_at(self) -> None:
        self.sch.reverse_compute_at(self.block(), self.loop(), self.random.random() < 0.3)

    def compute_inline(self) -> None:
        self.sch.compute_inline(self.block())

    def reverse_compute_inline(self) -> None:
        self.sch.reverse_compute_inline(self.block())

    def cache_read(self) -> None:
        self.sch.cache_read(self.block(), self.random.randrange(2), "global")

    def cache_write(self) -> None:
        self.sch.cache_write(self.block(), 0, "global")

    def rfactor(self) -> None:
        self.sch.rfactor(self.loop(), self.random.choice([0, -1]))

    def blockize(self) -> None:
        self.sch.blockize(self.loop(), self.random.random() < 0.5)

    def merge(self) -> None:
        self.sch.merge(self.loop(), self.loop())

    def cache_inplace(self) -> None:
        self.sch.cache_inplace(self.block(), 0, "global")

    def set_scope(self) -> None:
        self.sch.set_scope(self.block(), 0, "shared")

    def transform_layout(self) -> None:
        block = self.block()
        if self.sch.get(block).writes[0].buffer in self.sch.mod["main"].buffer_map.values():
            return
        step = self.random.choice([2, 4])
        maps = [
            lambda *i: [*i[:-1], i[-1] // step, i[-1] % step],
            lambda *i: i[::-1],
            lambda *i: [i[0] // step, *i[1:], i[0] % step],
        ]
        self.sch.transform_layout(block, ("write", 0), self.random.choice(maps))

    def reindex(self) -> None:
        self.sch.reindex(self.block(), (self.random.choice(["read", "write"]), 0))

    def decompose_padding(self) -> None:
        block = self.block()
        self.sch.decompose_padding(block, self.random.choice(self.sch.get_loops(block)))

    def loop_partition(self) -> None:
        self.sch.loop_partition(self.loop(), [2, None])

    def rolling_buffer(self) -> None:
        block = self.block()
        for consumer in self.sch.get_consumers(block)[:1]:
            self.sch.compute_at(block, self.random.choice(self.sch.get_loops(consumer)))
        self.sch.rolling_buffer(block, 0)

    def pad_einsum(self) -> None:
        block = self.block()
        axes = self.sch.get(block).iter_vars
        self.sch.pad_einsum(block, [self.random.choice([1, 3, 4]) for _ in axes])

    def cache_index(self) -> None:
        self.sch.cache_index(self.block(), "global", self.random.choice([0, 2]))

    def read_at(self) -> None:
        block = self.block()
        loop = self.random.choice(self.sch.get_loops(block))
        self.sch.read_at(loop, block, self.random.randrange(2), "global")

    def write_at(self) -> None:
        block = self.block()
        self.sch.write_at(self.random.choice(self.sch.get_loops(block)), block, 0, "global")

    def transform_block_layout(self) -> None:
        self.sch.transform_block_layout(self.block(), lambda *i: i[::-1])

    def storage_align(self) -> None:
        self.sch.storage_align(self.block(), 0, self.random.choice([-2, -1, 0]), 8, 3)

    def reorder_block_iter_var(self) -> None:
        block = self.block()
        order = list(range(len(self.sch.get(block).iter_vars)))
        self.random.shuffle(order)
        self.sch.reorder_block_iter_var(block, order)

    def reindex_cache_read(self) -> None:
        self.sch.reindex_cache_read(
            self.block(), self.random.randrange(2), "global", lambda *i: i[::-1]
        )

    def reindex_cache_write(self) -> None:
        self.sch.reindex_cache_write(self.block(), 0, "global", lambda *i: i[::-1])

    def blockize_all(self) -> None:
        blocks = self.sch.get_child_blocks(self.sch.get_block("root"))
        self.sch.blockize(self.random.sample(blocks, min(2, len(blocks))))

    def sample(self) -> None:
        loop = self.loop()
        self.sch.split(loop, self.sch.sample_perfect_tile(loop, 2, 8))

    def transform_read_layout(self) -> None:
        block = self.block()
        reads = self.sch.get(block).reads
        at = self.random.randrange(max(1, len(reads)))
        if at < len(reads) and reads[at].buffer in self.sch.mod["main"].buffer_map.values():
            return
        self.sch.transform_layout(
            block, ("read", at), lambda *i: [*i[:-1], i[-1] // 4, i[-1] % 4], pad_value=0.0
        )

    def reindex_read(self) -> None:
        self.sch.reindex(self.block(), ("read", self.random.randrange(2)))

    def separate_axes(self) -> None:
        block = self.block()
        if self.sch.get(block).writes[0].buffer in self.sch.mod["main"].buffer_map.values():
            return
        self.sch.set_axis_separator(block, ("write", 0), [1])

    def decompose_reduction(self) -> None:
        block = self.block()
        self.sch.decompose_reduction(block, self.random.choice(self.sch.get_loops(block)))


def check(seed: int) -> list[str]:
    """Schedule the program of a seed at random and compare; the steps that were applied."""
    func = ZOO[seed % len(ZOO)]
    expected = run(func)
    scheduler = RandomScheduler(func, seed)
    for _ in range(3 * STEPS):
        scheduler.step()
        if len(scheduler.applied) == STEPS:
            break
    replayed = Schedule(func)
    scheduler.sch.trace.apply_to_schedule(replayed, remove_postproc=False)
    assert structural_equal(replayed.mod, scheduler.sch.mod), f"seed {seed}: the trace differs"
    for found, wanted in zip(run(scheduler.sch.mod["main"]), expected, strict=True):
        np.testing.assert_allclose(found, wanted, TOLERANCE, TOLERANCE, err_msg=f"seed {seed}")
    return scheduler.applied


def main(count: int, first: int) -> None:
    """Check seeds one after the other."""
    applied: dict[str, int] = {}
    failures: list[int] = []
    for seed in range(first, first + count):
        try:
            for name in check(seed):
                applied[name] = applied.get(name, 0) + 1
        except Exception as error:
            failures.append(seed)
            print(f"seed {seed}: {type(error).__name__}: {str(error).strip()[:300]}", flush=True)
    print(f"of {count} schedules {len(failures)} fail: {failures}; applied: {applied}")


if __name__ == "__main__":
    main(*[int(arg) for arg in (*sys.argv[1:], "100", "0")[:2]])
