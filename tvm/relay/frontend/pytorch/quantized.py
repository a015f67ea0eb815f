"""Quantised PyTorch modules (eager and FX graph mode, int8) as qnn operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay import qnn
from tvm.relay.expr import const
from tvm.relay.frontend.common import constant, infer_dtype

from .registry import CONVERTERS, Converter, as_number, torch_dtype, torch_op, torch_ops
from .tree import leaves, mapped

_QUANTIZED_TYPES = {12: "int8", 13: "uint8", 14: "int32"}


@dataclass(frozen=True)
class Quantized:
    """Integers, and the real numbers ``(data - zero_point) * scale`` that they stand for.

    Scale and zero point are numbers, or vectors along an axis.
    """

    data: RelayExpr
    scale: Any
    zero_point: Any
    dtype: str
    axis: int = -1

    def real(self) -> RelayExpr:
        """The real numbers."""
        if isinstance(self.scale, RelayExpr):
            return qnn.op.dequantize(self.data, self.scale, self.zero_point, axis=self.axis)
        return qnn.op.dequantize(self.data, const(self.scale), const(self.zero_point, "int32"))


def quantized(x: RelayExpr, scale: Any, zero_point: Any, dtype: str) -> Quantized:
    """Real numbers quantised per tensor: times the inverse of the scale, as PyTorch does, and rounded."""
    step, zero = float(as_number(scale)), int(as_number(zero_point))
    scaled = x if step == 1 else x * const(np.float32(1) / np.float32(step))
    data = qnn.op.quantize(scaled, const(1.0), const(zero, "int32"), out_dtype=dtype)
    return Quantized(data, step, zero, dtype)


# these commute with a scale, so ties between integers are exact with a scale of 1
_LINEAR = {
    "mean", "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d",
}  # fmt: skip


# among them, those that average the integers as they are: halves are rounded before the zero point
# is taken off
_OF_INTEGERS = {"mean", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"}


def quantized_constant(tensor: Any) -> Quantized:
    """A quantised tensor of torch."""
    integers = tensor.int_repr().numpy()
    scale, zero, axis = scale_and_zero(tensor)
    if axis >= 0:
        scale, zero = constant(scale, "float32"), constant(zero, "int32")
    return Quantized(constant(integers), scale, zero, str(integers.dtype), axis)


def scale_and_zero(tensor: Any) -> tuple[Any, Any, int]:
    """Scale and zero point of a quantised tensor of torch; arrays along an axis, which is -1 else."""
    import torch

    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return tensor.q_scale(), tensor.q_zero_point(), -1
    scales, zeros = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return scales.numpy(), zeros.numpy(), tensor.q_per_channel_axis()


# functions with a fixed range have a fixed scale, and zero points for quint8 and qint8
_FIXED_SCALE = {
    "sigmoid": (1 / 256, {"uint8": 0, "int8": -128}),
    "hardsigmoid": (1 / 256, {"uint8": 0, "int8": -128}),
    "tanh": (2 / 256, {"uint8": 128, "int8": 0}),
}
# these give some of the integers they get, so scale and zero point stay
_SAME_SCALE = {
    "max_pool1d", "max_pool2d", "flatten", "view", "reshape", "transpose", "permute", "squeeze",
    "unsqueeze", "contiguous", "dropout", "slice", "select", "chunk", "detach", "clone",
    "channel_shuffle", "pixel_shuffle", "pixel_unshuffle", "upsample_nearest1d",
    "upsample_nearest2d", "upsample_nearest3d", "split", "split_with_sizes", "tensor_split",
    "unbind", "narrow", "expand", "expand_as", "repeat", "tile", "flip", "roll", "movedim",
    "moveaxis", "swapaxes", "swapdims", "t", "numpy_T", "mT", "unfold", "index_select", "gather",
    "view_as", "reshape_as", "unflatten", "max_pool3d", "relu", "max", "amax", "min", "amin",
}  # fmt: skip


def on_quantized(kind: str, convert: Converter, args: Sequence[Any]) -> Any:
    """The results of an operator that knows real numbers only, for quantised tensors."""
    first = next(arg for arg in leaves(args) if isinstance(arg, Quantized))
    name = kind.removeprefix("aten::").rstrip("_")
    if name == "relu":
        return _wrapped(_op.maximum(first.data, const(first.zero_point, first.dtype)), first)
    if name in _SAME_SCALE and all(
        [_has_scale_of(arg, first) for arg in leaves(args) if isinstance(arg, Quantized)]
    ):
        return _wrapped(convert(*_unwrapped(args, lambda q: q.data)), first)
    if name in _LINEAR and not isinstance(first.scale, RelayExpr):
        zero_point = 0 if name in _OF_INTEGERS else first.zero_point
        steps = replace(first, scale=1.0, zero_point=zero_point)
        found = _requantized(convert(steps.real(), *args[1:]), steps)
        return replace(found, scale=first.scale, zero_point=first.zero_point)
    real = convert(*_unwrapped(args, Quantized.real))
    if isinstance(real, RelayExpr) and name in _FIXED_SCALE:
        scale, zeros = _FIXED_SCALE[name]
        return quantized(real, scale, zeros[first.dtype], first.dtype)
    return _requantized(real, first)


def _has_scale_of(a: Quantized, b: Quantized) -> bool:
    return a is b or (
        not isinstance(a.scale, RelayExpr)
        and not isinstance(b.scale, RelayExpr)
        and (a.scale, a.zero_point) == (b.scale, b.zero_point)
    )


def _requantized(result: Any, like: Quantized) -> Any:
    """Tensors of real numbers by a known scale and zero point; other results as they are."""

    def of_leaf(leaf: Any) -> Any:
        if not isinstance(leaf, RelayExpr) or not infer_dtype(leaf).startswith("float"):
            return leaf
        return quantized(leaf, like.scale, like.zero_point, like.dtype)

    return mapped(result, of_leaf)


def has_quantized(args: Sequence[Any]) -> bool:
    """Whether tensors among arguments are quantised."""
    return any(isinstance(leaf, Quantized) for leaf in leaves(args))


def _unwrapped(values: Sequence[Any], apply: Callable[[Quantized], RelayExpr]) -> list[Any]:
    found: list[Any] = mapped(
        values, lambda leaf: apply(leaf) if isinstance(leaf, Quantized) else leaf
    )
    return found


def _wrapped(result: Any, like: Quantized) -> Any:
    def of_leaf(leaf: Any) -> Any:
        if not isinstance(leaf, RelayExpr) or infer_dtype(leaf) != like.dtype:
            return leaf  # indices, as of a greatest element
        return Quantized(leaf, like.scale, like.zero_point, like.dtype)

    return mapped(result, of_leaf)


@torch_op("quantize_per_tensor")
def _quantize_per_tensor(x: RelayExpr, scale: Any, zero_point: Any, dtype: int) -> Quantized:
    """Whole tensors of real numbers: the zero point is added before they are rounded."""
    step, zero = float(as_number(scale)), int(as_number(zero_point))
    moved = x * const(np.float32(1) / np.float32(step)) + const(np.float32(zero))
    found = quantized(moved, 1.0, 0, _QUANTIZED_TYPES[dtype])
    return replace(found, scale=step, zero_point=zero)


@torch_op("quantize_per_channel")
def _quantize_per_channel(
    x: RelayExpr, scales: RelayExpr, zero_points: RelayExpr, axis: int, dtype: int
) -> Quantized:
    scale, zero = _op.cast(scales, "float32"), _op.cast(zero_points, "int32")
    integers = qnn.op.quantize(x, scale, zero, axis=axis, out_dtype=_QUANTIZED_TYPES[dtype])
    return Quantized(integers, scale, zero, _QUANTIZED_TYPES[dtype], axis)


@torch_op("fake_quantize_per_tensor_affine")
def _fake_quantize(
    x: RelayExpr, scale: Any, zero_point: Any, low: int, high: int, axis: int = -1
) -> RelayExpr:
    """Quantised to a range of integers, and back."""
    step, zero = _parameters(scale, zero_point)
    integers = qnn.op.quantize(x, step, zero, axis=axis, out_dtype="int32")
    within = _op.clip(integers, float(low), float(high))
    return qnn.op.dequantize(within, step, zero, axis=axis)


@torch_op("fused_moving_avg_obs_fake_quant")
def _observed_fake_quantize(
    x: RelayExpr, observes: Any, is_on: RelayExpr, low: Any, high: Any, scale: RelayExpr,
    zero_point: RelayExpr, averaging: Any, quant_min: int, quant_max: int, axis: int,
    per_row: bool, symmetric: bool,
) -> RelayExpr:  # fmt: skip
    """Quantised and back, in the range observed so far, which running a network leaves as it is."""
    if not per_row:
        scale, zero_point = [_op.reshape(v, ()) for v in (scale, zero_point)]
    rounded = _fake_quantize(x, scale, zero_point, quant_min, quant_max, axis if per_row else -1)
    is_wanted = _op.not_equal(_op.reshape(is_on, ()), _op.zeros((), infer_dtype(is_on)))
    return _op.where(is_wanted, rounded, x)


def _parameters(*values: Any) -> list[RelayExpr]:
    """A scale and a zero point as the quantised operators take them."""
    return [
        _op.cast(v, d) if isinstance(v, RelayExpr) else const(v, d)
        for v, d in zip(values, ("float32", "int32"), strict=True)
    ]


def _in_range(x: RelayExpr, low: int, high: int) -> RelayExpr:
    """Integers within a range, unless their type holds no others."""
    dtype = infer_dtype(x)
    if (low, high) == {"int8": (-128, 127), "uint8": (0, 255)}.get(dtype):
        return x
    return _op.clip(x, float(low), float(high))


@torch_op("quantized_decomposed::quantize_per_channel")
def _quantize_decomposed(
    x: RelayExpr, scale: Any, zero_point: Any, axis: int, low: int, high: int, dtype: int
) -> RelayExpr:
    """Integers as an ordinary tensor, as programs of torch.export have them."""
    step, zero = _parameters(as_number(scale), as_number(zero_point))
    return _in_range(qnn.op.quantize(x, step, zero, axis, torch_dtype(dtype)), low, high)


@torch_op("quantized_decomposed::dequantize_per_channel")
def _dequantize_decomposed(
    x: RelayExpr, scale: Any, zero_point: Any, axis: int, low: int, high: int, dtype: int,
    out_dtype: int | None = None,
) -> RelayExpr:  # fmt: skip
    step, zero = _parameters(as_number(scale), as_number(0 if zero_point is None else zero_point))
    return qnn.op.dequantize(x, step, zero, axis, torch_dtype(out_dtype))


@torch_op("dequantize")
def _dequantize(x: Any) -> Any:
    if isinstance(x, list):
        return [_dequantize(item) for item in x]
    return x.real() if isinstance(x, Quantized) else x


torch_ops({
    "fake_quantize_per_channel_affine": lambda x, scale, zero, axis, low, high: _fake_quantize(
        x, scale, zero, low, high, axis
    ),
    "quantized_decomposed::quantize_per_tensor": lambda x, scale, zero, *rest: _quantize_decomposed(
        x, scale, zero, -1, *rest
    ),
    "quantized_decomposed::dequantize_per_tensor": lambda x, scale, zero, *rest: (
        _dequantize_decomposed(x, scale, zero, -1, *rest)
    ),
    "int_repr": lambda x: x.data,
    "q_scale": lambda x: x.scale,
    "q_zero_point": lambda x: x.zero_point,
})  # fmt: skip


def aware_operators() -> frozenset[str]:
    """Operators that take quantised tensors as they are."""
    return frozenset(
        [name for name in CONVERTERS if name.startswith("quantized::")]
        + [f"aten::{name}" for name in ("dequantize", "int_repr", "q_scale", "q_zero_point")]
    )
