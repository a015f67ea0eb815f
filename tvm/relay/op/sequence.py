"""Operators on rows of different lengths, windows that slide, and diagonals."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call

from .attributes import as_ints
from .computes import computed_by
from .known_shapes import known_shape
from .operator import Expr, Ints, operator
from .registry import OpPattern, ops
from .scatter_gradient import added_elements, element_numbers, replaced_gradient
from .types import (
    Tensor1,
    apply,
    expect,
    expect_dim,
    expect_same_dtype,
    positive_axis,
    shape_of_type,
    tensor,
)


def _sequence_mask_type(attrs: Any, data: TensorType, valid_length: Tensor1) -> Type:
    """A tensor of the shape and dtype of `data`."""
    who = "sequence_mask"
    expect(attrs.axis in (0, 1), f"{who} requires an axis of 0 or 1, got {attrs.axis}")
    expect(len(data.shape) > 1, f"{who} requires data of rank 2 or more")
    batch = shape_of_type(data)[1 - attrs.axis]
    expect_dim(shape_of_type(valid_length)[0], batch, who, "the number of lengths")
    return data


@operator(
    "sequence_mask",
    infer_type=_sequence_mask_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.sequence_mask, "mask_value", "axis"),
    gradient=lambda call, grad: [
        Call(ops.sequence_mask, (grad, call.args[1]), call.attrs.replace(mask_value=0.0)),
        ops.zeros_like(call.args[1]),
    ],
)
def sequence_mask(
    data: Expr, valid_length: Expr, mask_value: float = 0, axis: int = 0
) -> RelayExpr:
    """Put one value behind the end of each sequence."""


def _reverse_sequence_type(attrs: Any, data: TensorType, seq_lengths: Tensor1) -> Type:
    """A tensor of the shape and dtype of `data`."""
    who = "reverse_sequence"
    positive_axis(attrs.seq_axis, len(data.shape), who)
    batch = shape_of_type(data)[positive_axis(attrs.batch_axis, len(data.shape), who)]
    expect_dim(shape_of_type(seq_lengths)[0], batch, who, "the number of lengths")
    return data


@operator(
    "reverse_sequence",
    support_level=3,
    infer_type=_reverse_sequence_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.reverse_sequence, "seq_axis", "batch_axis"),
    gradient=lambda call, grad: [
        Call(ops.reverse_sequence, (grad, call.args[1]), call.attrs),
        ops.zeros_like(call.args[1]),
    ],
)
def reverse_sequence(
    data: Expr, seq_lengths: Expr, seq_axis: int = 1, batch_axis: int = 0
) -> RelayExpr:
    """Reverse the beginning of each sequence.

    Parameters
    ----------
    data : relay.Expr
        The sequences.
    """


def _sliding_window_type(attrs: Any, data: TensorType) -> Type:
    who = "sliding_window"
    shape = shape_of_type(data)
    first = positive_axis(attrs.axis, len(shape), who)
    covered = len(shape) - first
    expect(
        len(attrs.window_shape) == len(attrs.strides) == covered,
        f"{who} requires an extent and a stride for each of the {covered} axes from {attrs.axis} on",
    )
    counts = []
    for extent, window, stride in zip(
        shape[first:], attrs.window_shape, attrs.strides, strict=True
    ):
        expect(
            not isinstance(extent, int) or window <= extent,
            f"{who} requires a window within the data, got {window} of {extent}",
        )
        counts.append(apply(lambda e, w, s: (e - w) // s + 1, extent, window, stride))
    return tensor((*shape[:first], *counts, *attrs.window_shape), data.dtype)


def _sliding_window_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    shape = known_shape(call.args[0], "sliding_window")
    positions = Call(ops.sliding_window, (element_numbers(shape),), call.attrs)
    return [added_elements(grad, positions, shape)]


@operator(
    "sliding_window",
    infer_type=_sliding_window_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.sliding_window, "axis", "window_shape", "strides"),
    gradient=_sliding_window_gradient,
)
def sliding_window(data: Expr, axis: int, window_shape: Ints, strides: Ints) -> RelayExpr:
    """All positions of a window over the axes from `axis` on.

    Returns
    -------
    relay.Expr
        The shape before `axis`, the counts of positions, the window's shape.
    """


class MatrixSetDiagAttrs(Attrs, key="relay.attrs.MatrixSetDiagAttrs"):
    """The lowest and the highest diagonal, and where shorter ones stand."""

    k1: int = 0
    k2: int = 0
    super_diag_right_align: bool = True
    sub_diag_right_align: bool = False


def _matrix_set_diag_type(
    attrs: MatrixSetDiagAttrs, data: TensorType, diagonal: TensorType
) -> Type:
    """A tensor of the shape and dtype of `data`."""
    who = "matrix_set_diag"
    expect_same_dtype((data, diagonal), who)
    expect(len(data.shape) >= 2, f"{who} requires matrices, got {data}")
    expect(attrs.k1 <= attrs.k2, f"{who} requires k[0] <= k[1], got {attrs.k1} and {attrs.k2}")
    is_one = attrs.k1 == attrs.k2
    ranks = (len(data.shape) - 1,) if is_one else (len(data.shape),)
    expect(
        len(diagonal.shape) in ranks,
        f"{who} requires diagonals of rank {ranks[0]}, got {diagonal}",
    )
    return data


def _alignment(attrs: Any) -> str:
    sides = (attrs.super_diag_right_align, attrs.sub_diag_right_align)
    return "_".join(["RIGHT" if is_right else "LEFT" for is_right in sides])


@operator(
    "matrix_set_diag",
    MatrixSetDiagAttrs,
    infer_type=_matrix_set_diag_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.matrix_set_diag(inputs[0], inputs[1], (attrs.k1, attrs.k2), _alignment(attrs))
    ],
    gradient=replaced_gradient,
)
def matrix_set_diag(
    data: Expr, diagonal: Expr, k: Ints = 0, align: str = "RIGHT_LEFT"
) -> RelayExpr:
    """Replace diagonals of the last two axes.

    Parameters
    ----------
    data : relay.Expr
        Matrices.
    diagonal : relay.Expr
        The new diagonals: (..., length), or (..., count, length) from the highest to the lowest.
    k : int or pair of int
        The diagonal, or the lowest and the highest; 0 is the main one, above it count positive.
    align : str
        Where shorter diagonals stand: those above the main one, then those below it, "LEFT" or
        "RIGHT" each.
    """
    low, high = (as_ints(k) * 2)[:2]
    sides = str(align).split("_")
    if len(sides) != 2 or not set(sides) <= {"LEFT", "RIGHT"}:
        raise ValueError(f"matrix_set_diag requires an align such as RIGHT_LEFT, got {align!r}")
    return ops.matrix_set_diag(
        data, diagonal, k1=low, k2=high, super_diag_right_align=sides[0] == "RIGHT",
        sub_diag_right_align=sides[1] == "RIGHT",
    )  # fmt: skip
