"""What drawn calls are made of: extents, dtypes, axes, arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

Array = np.ndarray
# what to build, its inputs, and what is expected
Drawn = tuple[Callable[..., Any], Sequence[Array], Any]
FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
NUMBERS = (*FLOATS, *INTEGERS)


class Draw:
    """The choices of one example."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def number(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def pick(self, *options: Any) -> Any:
        return self._draw(st.sampled_from(options))

    def flag(self) -> bool:
        return self._draw(st.booleans())

    def numbers(self, count: int, low: int, high: int) -> tuple[int, ...]:
        return tuple([self.number(low, high) for _ in range(count)])

    def shape(self, low: int = 1, high: int = 4, least: int = 0, most: int = 6) -> tuple[int, ...]:
        return self.numbers(self.number(low, high), least, most)

    def axis(self, rank: int) -> int:
        return self.number(-rank, rank - 1)

    def axes(self, rank: int, least: int = 1) -> tuple[int, ...]:
        """Some of the axes, counted from either end."""
        picked = self.some(range(rank), min(least, rank))
        return tuple([a - rank if self.flag() else a for a in picked])

    def order(self, count: int) -> tuple[int, ...]:
        return tuple(self._draw(st.permutations(range(count))))

    def some(self, items: Sequence[Any], least: int = 0) -> list[Any]:
        """Some of the items, in any order."""
        return [items[i] for i in self.order(len(items))[: self.number(least, len(items))]]

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.number(0, 2**32 - 1))

    def array(
        self, shape: Sequence[int], dtype: str = "float32", low: float = -4, high: float = 5
    ) -> Array:
        rng = self.rng()
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if np.dtype(dtype).kind == "f":
            return rng.uniform(low, high, shape).astype(dtype)
        least = max(int(low), 0) if dtype[0] == "u" else int(low)
        return rng.integers(least, int(high), shape).astype(dtype)
