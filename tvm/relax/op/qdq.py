"""Quantisation."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from tvm import te, tir
from tvm.relax.expr import Call, Constant

from .infer import axis_of, dims_of, fail, prove_unequal, tensors, with_dtype
from .operator import DataType, Expr, operator

_NARROW = ("int8", "uint8", "int16", "uint16", "int32", "e4m3_float8", "e5m2_float8", "float16", "float32")  # fmt: skip


def _infer(call: Any, bb: Any, is_quantize: bool) -> Any:
    data, scale, zero = tensors(call, 3)
    kind = call.attrs.out_dtype
    wide = data.dtype if is_quantize else kind
    narrow = kind if is_quantize else data.dtype
    if not narrow.is_void and narrow not in _NARROW:
        raise fail(call, f"requires a narrow dtype such as int8, got {narrow}")
    if not wide.is_void and not wide.is_float:
        raise fail(call, f"requires a float dtype, got {wide}")
    if data.ndim >= 0:
        axis = axis_of(call, call.attrs.axis, data.ndim)
        dims = dims_of(data)
        for info in (scale, zero):
            own = dims_of(info)
            if dims is None or not own:
                continue
            a, b = dims[axis], own[0]
            if prove_unequal(a, b):
                raise fail(call, f"requires {a} scales and zero points, got {info}")
    return with_dtype(data, kind)


def clip_cast(val: Any, dtype: Any) -> Any:
    """A value as one of a narrow type, saturated."""
    low, high = tir.min_value(dtype), tir.max_value(dtype)
    if str(dtype).startswith(("int", "uint")):
        return te.max(tir.min(val, high.astype(val.dtype)), low.astype(val.dtype)).astype(dtype)
    return te.max(tir.min(val, high.astype(val.dtype)), low.astype(val.dtype)).astype(dtype)


def _saturated(rounded: Any, point: Any, kind: Any) -> Any:
    """The sum of whole floating point numbers and zero points, as integers of a type.

    Floating point numbers saturate before they are converted; those of 16 bits hold the sums
    and the bounds of 8-bit integers only.
    """
    if kind.bits > 8 and rounded.dtype == "float16":
        rounded = rounded.astype("float32")
    shifted = rounded + point.astype(rounded.dtype)
    if kind.bits <= 16:
        return clip_cast(shifted, kind)
    low, high = tir.min_value(kind), np.nextafter(np.float32(2.0**kind.bits / 2), np.float32(0))
    below = te.max(
        tir.min(shifted, tir.const(float(high), shifted.dtype)), low.astype(shifted.dtype)
    )
    return tir.Select(shifted > float(high), tir.max_value(kind), below.astype(kind))


def is_const_scalar(x: Any) -> TypeGuard[Constant]:
    """Whether an expression is a scalar constant."""
    return isinstance(x, Constant) and x.struct_info.ndim == 0


def _parameters(call: Call) -> list[Any]:
    return [
        tir.const(p.data.numpy().item(), p.struct_info.dtype) if is_const_scalar(p) else p
        for p in call.args[1:]
    ]


def _at(value: Any, indices: Any, axis: int) -> Any:
    if isinstance(value, te.Tensor):
        return value(indices[axis]) if len(value.shape) == 1 else value()
    return value


def _legalize_quantize(bb: Any, call: Call) -> Any:
    kind = call.attrs.out_dtype
    axis = call.attrs.axis % max(call.args[0].struct_info.ndim, 1)

    def te_quantize(data: Any, scale: Any, zero: Any) -> Any:
        def element(*i: Any) -> Any:
            value = data(*i)
            scaled = value / _at(scale, i, axis).astype(value.dtype)
            point = _at(zero, i, axis)
            if kind.is_float:
                return clip_cast(scaled + point.astype(value.dtype), kind)
            return _saturated(te.round(scaled), point, kind)

        return te.compute(data.shape, element, name="quantized")

    return bb.call_te(te_quantize, call.args[0], *_parameters(call), primfunc_name_hint="quantize")


@operator(
    "relax.quantize",
    "QuantizeAttrs",
    infer=lambda call, bb: _infer(call, bb, True),
    FLegalize=_legalize_quantize,
)
def quantize(
    data: Expr, scale: Expr, zero_point: Expr, axis: int = -1, out_dtype: DataType = "int8"
) -> Expr:
    """round(data / scale) + zero_point, saturated.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    scale, zero_point : relax.Expr
        One for all elements, or one for each index of an axis.
    axis : int
        The axis.
    out_dtype : str
        The data type of the result.
    """


def _legalize_dequantize(bb: Any, call: Call) -> Any:
    kind = call.attrs.out_dtype
    axis = call.attrs.axis % max(call.args[0].struct_info.ndim, 1)

    def te_dequantize(data: Any, scale: Any, zero: Any) -> Any:
        def element(*i: Any) -> Any:
            value, point = data(*i), _at(zero, i, axis)
            factor = _at(scale, i, axis)
            if value.dtype in ("int8", "uint8", "int16", "uint16", "int32"):
                value, point = value.astype("int32"), point.astype("int32")
            difference = (value - point).astype("float32") * factor.astype("float32")
            return clip_cast(difference, kind) if kind == "float16" else difference.astype(kind)

        return te.compute(data.shape, element, name="dequantized")

    return bb.call_te(
        te_dequantize, call.args[0], *_parameters(call), primfunc_name_hint="dequantize"
    )


@operator(
    "relax.dequantize",
    "QuantizeAttrs",
    infer=lambda call, bb: _infer(call, bb, False),
    FLegalize=_legalize_dequantize,
)
def dequantize(
    data: Expr, scale: Expr, zero_point: Expr, axis: int = -1, out_dtype: DataType = "float32"
) -> Expr:
    """(data - zero_point) * scale

    Parameters
    ----------
    data, scale, zero_point, axis, out_dtype :
        As of `quantize`.
    """
