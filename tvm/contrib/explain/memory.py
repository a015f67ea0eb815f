"""What a plan of memory adds up to: bytes in use at each step, and the peak."""

from __future__ import annotations

from collections.abc import Sequence

from .record import Life, Memory, Storage


def memory_record(storages: list[Storage], lives: list[Life], last: int) -> Memory:
    """The plan with its sums.

    Parameters
    ----------
    storages : list of Storage
        All memory, that of weights too.
    lives : list of Life
        Of the tensors that are no weights.
    last : int
        The last step.
    """
    memory = Memory(storages, lives)
    memory.live = [_live_bytes(lives, step) for step in range(last + 1)]
    memory.planned = sum([s.bytes for s in storages if s.kind != "weight"])
    memory.peak = max(memory.live, default=0)
    memory.peak_step = memory.live.index(memory.peak) if memory.live else 0
    memory.weights = sum([s.bytes for s in storages if s.kind == "weight"])
    return memory


def _live_bytes(lives: Sequence[Life], step: int) -> int:
    """Bytes in use; tensors that share storage count once."""
    sizes: dict[int, int] = {}
    for life in lives:
        if life.first <= step <= life.last:
            sizes[life.storage] = max(sizes.get(life.storage, 0), life.bytes)
    return sum(sizes.values())
