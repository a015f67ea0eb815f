"""Borders around tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr

from .. import tag
from ..utils import cast_scalar, dims


def pad(
    data: te.Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    pad_value: float | PrimExpr = 0.0,
    name: str = "PadInput",
    attrs: dict[str, Any] | None = None,
) -> te.Tensor:
    """Surround a tensor with one value.

    Parameters
    ----------
    data : te.Tensor
        The tensor.
    pad_before, pad_after : sequence of int
        The widths at each axis; after is before by default.
    pad_value : float or PrimExpr
        The value.
    """
    before = list(dims(pad_before))
    after = before if pad_after is None else list(dims(pad_after))
    extents = dims(data.shape)
    if isinstance(pad_value, PrimExpr):
        value = pad_value.astype(data.dtype)
    else:
        value = tir.const(pad_value if data.dtype.is_float else int(pad_value), data.dtype)
    shape = [b + e + a for b, e, a in zip(before, extents, after, strict=True)]

    def element(*indices: Any) -> PrimExpr:
        at, inside = [], []
        for index, extent, b, a in zip(indices, extents, before, after, strict=True):
            at.append(index - b if b != 0 else index)
            if b != 0:
                inside.append(index >= b)
            if a != 0:
                inside.append(index < extent + b)
        if not inside:
            return data(*at)
        return tir.if_then_else(tir.all(*inside), data(*at), value)

    return te.compute(shape, element, name=name, tag="injective,pad", attrs=attrs)


def mirror_pad(
    data: te.Tensor,
    pad_before: Sequence[int],
    pad_after: Sequence[int] | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> te.Tensor:
    """Surround a tensor with its mirror image ("SYMMETRIC", "REFLECT") or its edge ("EDGE")."""
    before = list(dims(pad_before))
    after = before if pad_after is None else list(dims(pad_after))
    extents = dims(data.shape)
    shape = [b + e + a for b, e, a in zip(before, extents, after, strict=True)]

    def mirrored(axis: int, index: Any, read: Callable[[Any], PrimExpr]) -> PrimExpr:
        """What is read along an axis: inside the tensor where it can be, else its image."""
        b, extent, a = before[axis], extents[axis], after[axis]
        inside, moved = [], index - b if b != 0 else index
        if b != 0:
            inside.append(index >= b)
        if a != 0:
            inside.append(index < extent + b)
        if not inside:
            return read(index)
        shift = 1 if mode == "SYMMETRIC" else 0
        front, behind = -moved - shift, 2 * extent - 2 + shift - moved
        if mode == "EDGE":
            front, behind = tir.const(0, index.dtype), cast_scalar(extent - 1, index.dtype)
        image = read(front if b != 0 else behind)
        if len(inside) == 2:
            image = tir.if_then_else(index < b, image, read(behind))
        return tir.if_then_else(tir.all(*inside), read(moved), image)

    def element(*indices: Any) -> PrimExpr:
        if not indices:
            return data()
        *outer, last = indices
        at = [mirrored(k, index, lambda place: place) for k, index in enumerate(outer)]
        # along the last axis whole reads are chosen, not positions: they stay reads of neighbours
        return mirrored(len(outer), last, lambda place: data(*at, place))

    return te.compute(shape, element, name=name, tag=tag.INJECTIVE)
