"""Reshapes between symbolic shapes, as numbers that hold whatever the run gives.

(b * s, 768) -> (b * s, 12, 64)     [0, 12, 64]
(b, s, 768) -> (b * s, 768)         [-3, 0]
(b * 12, s, s) -> (b, 12, s, s)     [-4, -1, 12, 0, 0]
"""

from __future__ import annotations

from collections.abc import Sequence

from .shaping import infer_reshape
from .types import Dim, are_known, product, same_dim


def find_new_shape(source: Sequence[Dim], target: Sequence[Dim]) -> list[int] | None:
    """What `relay.reshape` is to be given, None if no numbers say it."""
    if are_known(target):
        return list(target)
    for candidate in (_copied(source, target), _aligned(source, target)):
        if candidate is None:
            continue
        found = infer_reshape(tuple(source), candidate)
        if len(found) == len(target) and all(map(same_dim, found, target)):
            return candidate
    return None


def _copied(source: Sequence[Dim], target: Sequence[Dim]) -> list[int] | None:
    """Extents that stay where they are, numbers, and what is left."""
    found = [
        dim if isinstance(dim, int) else 0 if i < len(source) and same_dim(source[i], dim) else -1
        for i, dim in enumerate(target)
    ]
    return found if found.count(-1) <= 1 and 0 not in target else None


def _aligned(source: Sequence[Dim], target: Sequence[Dim]) -> list[int] | None:
    """Extents one after the other: kept, two merged, or one split."""
    found: list[int] = []
    i = j = 0
    while i < len(source) and j < len(target):
        if same_dim(source[i], target[j]):
            found.append(0)
        elif i + 1 < len(source) and same_dim(product(source[i : i + 2]), target[j]):
            found.append(-3)
            i += 1
        elif same_dim(product(target[j : j + 2]), source[i]):
            parts = [dim if isinstance(dim, int) else -1 for dim in target[j : j + 2]]
            if len(parts) < 2 or parts == [-1, -1]:
                return None
            found += [-4, *parts]
            j += 1
        else:
            return None
        i, j = i + 1, j + 1
    return found if (i, j) == (len(source), len(target)) else None
