"""Tags of compute operations, from which schedules tell what may be inlined."""

from __future__ import annotations

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
SHARED_ROWS = "injective,shared_rows"  # whose rows each row of a later stage reads many times
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"


def is_broadcast(tag: str) -> bool:
    """Whether an operation is element-wise or broadcasting."""
    return tag in (ELEMWISE, BROADCAST) or tag.startswith((ELEMWISE, BROADCAST))


def is_injective(tag: str) -> bool:
    """Whether each element of the output depends on one element of each input."""
    return is_broadcast(tag) or tag.startswith(INJECTIVE)
