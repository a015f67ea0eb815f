"""The rows of features of a program: one for each buffer that is written."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..loops import Annotation
from .buffers import Memory
from .names import CURVE_POINTS
from .program import Program, Store

_ANNOTATIONS = (Annotation.VECTORIZE, Annotation.UNROLL, Annotation.PARALLEL)
_THREADS = (
    Annotation.BLOCK_X, Annotation.BLOCK_Y, Annotation.BLOCK_Z, Annotation.THREAD_X,
    Annotation.THREAD_Y, Annotation.THREAD_Z,
)  # fmt: skip
_NO_BUFFER = [0.0] * 18
_NOT_ANNOTATED = [0.0, 0.0, 0.0, 1.0, *[0.0] * 7]
_FLOAT_OPERATIONS = 7  # the first ones


def program_rows(program: Program, cache_line: int, max_n_bufs: int) -> list[list[float]]:
    """The features of each buffer's last store, as they are, without logarithms."""
    memory = Memory(program, cache_line)
    rows: dict[int, list[float]] = {}
    for store in program.stores:
        rows[store.buffer] = _store_row(program, memory, store, max_n_bufs)
    return list(rows.values())


def _store_row(program: Program, memory: Memory, store: Store, max_n_bufs: int) -> list[float]:
    extents = program.extents
    outer = 1.0
    for loop in store.loops:
        outer *= extents[loop]
    touched = memory.note(store)
    row = [count * outer for count in store.operations]
    for annotation in _ANNOTATIONS:
        row += _annotated(program, store.loops, annotation)
    row += _threads(program, store.loops)
    buffers = [memory.features(store, access, outer) for access in store.accesses]
    # the busiest first
    buffers.sort(key=lambda b: (-b[5], -b[3]))
    for place in range(max_n_bufs):
        row += buffers[place] if place < len(buffers) else _NO_BUFFER
    row += _intensity_curve(store, touched, extents)
    row += _allocation(store, outer)
    return [*row, outer, float(len(store.loops)), float(store.auto_unroll_max_step)]


def _annotated(program: Program, loops: Sequence[int], annotation: Annotation) -> list[float]:
    """Number, product and last extent of loops that run in one way, and where they are."""
    found = [program.extents[loop] for loop in loops if program.kinds.get(loop) == annotation]
    if not found:
        return _NOT_ANNOTATED
    product = math.prod(found)
    return [float(len(found)), float(product), float(found[-1]), *[0.0] * 7, 1.0]


def _threads(program: Program, loops: Sequence[int]) -> list[float]:
    extents = {program.kinds.get(loop): program.extents[loop] for loop in loops}
    bound = [float(extents.get(thread, 1)) for thread in _THREADS]
    virtual = 1.0
    for loop in loops:
        if program.kinds.get(loop) == Annotation.VTHREAD:
            virtual *= program.extents[loop]
    is_gpu = any([thread in extents for thread in (*_THREADS, Annotation.VTHREAD)])
    return [float(is_gpu), *bound, virtual]


def _intensity_curve(
    store: Store, touched: Sequence[float], extents: dict[int, int]
) -> list[float]:
    """Operations for each byte (of logarithms), at points between the innermost loop and all."""
    operations = sum(store.operations[:_FLOAT_OPERATIONS])
    if operations <= 0 or not touched or min(touched) <= 0:
        return [0.0] * CURVE_POINTS
    computed, ratio = [], []
    for loop, size in zip(reversed(store.loops), touched, strict=True):
        operations *= extents[loop]
        if operations <= 0:
            return [0.0] * CURVE_POINTS
        computed.append(math.log2(operations))
        ratio.append(computed[-1] / max(math.log2(size), 1e-6))
    curve = []
    place = 0
    for point in range(1, CURVE_POINTS + 1):
        target = computed[-1] * point / CURVE_POINTS
        while computed[place] < target - 1e-4:
            place += 1
        if place == 0:
            curve.append(ratio[0])
            continue
        before = computed[place - 1]
        slope = (ratio[place] - ratio[place - 1]) / (computed[place] - before)
        curve.append(ratio[place - 1] + slope * (target - before))
    return curve


def _allocation(store: Store, outer: float) -> list[float]:
    if store.allocated is None:
        return [0.0, 0.0, 0.0, 0.0]
    size, around = store.allocated
    return [float(size), around, outer / max(around, 1.0), size * around]
