"""Sums of products along axes of two tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te
from tvm.error import RuntimeValueError

from .nn.dense.compute import matmul as nn_matmul
from .utils import dims, real_axis


def matmul(a: te.Tensor, b: te.Tensor, transp_a: bool = False, transp_b: bool = False) -> te.Tensor:
    """The product of two matrices, either of which may come transposed."""
    return nn_matmul(a, b, transpose_a=transp_a, transpose_b=transp_b)


def tensordot(
    a: te.Tensor, b: te.Tensor, axes: int | tuple[Sequence[int] | int, Sequence[int] | int] = 2
) -> te.Tensor:
    """The product of two tensors, summed over axes of both.

    Parameters
    ----------
    a, b : te.Tensor
        The tensors.
    axes : int or two sequences of int
        How many last axes of `a` meet the first ones of `b`; or the axes of each.
    """
    ranks = len(a.shape), len(b.shape)
    if isinstance(axes, int):
        axes = (range(ranks[0] - axes, ranks[0]), range(axes))
    left, right = [
        [real_axis(axis, rank) for axis in ([named] if isinstance(named, int) else named)]
        for named, rank in zip(axes, ranks, strict=True)
    ]
    met = [(dims(a.shape)[i], dims(b.shape)[j]) for i, j in zip(left, right, strict=True)]
    if any(isinstance(m, int) and isinstance(n, int) and m != n for m, n in met):
        raise RuntimeValueError(f"tensordot requires axes of the same extents, got {met}")
    reduced = [te.reduce_axis((0, a.shape[i]), name=f"k{k}") for k, i in enumerate(left)]
    kept = [i for i in range(ranks[0]) if i not in left]

    def element(*indices: Any) -> Any:
        at_a = _placed(indices[: len(kept)], reduced, left, ranks[0])
        at_b = _placed(indices[len(kept) :], reduced, right, ranks[1])
        product = a(*at_a) * b(*at_b)
        return te.sum(product, axis=reduced) if reduced else product

    shape = [a.shape[i] for i in kept] + [b.shape[j] for j in range(ranks[1]) if j not in right]
    return te.compute(shape, element, name="T_tensordot", tag="matmul")


def _placed(
    kept: Sequence[Any], reduced: Sequence[Any], axes: Sequence[int], rank: int
) -> list[Any]:
    """Indices of a tensor: those kept in order, with the reduced ones at `axes`."""
    at = {axis: iv.var for axis, iv in zip(axes, reduced, strict=True)}
    rest = iter(kept)
    return [at[axis] if axis in at else next(rest) for axis in range(rank)]


__all__ = ["matmul", "tensordot"]
