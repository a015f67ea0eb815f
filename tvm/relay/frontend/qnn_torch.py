"""Helpers of importers of quantised PyTorch modules, under their classic names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay import qnn
from tvm.relay.expr import Constant, const

from .pytorch.quantized import scale_and_zero

Array = np.ndarray[Any, Any]


class QNNParam:
    """The weight and the bias of a quantised layer in real numbers, and the weight's scale.

    Parameters
    ----------
    weight, bias : numpy.ndarray
        Real numbers; the bias may be None.
    scale, zero_point : numpy.ndarray
        One of each, or one for each output channel.
    """

    def __init__(self, weight: Array, bias: Any, scale: Any, zero_point: Any) -> None:
        self.weight = weight
        self.bias = None if bias is None else bias.detach().numpy()
        self.scale: Constant = const(np.asarray(scale, "float32"))
        self.zero_point: Constant = const(np.asarray(zero_point, "int32"))


class ConvPackedParam(QNNParam):
    """What a packed convolution holds beside its weight.

    Parameters
    ----------
    weight_np, bias, scale, zero_point
        As for `QNNParam`.
    stride, padding, dilation, groups, output_padding
        How the convolution goes; the last one is empty unless it is transposed.
    """

    def __init__(
        self, weight_np: Array, bias: Any, scale: Any, zero_point: Any, stride: Sequence[int],
        padding: Sequence[int], dilation: Sequence[int], groups: int, output_padding: Sequence[int],
    ) -> None:  # fmt: skip
        super().__init__(weight_np, bias, scale, zero_point)
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.groups = groups
        self.output_padding = output_padding


def make_qnn_param(qweight: Any, bias: Any) -> QNNParam:
    """The parameters of a layer with a quantised weight of torch."""
    return QNNParam(qweight.dequantize().numpy(), bias, *scale_and_zero(qweight)[:2])


def make_conv_packed_param(qweight: Any, bias: Any, packed_params: Any) -> ConvPackedParam:
    """The parameters of a convolution, which a packed object of torch holds."""
    return ConvPackedParam(
        qweight.dequantize().numpy(), bias, *scale_and_zero(qweight)[:2], packed_params.stride(),
        packed_params.padding(), packed_params.dilation(), packed_params.groups(),
        packed_params.output_padding(),
    )  # fmt: skip


def get_weight_quant_params(
    script_module: Any, packed_param_names: Iterable[str]
) -> dict[str, QNNParam]:
    """The parameters of the packed weights among the attributes of a scripted module.

    Parameters
    ----------
    script_module : torch.jit.ScriptModule
        A traced or scripted quantised module.
    packed_param_names : list of str
        Last parts of the paths of packed weights, as ``_packed_params``.
    """
    import torch

    names, found = set(packed_param_names), dict[str, QNNParam]()
    for path, module in script_module.named_modules():
        for name in names:
            packed: Any = getattr(module, name, None)
            if type(packed).__name__ != "ScriptObject":
                continue
            key = f"{path}.{name}" if path else name
            if hasattr(packed, "stride"):
                rank = len(packed.stride())
                unpack = getattr(torch.ops.quantized, f"conv{rank}d_unpack")
                weight, bias = unpack(packed)
                found[key] = make_conv_packed_param(weight, bias, packed)
            else:
                found[key] = make_qnn_param(*torch.ops.quantized.linear_unpack(packed))
    return found


def quantize_numpy(weight: Array, scale: Any, zero_point: Any, out_dtype_np: Any) -> Array:
    """Real numbers quantised to a type, per tensor or along the first axis."""
    limits = np.iinfo(out_dtype_np)
    along = [-1, *[1] * (weight.ndim - 1)]
    steps, zeros = [np.asarray(v) for v in (scale, zero_point)]
    if steps.ndim and steps.size > 1:
        steps, zeros = steps.reshape(along), zeros.reshape(along) if zeros.size > 1 else zeros
    rounded = zeros + np.rint(weight / steps)
    clipped: Array = np.clip(rounded, limits.min, limits.max).astype(out_dtype_np)
    return clipped


def apply_with_upcast(data: RelayExpr, func: Callable[[RelayExpr], RelayExpr]) -> RelayExpr:
    """A function of uint8 that computes in int32."""
    return _op.cast(func(_op.cast(data, "int32")), "uint8")


def apply_with_fp32_fallback(
    data: RelayExpr, input_scale: RelayExpr, input_zero_point: RelayExpr,
    func_fp32: Callable[[RelayExpr], RelayExpr],
) -> RelayExpr:  # fmt: skip
    """A function of uint8 that computes with real numbers, its result of the same scale."""
    real = func_fp32(qnn.op.dequantize(data, input_scale, input_zero_point))
    return qnn.op.quantize(real, input_scale, input_zero_point, out_dtype="uint8")


def quantized_relu(data: RelayExpr, input_zero_point: RelayExpr) -> RelayExpr:
    """The larger one of uint8 and the zero point."""
    return _op.maximum(data, _op.cast(input_zero_point, "uint8"))


def quantized_sigmoid(inputs: Sequence[RelayExpr]) -> RelayExpr:
    """The sigmoid of uint8, of the scale 1/256. The inputs are the data, their scale, zero point."""
    data, scale, zero_point = inputs
    real = _op.sigmoid(qnn.op.dequantize(data, scale, zero_point))
    return qnn.op.quantize(real, const(1 / 256), const(0), out_dtype="uint8")


def quantize_scalar(data: float, scale: float, zero_point: int) -> int:
    """The uint8 of a real number."""
    return max(0, min(round(zero_point + data / scale), 255))
