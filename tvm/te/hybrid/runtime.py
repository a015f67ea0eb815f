"""The names that hybrid scripts use, for running them in Python on numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target


class bind:
    """A loop over threads, one after the other."""

    def __init__(self, _: str, ext: int) -> None:
        self.ext = ext

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.ext))


def allocate(shape: Any, dtype: str = "float32", scope: str = "global") -> Any:
    """An array."""
    del scope
    return np.zeros(shape, dtype=as_dtype(dtype).element)


def rsqrt(x: float) -> float:
    """1 / sqrt(x)"""
    return 1.0 / math.sqrt(x)


def popcount(x: int) -> int:
    """The number of bits that are 1."""
    return bin(x).count("1")


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x))"""
    return 1 / (1 + math.exp(-x))


def max_num_threads(allow_none: bool = True) -> int | None:
    """The most threads in a block of the current target."""
    target = Target.current(allow_none)
    return None if target is None else int(target.max_num_threads)


def inf(dtype: str) -> float:
    """The largest value."""
    return math.inf if as_dtype(dtype).is_float else int(np.iinfo(dtype).max)


def ninf(dtype: str) -> float:
    """The smallest value."""
    return -math.inf if as_dtype(dtype).is_float else int(np.iinfo(dtype).min)


def ceil_div(a: int, b: int) -> int:
    """The quotient, rounded up."""
    return -(-a // b)


def _cast(dtype: str) -> Callable[[Any], Any]:
    return lambda value: np.dtype(dtype).type(value)


DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64")  # fmt: skip

# what a script's names mean in Python
HYBRID_GLOBALS: dict[str, Any] = {
    **{name: _cast(name) for name in DTYPES if name != "bool"},
    **dict.fromkeys(("serial", "unroll", "vectorize", "parallel", "const_range"), range),
    "bind": bind,
    "allocate": allocate,
    "output_tensor": allocate,
    "sqrt": math.sqrt,
    "rsqrt": rsqrt,
    "log": math.log,
    "tanh": math.tanh,
    "power": math.pow,
    "exp": math.exp,
    "erf": math.erf,
    "sigmoid": sigmoid,
    "popcount": popcount,
    "likely": lambda condition: condition,
    "round": round,
    "ceil_div": ceil_div,
    "max_num_threads": max_num_threads,
    "inf": inf,
    "ninf": ninf,
}
