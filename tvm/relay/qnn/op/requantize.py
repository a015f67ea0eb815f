"""Requantisation: from one scale and zero point to another, in integers.

    zero_out + round((q - zero_in) * scale_in / scale_out)

With constant scales the quotient is an integer multiplier of 31 bits behind the point and a shift.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tvm.error import OpAttributeInvalid, suggest
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import const
from tvm.relay.op.layout_axes import layout_along_axis
from tvm.relay.op.operator import Expr, operator
from tvm.relay.op.registry import ops
from tvm.relay.op.types import expect, shape_of_type, tensor
from tvm.support.scope import Scoped

from .common import (
    add_zero_point,
    along_axis,
    are_equal,
    cast,
    constant_array,
    expect_dtype,
    expect_scale,
    expect_zero_point,
    integer_range,
    saturate,
    subtract_zero_point,
)

ROUNDINGS = ("UPWARD", "TONEAREST", "DOWN")
COMPUTE_DTYPES = ("int64", "float32", "float64")


@dataclass(frozen=True)
class RequantizeConfig:
    """How `requantize` computes where its own attributes leave it open."""

    rounding: str = "UPWARD"  # halves: towards infinity, or away from zero; DOWN: all downwards
    compute_dtype: str = "int64"

    def __post_init__(self) -> None:
        _expect_choice("rounding", self.rounding, ROUNDINGS)
        _expect_choice("compute_dtype", self.compute_dtype, COMPUTE_DTYPES)


_CONFIG: Scoped[RequantizeConfig] = Scoped("qnn.requantize_config")


def _expect_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise OpAttributeInvalid(
            f"qnn.requantize requires {name} of {', '.join(allowed)}, got {value!r}"
        )


def current_requantize_config() -> RequantizeConfig:
    """The configuration of the innermost `requantize_config` block."""
    return _CONFIG.current() or RequantizeConfig()


@contextmanager
def requantize_config(**kwargs: str) -> Iterator[RequantizeConfig]:
    """Set how requantisation computes inside the block.

    Parameters
    ----------
    rounding : str
        "UPWARD" rounds halves towards infinity, "TONEAREST" away from zero; "DOWN" rounds all
        numbers towards negative infinity.
    compute_dtype : str
        "int64" for fixed-point arithmetic, "float32" or "float64".
    """
    known = [field.name for field in fields(RequantizeConfig)]
    for name in kwargs:
        if name not in known:
            raise OpAttributeInvalid(
                f"requantize_config has the options {', '.join(known)}, got {name!r}",
                hint=suggest(name, known),
            )
    with _CONFIG.scope(replace(current_requantize_config(), **kwargs)) as config:
        yield config


def _requantize_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor of the shape of `data`, and of dtype `out_dtype`."""
    who = "qnn.requantize"
    allowed = ("int8", "uint8", "int16", "int32", "int64")
    data = expect_dtype(arg_types[0], allowed, who, "data")
    expect_scale(arg_types[1], who, "input_scale", data, attrs.axis)
    expect_zero_point(arg_types[2], who, "input_zero_point", data, attrs.axis)
    expect_scale(arg_types[3], who, "output_scale", data, attrs.axis)
    expect_zero_point(arg_types[4], who, "output_zero_point", data, attrs.axis)
    out_dtypes = ("int8", "uint8", "int16", "int32")
    expect(
        attrs.out_dtype in out_dtypes,
        f"{who} requires out_dtype of {', '.join(out_dtypes)}, got {attrs.out_dtype!r}",
    )
    return tensor(shape_of_type(data), attrs.out_dtype)


def canonicalize_requantize(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr:
    """The requantisation in ordinary operators."""
    config = current_requantize_config()
    rounding = config.rounding if attrs.rounding == "None" else attrs.rounding
    dtype = config.compute_dtype if attrs.compute_dtype == "None" else attrs.compute_dtype
    data, *parameters = inputs
    in_scale, in_zero, out_scale, out_zero = parameters
    how = (attrs.axis, rounding, dtype)
    return requantized(data, in_scale, in_zero, out_scale, out_zero, attrs.out_dtype, *how)


def requantized(
    data: RelayExpr,
    input_scale: RelayExpr,
    input_zero_point: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    out_dtype: str,
    axis: int = -1,
    rounding: str | None = None,
    compute_dtype: str | None = None,
) -> RelayExpr:
    """`data` on another scale and zero point; the configuration decides what is left out."""
    config = current_requantize_config()
    rank = len(tensor_type_of(data).shape)
    zeros = [along_axis(zero, rank, axis) for zero in (input_zero_point, output_zero_point)]
    if are_equal(input_scale, output_scale):
        if are_equal(*zeros):
            return saturate(data, out_dtype)
        wide = subtract_zero_point(cast(data, _wide(tensor_type_of(data))), zeros[0])
        return saturate(add_zero_point(wide, zeros[1]), out_dtype)
    quotient = _constant_quotient(input_scale, output_scale)
    rounding = rounding or config.rounding
    dtype = compute_dtype or config.compute_dtype
    if quotient is not None and dtype == "int64":
        wide = subtract_zero_point(cast(data, _wide(tensor_type_of(data))), zeros[0])
        scaled = scaled_integers(wide, quotient, axis, rounding)
        return saturate(add_zero_point(scaled, zeros[1]), out_dtype)
    dtype = "float32" if dtype == "int64" else dtype
    factor = _factor(input_scale, output_scale, quotient, rank, axis, dtype)
    scaled = ops.multiply(subtract_zero_point(cast(data, dtype), zeros[0]), factor)
    rounded = _rounded(scaled, rounding, dtype)
    return _saturate_floats(add_zero_point(rounded, zeros[1]), out_dtype, dtype)


def _rounded(x: RelayExpr, rounding: str, dtype: str) -> RelayExpr:
    """Floating-point numbers without fractions."""
    half = const(0.0 if rounding == "DOWN" else 0.5, dtype)
    if rounding != "TONEAREST":
        return ops.floor(ops.add(x, half))
    magnitude = ops.floor(ops.add(ops.abs(x), half))
    return ops.where(ops.less(x, const(0.0, dtype)), ops.negative(magnitude), magnitude)


def _wide(ty: TensorType) -> str:
    return "int64" if ty.dtype == "int64" else "int32"


def _constant_quotient(a: RelayExpr, b: RelayExpr) -> np.ndarray | None:
    over, under = constant_array(a), constant_array(b)
    if over is None or under is None:
        return None
    quotient: np.ndarray = over.astype("float64").reshape(-1) / under.astype("float64").reshape(-1)
    return quotient


def _factor(
    a: RelayExpr, b: RelayExpr, quotient: np.ndarray | None, rank: int, axis: int, dtype: str
) -> RelayExpr:
    """The quotient of the scales in the shape that broadcasts to the data."""
    if quotient is not None:
        value = quotient[0] if quotient.size == 1 else quotient
        return along_axis(const(value, dtype), rank, axis)
    return ops.divide(*[cast(along_axis(scale, rank, axis), dtype) for scale in (a, b)])


def _saturate_floats(expr: RelayExpr, out_dtype: str, dtype: str) -> RelayExpr:
    low, high = integer_range(out_dtype)
    if dtype == "float32" and out_dtype == "int32":
        high = float(np.nextafter(np.float32(high), np.float32(0)))  # 2**31 itself has no int32
    return ops.cast(ops.clip(expr, a_min=low, a_max=high), dtype=out_dtype)


def multiplier_and_shift(value: float) -> tuple[int, int]:
    """A positive number as m * 2**(shift - 31), with m of 31 bits."""
    if value == 0:
        return 0, 0
    significand, exponent = math.frexp(value)
    if exponent < -31:
        return 0, 0  # no integer of 32 bits reaches one half
    multiplier = math.floor(significand * (1 << 31) + 0.5)
    if multiplier == 1 << 31:
        return multiplier // 2, exponent + 1
    return multiplier, exponent


def scaled_integers(
    data: RelayExpr, factors: np.ndarray, axis: int, rounding: str = "UPWARD"
) -> RelayExpr:
    """Integers times constant factors (one, or one for each position along an axis), rounded."""
    pairs = [multiplier_and_shift(float(factor)) for factor in factors]
    ty = tensor_type_of(data)
    if rounding != "UPWARD" or ty.dtype == "int64":
        return _scaled_in_int64(data, pairs, axis, rounding)
    if len(pairs) == 1:
        multiplier, shift = pairs[0]
        return ops.fixed_point_multiply(data, multiplier=multiplier, shift=shift)
    multipliers = np.array([m for m, _ in pairs], "int32")
    left = np.array([max(s, 0) for _, s in pairs], "int32")
    right = np.array([max(-s, 0) for _, s in pairs], "int32")
    return ops.fixed_point_multiply_per_axis(
        data, const(multipliers), const(left), const(right), is_lshift_required=bool(left.any()),
        is_rshift_required=bool(right.any()), axes=(axis % len(ty.shape),),
    )  # fmt: skip


def _scaled_in_int64(
    data: RelayExpr, pairs: Sequence[tuple[int, int]], axis: int, rounding: str
) -> RelayExpr:
    """Products of 64 bits, shifted."""
    rank = len(tensor_type_of(data).shape)

    def numbers(values: list[int]) -> RelayExpr:
        found = values[0] if len(values) == 1 else np.array(values, "int64")
        return along_axis(const(found, "int64"), rank, axis)

    wide = cast(data, "int64")
    left, right = [max(s, 0) for _, s in pairs], [31 - min(s, 0) for _, s in pairs]
    if any(left):
        wide = ops.left_shift(wide, numbers(left))
    wide = ops.multiply(wide, numbers([m for m, _ in pairs]))
    half = numbers([0 if rounding == "DOWN" else 1 << (r - 1) for r in right])
    if rounding == "TONEAREST":
        below = numbers([(1 << (r - 1)) - 1 for r in right])
        half = ops.where(ops.greater_equal(wide, const(0, "int64")), half, below)
    return cast(ops.right_shift(ops.add(wide, half), numbers(right)), tensor_type_of(data).dtype)


@operator(
    "qnn.requantize",
    infer_type=_requantize_type,
    infer_layout=layout_along_axis(),
    qnn_canonicalize=canonicalize_requantize,
)
def requantize(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
    rounding: str = "None",
    compute_dtype: str = "None",
    out_dtype: str = "int8",
) -> RelayExpr | None:
    """Change the scale and zero point of a quantised tensor.

    Parameters
    ----------
    data : relay.Expr
        Integers.
    input_scale, input_zero_point, output_scale, output_zero_point : relay.Expr
        float32 scales and int32 zero points: scalars, or vectors along `axis`.
    axis : int
        The axis of the vectors.
    rounding : str
        "UPWARD", "TONEAREST" or "DOWN"; "None" takes `requantize_config`'s.
    compute_dtype : str
        "int64", "float32" or "float64"; "None" takes `requantize_config`'s.
    out_dtype : str
        "int8", "uint8", "int16" or "int32".
    """
    if rounding != "None":
        _expect_choice("rounding", rounding, ROUNDINGS)
    if compute_dtype != "None":
        _expect_choice("compute_dtype", compute_dtype, COMPUTE_DTYPES)
    return None
