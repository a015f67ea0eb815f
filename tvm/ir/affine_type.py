"""Types of quantised values: the integers of a tensor stand for (q - zero_point) * scale."""

from __future__ import annotations

from typing import Any

from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype

from .expr import RelayExpr
from .node import Node


class AffineType(Node):
    """The base of both."""


class TensorAffineType(AffineType, key="TensorAffineType"):
    """A tensor's scale, zero point and dtype, and the axis of vectors of them."""

    scale: RelayExpr
    zero_point: RelayExpr
    dtype: DType
    axis: int = -1

    def __init__(self, scale: RelayExpr, zero_point: RelayExpr, dtype: Any, axis: int = -1) -> None:
        self._init(scale, zero_point, as_dtype(dtype), int(axis))


class TupleAffineType(AffineType, key="TupleAffineType"):
    """The types of a tuple's fields."""

    types: tuple[AffineType, ...] = ()

    def __init__(self, types: Any) -> None:
        self._init(tuple(types))
