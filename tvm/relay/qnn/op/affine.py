"""Between real numbers and quantised ones, and simulations of that in real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from tvm import te, topi
from tvm.error import OpAttributeInvalid
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import const
from tvm.relay.op.attributes import as_int
from tvm.relay.op.layout_axes import layout_along_axis
from tvm.relay.op.operator import Expr, Operand, operator
from tvm.relay.op.registry import OpPattern, Precision, ops
from tvm.relay.op.types import expect, expect_tensor, shape_of_type, tensor
from tvm.runtime.ndarray import NDArray, empty

from .common import (
    add_zero_point,
    along_axis,
    cast,
    constant_array,
    expect_dtype,
    expect_scale,
    expect_zero_point,
    integer_range,
    scalar_value,
    subtract_zero_point,
)

_EXACT = 1 << 16  # differences of 16-bit integers and up to this are exact in float32
_QUANTIZED = ("int8", "uint8", "int16", "uint16", "int32")


class SimulatedQuantizeAttrs(Attrs, key="relay.attrs.SimulatedQuantizeAttrs"):
    """The axis of vector parameters."""

    axis: int = -1


def _quantize_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor of the shape of `data`, and of dtype `out_dtype`."""
    who = "qnn.quantize"
    data = expect_dtype(arg_types[0], ("float32", "float16", "int32"), who, "data")
    expect_scale(arg_types[1], who, "output_scale", data, attrs.axis)
    expect_zero_point(arg_types[2], who, "output_zero_point", data, attrs.axis)
    expect(
        attrs.out_dtype in _QUANTIZED,
        f"{who} requires out_dtype of {', '.join(_QUANTIZED)}, got {attrs.out_dtype!r}",
    )
    return tensor(shape_of_type(data), attrs.out_dtype)


def quantized(
    data: RelayExpr, scale: RelayExpr, zero_point: RelayExpr, out_dtype: str, axis: int = -1
) -> RelayExpr:
    """clip(round(data / scale) + zero_point), halves to even."""
    rank = len(tensor_type_of(data).shape)
    ratio = cast(data, "float32")
    if scalar_value(scale) != 1.0:
        ratio = ops.divide(ratio, along_axis(scale, rank, axis))
    shifted = add_zero_point(ops.round(ratio), along_axis(zero_point, rank, axis))
    low, high = integer_range(out_dtype)
    if out_dtype == "int32":
        high = float(np.nextafter(np.float32(high), np.float32(0)))  # 2**31 itself has no int32
    return ops.cast(ops.clip(shifted, a_min=low, a_max=high), dtype=out_dtype)


def _dequantize_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor of the shape of `data`, and of dtype `out_dtype`."""
    who = "qnn.dequantize"
    data = expect_dtype(arg_types[0], (*_QUANTIZED, "float16", "float32"), who, "data")
    expect_scale(arg_types[1], who, "input_scale", data, attrs.axis)
    expect_zero_point(arg_types[2], who, "input_zero_point", data, attrs.axis)
    allowed = ("float32", "float16")
    expect(
        attrs.out_dtype in allowed,
        f"{who} requires out_dtype of {', '.join(allowed)}, got {attrs.out_dtype!r}",
    )
    return tensor(shape_of_type(data), attrs.out_dtype)


def dequantized(
    data: RelayExpr,
    scale: RelayExpr,
    zero_point: RelayExpr,
    out_dtype: str = "float32",
    axis: int = -1,
) -> RelayExpr:
    """(data - zero_point) * scale"""
    rank = len(tensor_type_of(data).shape)
    numbers = _numbers(data, along_axis(scale, rank, axis), along_axis(zero_point, rank, axis))
    if numbers is not None:
        return const(numbers if out_dtype == "float32" else numbers.numpy(), out_dtype)
    wide = data if tensor_type_of(data).dtype.is_float else cast(data, "int32")
    shifted = subtract_zero_point(wide, along_axis(zero_point, rank, axis))
    product = ops.multiply(cast(shifted, "float32"), along_axis(scale, rank, axis))
    return cast(product, out_dtype)


def _numbers(data: RelayExpr, scale: RelayExpr, zero_point: RelayExpr) -> NDArray | None:
    """What constants stand for, computed in place, without a copy of them in 32-bit integers."""
    values, factor, zero = [constant_array(x) for x in (data, scale, zero_point)]
    if values is None or factor is None or zero is None:
        return None
    if values.itemsize > 2 or values.dtype.kind == "f" or np.abs(zero).max(initial=0) > _EXACT:
        return None
    found = empty(np.broadcast_shapes(values.shape, zero.shape, factor.shape), "float32")
    numbers = np.from_dlpack(found)
    np.subtract(values, zero.astype("float32"), out=numbers, dtype="float32")
    np.multiply(numbers, factor, out=numbers)
    return found


def _simulated_type(attrs: SimulatedQuantizeAttrs, arg_types: Sequence[Type]) -> Type:
    """A tensor of the shape of `data`, and of dtype float32."""
    who = "qnn.simulated_quantize"
    data = expect_dtype(arg_types[0], ("float32",), who, "data")
    expect_dtype(arg_types[1], ("int32",), who, "dtype")
    expect_scale(arg_types[2], who, "scale", data, attrs.axis)
    expect_zero_point(arg_types[3], who, "zero_point", data, attrs.axis)
    return expect_tensor(data, who)


def _simulating(function: Callable[..., te.Tensor]) -> Callable[..., list[te.Tensor]]:
    return lambda attrs, inputs, out_type: [function(*inputs, attrs.axis)]


@operator(
    "qnn.quantize",
    fields=("out_dtype", "axis"),
    infer_type=_quantize_type,
    infer_layout=layout_along_axis(),
    qnn_canonicalize=lambda attrs, inputs, types: quantized(
        inputs[0], inputs[1], inputs[2], attrs.out_dtype, attrs.axis
    ),
    precision=Precision.KEEP_FLOAT32,
)
def quantize(
    data: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
    out_dtype: str = "int8",
) -> RelayExpr:
    """Quantise real numbers: clip(round(data / scale) + zero_point).

    Parameters
    ----------
    data : relay.Expr
        float32 numbers.
    output_scale, output_zero_point : relay.Expr
        A float32 scale and an int32 zero point: scalars, or vectors along `axis`.
    axis : int
        The axis of the vectors.
    out_dtype : str
        "int8", "uint8", "int16", "uint16" or "int32".
    """


@operator(
    "qnn.dequantize",
    fields=("out_dtype", "axis"),
    infer_type=_dequantize_type,
    infer_layout=layout_along_axis(),
    qnn_canonicalize=lambda attrs, inputs, types: dequantized(
        inputs[0], inputs[1], inputs[2], attrs.out_dtype, attrs.axis
    ),
)
def dequantize(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    axis: int = -1,
    out_dtype: str = "float32",
) -> RelayExpr:
    """The real numbers of quantised ones: (data - zero_point) * scale.

    Parameters
    ----------
    data : relay.Expr
        Integers.
    input_scale, input_zero_point : relay.Expr
        A float32 scale and an int32 zero point: scalars, or vectors along `axis`.
    axis : int
        The axis of the vectors.
    out_dtype : str
        "float32" or "float16".
    """


def _dtype_code(dtype: object) -> RelayExpr:
    if isinstance(dtype, RelayExpr):
        return dtype
    codes = topi.nn.SQNN_DTYPE_TO_CODE
    if dtype not in codes:
        raise OpAttributeInvalid(
            f"simulated quantisation requires a dtype of {', '.join(codes)}, got {dtype!r}"
        )
    return const(codes[dtype], "int32")


_SIMULATED: dict[str, Any] = {
    "infer_type": _simulated_type,
    "fuse": OpPattern.ELEMWISE,
    "precision": Precision.KEEP_FLOAT32,
}


@operator(
    "qnn.simulated_quantize",
    SimulatedQuantizeAttrs,
    inputs=("data", "out_dtype", "output_scale", "output_zero_point"),
    compute=_simulating(topi.nn.simulated_quantize),
    **_SIMULATED,
)
def simulated_quantize(
    data: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
    out_dtype: Annotated[str | RelayExpr, Operand(_dtype_code)] = "int8",
) -> RelayExpr:
    """Quantise, keeping the numbers in float32; the dtype may be chosen at run time.

    Parameters
    ----------
    data, output_scale, output_zero_point, axis
        As in `quantize`.
    out_dtype : str or relay.Expr
        "int8", "uint8", "int32" or "disable" (the data is passed on), or an int32 scalar with
        their code of `topi.nn.SQNN_DTYPE_TO_CODE`.
    """
    return ops.qnn.simulated_quantize(
        data, _dtype_code(out_dtype), output_scale, output_zero_point, axis=as_int(axis)
    )


@operator(
    "qnn.simulated_dequantize",
    SimulatedQuantizeAttrs,
    inputs=("data", "in_dtype", "input_scale", "input_zero_point"),
    compute=_simulating(topi.nn.simulated_dequantize),
    **_SIMULATED,
)
def simulated_dequantize(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    axis: int = -1,
    in_dtype: Annotated[str | RelayExpr, Operand(_dtype_code)] = "int8",
) -> RelayExpr:
    """Undo `simulated_quantize`.

    Parameters
    ----------
    data, input_scale, input_zero_point, axis
        As in `dequantize`.
    in_dtype : str or relay.Expr
        As `out_dtype` of `simulated_quantize`.
    """
    return ops.qnn.simulated_dequantize(
        data, _dtype_code(in_dtype), input_scale, input_zero_point, axis=as_int(axis)
    )
