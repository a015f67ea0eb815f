"""Quantised PyTorch modules (eager and FX graph mode, int8) as qnn operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay import qnn
from tvm.relay.expr import const
from tvm.relay.frontend.common import constant, infer_shape

from .registry import CONVERTERS, Converter, as_number, torch_op

_QUANTIZED_TYPES = {12: "int8", 13: "uint8", 14: "int32"}


@dataclass(frozen=True)
class Quantized:
    """Integers, and the real numbers ``(data - zero_point) * scale`` that they stand for."""

    data: RelayExpr
    scale: float
    zero_point: int
    dtype: str

    def real(self) -> RelayExpr:
        """The real numbers."""
        return qnn.op.dequantize(self.data, const(self.scale), const(self.zero_point, "int32"))


def quantized(x: RelayExpr, scale: Any, zero_point: Any, dtype: str) -> Quantized:
    """Real numbers in steps of a scale."""
    step, zero = float(as_number(scale)), int(as_number(zero_point))
    data = qnn.op.quantize(x, const(step), const(zero, "int32"), out_dtype=dtype)
    return Quantized(data, step, zero, dtype)


# these give some of the integers they get, so scale and zero point stay
_SAME_SCALE = {
    "max_pool1d", "max_pool2d", "flatten", "view", "reshape", "transpose", "permute", "squeeze",
    "unsqueeze", "contiguous", "dropout", "slice", "select", "chunk", "detach", "clone",
    "channel_shuffle", "pixel_shuffle", "upsample_nearest2d",
}  # fmt: skip


def on_quantized(kind: str, convert: Converter, args: Sequence[Any]) -> Any:
    """The results of an operator that knows real numbers only, for quantised tensors."""
    first = next(arg for arg in _leaves(args) if isinstance(arg, Quantized))
    if kind.removeprefix("aten::").rstrip("_") in _SAME_SCALE:
        return _wrapped(convert(*_mapped(args, lambda q: q.data)), first)
    real = convert(*_mapped(args, Quantized.real))
    if isinstance(real, RelayExpr):
        return quantized(real, first.scale, first.zero_point, first.dtype)
    raise OpAttributeUnImplemented(f"{kind} does not support quantised tensors")


def _leaves(values: Sequence[Any]) -> list[Any]:
    return [
        leaf
        for value in values
        for leaf in (_leaves(value) if isinstance(value, (list, tuple)) else [value])
    ]


def has_quantized(args: Sequence[Any]) -> bool:
    """Whether tensors among arguments are quantised."""
    return any(isinstance(leaf, Quantized) for leaf in _leaves(args))


def _mapped(values: Sequence[Any], apply: Callable[[Quantized], RelayExpr]) -> list[Any]:
    return [
        apply(v) if isinstance(v, Quantized)
        else _mapped(v, apply) if isinstance(v, (list, tuple)) else v
        for v in values
    ]  # fmt: skip


def _wrapped(result: Any, like: Quantized) -> Any:
    if isinstance(result, (list, tuple)):
        return [_wrapped(item, like) for item in result]
    return Quantized(result, like.scale, like.zero_point, like.dtype)


@torch_op("quantize_per_tensor")
def _quantize_per_tensor(x: RelayExpr, scale: Any, zero_point: Any, dtype: int) -> Quantized:
    return quantized(x, scale, zero_point, _QUANTIZED_TYPES[dtype])


@torch_op("dequantize")
def _dequantize(x: Any) -> Any:
    if isinstance(x, list):
        return [_dequantize(item) for item in x]
    return x.real() if isinstance(x, Quantized) else x


@torch_op("int_repr")
def _int_repr(x: Quantized) -> RelayExpr:
    return x.data


@torch_op("q_scale")
def _q_scale(x: Quantized) -> float:
    return x.scale


@torch_op("q_zero_point")
def _q_zero_point(x: Quantized) -> int:
    return x.zero_point


def _weights(weight: Any) -> tuple[RelayExpr, RelayExpr, np.ndarray[Any, Any]]:
    """The integers of a packed weight, their zero points, and one scale or one a channel."""
    import torch

    integers = constant(weight.int_repr().numpy())
    if weight.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return integers, const(weight.q_zero_point(), "int32"), np.float32(weight.q_scale())
    if weight.q_per_channel_zero_points().any():
        raise OpAttributeUnImplemented("weights by channel require zero points of 0")
    return integers, const(0, "int32"), weight.q_per_channel_scales().numpy().astype("float32")


def _finished(
    sums: RelayExpr, bias: Any, x: Quantized, scales: Any, axis: int, relu: bool, scale: Any,
    zero_point: Any,
) -> Quantized:  # fmt: skip
    """Integer sums with the bias added, in the steps of the result."""
    steps = np.asarray(scales * np.float32(x.scale), "float32")
    if bias is not None:
        whole = np.round(bias.detach().numpy().astype("float64") / steps).astype("int32")
        sums = _op.nn.bias_add(sums, constant(whole), axis)
    step, zero = float(as_number(scale)), int(as_number(zero_point))
    result = qnn.op.requantize(
        sums, constant(steps), const(0, "int32"), const(step), const(zero, "int32"), axis=axis,
        out_dtype=x.dtype,
    )  # fmt: skip
    if relu:
        result = _op.maximum(result, const(zero, x.dtype))
    return Quantized(result, step, zero, x.dtype)


def _conv(relu: bool) -> Converter:
    def convert(x: Quantized, packed: Any, scale: Any, zero_point: Any) -> Quantized:
        import torch

        weight, bias = torch.ops.quantized.conv2d_unpack(packed)
        integers, kernel_zero, scales = _weights(weight)
        shape = infer_shape(integers)
        sums = qnn.op.conv2d(
            x.data, integers, const(x.zero_point, "int32"), kernel_zero, const(x.scale),
            constant(scales), kernel_size=shape[2:], channels=shape[0],
            strides=tuple(packed.stride()), padding=tuple(packed.padding()),
            dilation=tuple(packed.dilation()), groups=packed.groups(), out_dtype="int32",
        )  # fmt: skip
        return _finished(sums, bias, x, scales, 1, relu, scale, zero_point)

    return convert


def _dense(relu: bool) -> Converter:
    def convert(x: Quantized, packed: Any, scale: Any, zero_point: Any) -> Quantized:
        import torch

        weight, bias = torch.ops.quantized.linear_unpack(packed)
        integers, kernel_zero, scales = _weights(weight)
        units, width = infer_shape(integers)
        leading = infer_shape(x.data)[:-1]
        sums = qnn.op.dense(
            _op.reshape(x.data, (-1, width)), integers, const(x.zero_point, "int32"), kernel_zero,
            const(x.scale), constant(scales), units=units, out_dtype="int32",
        )  # fmt: skip
        made = _finished(sums, bias, x, scales, 1, relu, scale, zero_point)
        data = made.data if len(leading) == 1 else _op.reshape(made.data, (*leading, units))
        return Quantized(data, made.scale, made.zero_point, made.dtype)

    return convert


CONVERTERS["quantized::conv2d"] = _conv(relu=False)
CONVERTERS["quantized::conv2d_relu"] = _conv(relu=True)
CONVERTERS["quantized::linear"] = _dense(relu=False)
CONVERTERS["quantized::linear_relu"] = _dense(relu=True)


def _elementwise(apply: Callable[..., RelayExpr], relu: bool) -> Converter:
    def convert(a: Quantized, b: Any, scale: Any, zero_point: Any) -> Quantized:
        right = b.real() if isinstance(b, Quantized) else b
        result = apply(a.real(), right)
        result = _op.nn.relu(result) if relu else result
        return quantized(result, scale, zero_point, a.dtype)

    return convert


for _name, _function in (("add", _op.add), ("mul", _op.multiply)):
    CONVERTERS[f"quantized::{_name}"] = _elementwise(_function, relu=False)
    CONVERTERS[f"quantized::{_name}_relu"] = _elementwise(_function, relu=True)


@torch_op("quantized::cat")
def _cat(parts: Sequence[Quantized], dim: int, scale: Any, zero_point: Any) -> Quantized:
    joined = _op.concatenate([part.real() for part in parts], dim)
    return quantized(joined, scale, zero_point, parts[0].dtype)


AWARE = {name for name in CONVERTERS if name.startswith("quantized::")} | {
    f"aten::{name}" for name in ("dequantize", "int_repr", "q_scale", "q_zero_point")
}
