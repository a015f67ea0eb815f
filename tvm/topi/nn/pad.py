"""Borders around tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr

from .. import tag
from ..utils import dims


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

    def element(*indices: Any) -> PrimExpr:
        at = []
        for index, extent, b, a in zip(indices, extents, before, after, strict=True):
            if b == 0 and a == 0:
                at.append(index)
                continue
            moved = index - b
            if mode == "EDGE":
                at.append(tir.min(tir.max(moved, 0), extent - 1))
                continue
            shift = 1 if mode == "SYMMETRIC" else 0
            low = tir.if_then_else(moved < 0, -moved - shift, moved)
            at.append(tir.if_then_else(low >= extent, 2 * extent - 2 + shift - low, low))
        return data(*at)

    return te.compute(shape, element, name=name, tag=tag.INJECTIVE)
