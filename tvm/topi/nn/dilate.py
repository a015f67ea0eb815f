"""Dilation: zeros between elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.error import RuntimeValueError

from .. import tag
from ..utils import dims, equals


def dilate(
    data: te.Tensor,
    strides: Sequence[int],
    dilation_value: float = 0.0,
    name: str = "DilatedInput",
) -> te.Tensor:
    """Put `stride - 1` equal elements between neighbours along each axis.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    strides : sequence of int
        One step for each axis.
    dilation_value : float
        What lies between.
    """
    steps = dims(strides)
    if len(steps) != len(data.shape):
        raise RuntimeValueError(
            f"dilate requires a stride for each of {len(data.shape)} axes, got {steps}"
        )
    # nothing stays nothing
    shape = [
        0 if isinstance(e, int) and e == 0 else (e - 1) * s + 1
        for e, s in zip(dims(data.shape), steps, strict=True)
    ]
    between = tir.const(dilation_value, data.dtype)

    def element(*i: Any) -> Any:
        position = [tir.indexdiv(v, s) if s != 1 else v for v, s in zip(i, steps, strict=True)]
        hits = [equals(tir.indexmod(v, s), 0) for v, s in zip(i, steps, strict=True) if s != 1]
        return (
            tir.if_then_else(tir.all(*hits), data(*position), between) if hits else data(*position)
        )

    return te.compute(shape, element, name=name, tag=tag.INJECTIVE)
