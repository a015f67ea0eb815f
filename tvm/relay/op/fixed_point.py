"""Products of integers with fixed-point numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tir, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type

from .attributes import as_ints
from .computes import computed_by
from .layout import Layouts, data_layouts, has_blocks, layout_any
from .operator import Expr, Ints, operator
from .registry import LayoutChoice, OpPattern
from .types import expect


def _fixed_point_type(attrs: Attrs, x: TensorType) -> Type:
    """A tensor of the shape of the first operand, and of dtype int32."""
    expect(x.dtype == "int32", f"fixed_point_multiply requires int32, got {x.dtype}")
    return x


@operator(
    "fixed_point_multiply",
    support_level=3,
    infer_type=_fixed_point_type,
    fuse=OpPattern.ELEMWISE,
    compute=computed_by(topi.fixed_point_multiply, "multiplier", "shift"),
    infer_layout=layout_any,
)
def fixed_point_multiply(data: Expr, multiplier: int, shift: int) -> RelayExpr:
    """data * multiplier * 2**(shift - 31), rounded.

    Parameters
    ----------
    data : relay.Expr
        int32 numbers.
    """


def _per_axis_layout(
    attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice | None:
    """The data's layout; multipliers of channels in blocks come in blocks too."""
    ends = data_layouts(new_in, old_in)
    if ends is None or len(attrs.axes) != 1 or has_blocks(ends[0]):
        return None
    source, chosen = ends
    letter = source[attrs.axes[0] % len(source)]
    blocks = [f"{size}{letter.lower()}" for size in chosen.parts(letter)]
    if len(blocks) > 1:
        return None
    own = tir.layout("".join([letter, *blocks]))
    if source != chosen:
        positions = [chosen.index_of(part) for part in (letter, *[letter.lower() for _ in blocks])]
        attrs = attrs.replace(axes=as_ints(positions))
    return LayoutChoice((chosen, own, own, own), (chosen,), attrs)


@operator(
    "fixed_point_multiply_per_axis",
    inputs=("x", "m", "lshift", "rshift"),
    defaults={"is_lshift_required": False, "is_rshift_required": False, "axes": ()},
    infer_type=_fixed_point_type,
    fuse=OpPattern.BROADCAST,
    compute=computed_by(
        topi.fixed_point_multiply_per_axis, "is_lshift_required", "is_rshift_required", "axes"
    ),
    infer_layout=_per_axis_layout,
)
def fixed_point_multiply_per_axis(
    x: Expr,
    y: Expr,
    lshift: Expr,
    rshift: Expr,
    is_lshift_required: bool,
    is_rshift_required: bool,
    axes: Ints,
) -> RelayExpr:
    """As `fixed_point_multiply`, with a multiplier and shifts for each position along `axes`."""
