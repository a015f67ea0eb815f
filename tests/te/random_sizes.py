"""Dimensions of random programs: numbers, variables with a value, and zero."""

from __future__ import annotations

import random
from typing import Any

from tvm import te, tir


class Sizes:
    """Draws dimensions: numbers or, in some programs, variables with a value."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.values: dict[tir.Var, int] = {}
        self.is_symbolic = rng.random() < 0.15
        self.may_be_empty = rng.random() < 0.1

    def dim(self, low: int, high: int, empty: int = 0) -> Any:
        """A dimension in [low, high]; sometimes ``empty``, sometimes a variable."""
        value = self.rng.randint(low, high)
        if self.may_be_empty and self.rng.random() < 0.5:
            value = empty
        if not self.is_symbolic or self.rng.random() < 0.3:
            return value
        make = te.var if self.rng.random() < 0.7 else te.size_var
        var = make(f"n{len(self.values)}")
        self.values[var] = value
        return var

    def number(self, low: int, high: int) -> int:
        """A number in [low, high]."""
        return self.rng.randint(low, high)
