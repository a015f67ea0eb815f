"""Tensors of random numbers that the runtime draws when the function runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir


def _sampled(kind: str, size: Sequence[Any], dtype: str, *args: float) -> te.Tensor:
    def body(_: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.PrimExpr:
        return tir.call_packed(f"tvm.contrib.random.{kind}", *args, outs[0])

    drawn: te.Tensor = te.extern(size, [], body, name=kind, dtype=dtype)
    return drawn


def randint(low: int, high: int, size: Sequence[Any], dtype: str = "int32") -> te.Tensor:
    """Integers from `low` to `high` - 1, each as likely.

    Parameters
    ----------
    low, high : int
        The bounds.
    size : sequence
        The shape.
    dtype : str
        An integer type.
    """
    if "int" not in dtype:
        raise TypeError(f"random.randint draws integers, got dtype {dtype}")
    return _sampled("randint", size, dtype, int(low), int(high))


def uniform(low: float, high: float, size: Sequence[Any]) -> te.Tensor:
    """Numbers of float32 between `low` and `high`, of shape `size`."""
    return _sampled("uniform", size, "float32", float(low), float(high))


def normal(loc: float, scale: float, size: Sequence[Any]) -> te.Tensor:
    """Numbers of float32 with mean `loc` and standard deviation `scale`, of shape `size`."""
    return _sampled("normal", size, "float32", float(loc), float(scale))
