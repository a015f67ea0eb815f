"""Quantisation simulated in real numbers, with a dtype that the run may choose."""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr

from .. import tag
from ..rewrites import add_alter_layout as add_alter_layout
from ..rewrites import bias_add_legalize as bias_add_legalize
from ..rewrites import qnn_conv2d_alter_layout as qnn_conv2d_alter_layout
from ..rewrites import qnn_dense_alter_layout as qnn_dense_alter_layout
from ..rewrites import qnn_requantize_alter_layout as qnn_requantize_alter_layout
from ..utils import dims

SQNN_DISABLE, SQNN_INT8, SQNN_UINT8, SQNN_INT32 = range(4)
SQNN_DTYPE_TO_CODE = {
    "disable": SQNN_DISABLE,
    "int8": SQNN_INT8,
    "uint8": SQNN_UINT8,
    "int32": SQNN_INT32,
}
SQNN_CODE_TO_DTYPE = {code: name for name, code in SQNN_DTYPE_TO_CODE.items()}
_LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1)}


def simulated_quantize(
    data: te.Tensor,
    out_dtype: te.Tensor | str,
    output_scale: te.Tensor | None = None,
    output_zero_point: te.Tensor | None = None,
    axis: int = -1,
) -> te.Tensor:
    """clip(round(data / scale) + zero_point), kept in the data's dtype.

    Parameters
    ----------
    data : te.Tensor
        Real numbers.
    out_dtype : te.Tensor or str
        A name of `SQNN_DTYPE_TO_CODE`, or a scalar int32 tensor with its code.
    output_scale, output_zero_point : te.Tensor
        Scalars, or vectors along `axis`.
    axis : int
        The axis of the vectors.
    """

    def clipped(name: str, value: PrimExpr, scale: PrimExpr, zero: PrimExpr) -> Any:
        low, high = [tir.const(float(limit), data.dtype) for limit in _LIMITS[name]]
        return tir.max(tir.min(tir.round(value / scale) + zero, high), low)

    return _simulated(data, out_dtype, output_scale, output_zero_point, axis, clipped)


def simulated_dequantize(
    data: te.Tensor,
    in_dtype: te.Tensor | str,
    input_scale: te.Tensor | None = None,
    input_zero_point: te.Tensor | None = None,
    axis: int = -1,
) -> te.Tensor:
    """(data - zero_point) * scale; parameters as in `simulated_quantize`."""

    def real(name: str, value: PrimExpr, scale: PrimExpr, zero: PrimExpr) -> Any:
        return (value - zero) * scale

    return _simulated(data, in_dtype, input_scale, input_zero_point, axis, real)


def _simulated(
    data: te.Tensor,
    dtype: te.Tensor | str,
    scale: te.Tensor | None,
    zero_point: te.Tensor | None,
    axis: int,
    function: Any,
) -> te.Tensor:
    if dtype == "disable" or scale is None or zero_point is None:
        return te.compute(data.shape, lambda *i: data(*i), name="T_simulated", tag=tag.ELEMWISE)

    def parameter(values: te.Tensor, indices: tuple[Any, ...]) -> PrimExpr:
        extents = dims(values.shape)
        if not extents:
            return values()
        if isinstance(extents[0], int):
            return values(0 if extents[0] == 1 else indices[axis])
        return values(tir.indexmod(indices[axis], extents[0]))  # 1, or that of the axis

    def element(*i: Any) -> Any:
        value = data(*i)
        near = parameter(scale, i)
        zero = parameter(zero_point, i).astype(data.dtype)
        if isinstance(dtype, str):
            return function(dtype, value, near, zero)
        code = dtype(*[0] * len(dtype.shape))
        result = value
        for name in ("int32", "uint8", "int8"):
            is_name = code.equal(SQNN_DTYPE_TO_CODE[name])
            result = tir.if_then_else(is_name, function(name, value, near, zero), result)
        return result

    return te.compute(data.shape, element, name="T_simulated", tag=tag.BROADCAST)
