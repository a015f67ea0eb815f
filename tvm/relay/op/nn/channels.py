"""What operators with one number for each channel share."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type

from ..registry import ops
from ..types import shape_of_type, tensor
from .argument_types import data_type


def vectors_of_channels(attrs: Attrs, known: Sequence[Type | None]) -> list[Type | None]:
    """All arguments but the first are vectors along `axis`."""
    data = data_type(known)
    shape = shape_of_type(data)
    vector = tensor((shape[attrs["axis"] % len(shape)],), data.dtype)
    return [data, *[vector] * (len(known) - 1)]


def along(vector: RelayExpr, axis: int, rank: int) -> RelayExpr:
    """A vector with trailing axes of extent 1, so that it runs along `axis`."""
    trailing = rank - 1 - axis % rank
    return ops.expand_dims(vector, axis=1, num_newaxis=trailing) if trailing else vector
