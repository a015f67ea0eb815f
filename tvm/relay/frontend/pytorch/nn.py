"""PyTorch linear layers, convolutions, pooling, resizing."""

from __future__ import annotations

from typing import Any

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_shape, scalar_like
from tvm.relay.frontend.onnx.math import matmul

from .registry import as_ints, as_number, promoted, spread, torch_op


@torch_op("matmul", "mm", "bmm", "mv", "dot")
def _matmul(a: RelayExpr, b: RelayExpr, *_: Any) -> RelayExpr:
    if len(infer_shape(a)) == len(infer_shape(b)) == 1:
        return _op.sum(a * b)
    return matmul(*promoted(a, b))


@torch_op("linear")
def _linear(x: RelayExpr, weight: RelayExpr, bias: Any = None) -> RelayExpr:
    shape, units = infer_shape(x), infer_shape(weight)[0]
    flat = x if len(shape) == 2 else _op.reshape(x, (-1, shape[-1]))
    result = _op.nn.dense(flat, weight)
    result = result if bias is None else _op.nn.bias_add(result, bias)
    return result if len(shape) == 2 else _op.reshape(result, (*shape[:-1], units))


@torch_op("addmm")
def _addmm(bias: RelayExpr, a: RelayExpr, b: RelayExpr, beta: Any = 1, alpha: Any = 1) -> RelayExpr:
    product = matmul(a, b)
    if as_number(alpha) != 1:
        product = product * scalar_like(as_number(alpha), product)
    if as_number(beta) != 1:
        bias = bias * scalar_like(as_number(beta), bias)
    if infer_shape(bias) == infer_shape(product)[1:]:
        return _op.nn.bias_add(product, bias)
    return product + bias


@torch_op("baddbmm")
def _baddbmm(
    bias: RelayExpr, a: RelayExpr, b: RelayExpr, beta: Any = 1, alpha: Any = 1
) -> RelayExpr:
    return _addmm(bias, a, b, beta, alpha)


@torch_op("_convolution", "convolution")
def _convolution(
    x: RelayExpr, weight: RelayExpr, bias: Any, strides: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, *_: Any,
) -> RelayExpr:  # fmt: skip
    shape = infer_shape(weight)
    rank = len(shape) - 2
    options: dict[str, Any] = {
        "strides": spread(strides, rank), "padding": spread(padding, rank),
        "dilation": spread(dilation, rank), "groups": groups, "kernel_size": tuple(shape[2:]),
    }  # fmt: skip
    if transposed:
        convolve = {1: "conv1d_transpose", 2: "conv2d_transpose", 3: "conv3d_transpose"}[rank]
        options["channels"] = shape[1] * groups
        options["output_padding"] = spread(output_padding, rank)
    else:
        convolve = {1: "conv1d", 2: "conv2d", 3: "conv3d"}[rank]
        options["channels"] = shape[0]
    apply = getattr(_op.nn, convolve, None)
    if apply is None:
        raise OpAttributeUnImplemented(f"{convolve} is not supported")
    result = apply(x, weight, **options)
    return result if bias is None else _op.nn.bias_add(result, bias)


@torch_op("conv1d", "conv2d", "conv3d")
def _conv(
    x: RelayExpr, weight: RelayExpr, bias: Any = None, strides: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> RelayExpr:  # fmt: skip
    if isinstance(padding, str):
        padding = _named_padding(padding, infer_shape(weight)[2:], dilation)
    return _convolution(x, weight, bias, strides, padding, dilation, False, 0, groups)


@torch_op("_convolution_mode")
def _convolution_mode(
    x: RelayExpr, weight: RelayExpr, bias: Any, strides: Any, padding: str, dilation: Any,
    groups: int,
) -> RelayExpr:  # fmt: skip
    return _conv(x, weight, bias, strides, padding, dilation, groups)


def _named_padding(name: str, kernel: tuple[int, ...], dilation: Any) -> list[int]:
    if name == "valid":
        return [0] * len(kernel)
    steps = spread(dilation, len(kernel))
    total = [(k - 1) * step for k, step in zip(kernel, steps, strict=True)]
    return [t // 2 for t in total] + [t - t // 2 for t in total]


@torch_op("max_pool2d")
def _max_pool2d(
    x: RelayExpr, kernel: Any, strides: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> RelayExpr:  # fmt: skip
    size = spread(kernel, 2)
    return _batched(x, lambda data: _op.nn.max_pool2d(
        data, pool_size=size, strides=spread(strides, 2, size), padding=spread(padding, 2),
        dilation=spread(dilation, 2), ceil_mode=bool(ceil_mode),
    ))  # fmt: skip


@torch_op("avg_pool2d")
def _avg_pool2d(
    x: RelayExpr, kernel: Any, strides: Any = None, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor: Any = None,
) -> RelayExpr:  # fmt: skip
    if divisor is not None:
        raise OpAttributeUnImplemented("avg_pool2d does not support divisor_override")
    size = spread(kernel, 2)
    return _batched(x, lambda data: _op.nn.avg_pool2d(
        data, pool_size=size, strides=spread(strides, 2, size), padding=spread(padding, 2),
        ceil_mode=bool(ceil_mode), count_include_pad=bool(count_include_pad),
    ))  # fmt: skip


def _batched(x: RelayExpr, apply: Any) -> RelayExpr:
    """Images without a batch axis get one for the operator."""
    if len(infer_shape(x)) == 3:
        return _op.squeeze(apply(_op.expand_dims(x, 0)), [0])
    return apply(x)


@torch_op("adaptive_avg_pool2d")
def _adaptive_avg_pool2d(x: RelayExpr, size: Any) -> RelayExpr:
    wanted = _adaptive_size(x, size)
    if wanted == (1, 1):
        return _op.nn.global_avg_pool2d(x)
    return _op.nn.adaptive_avg_pool2d(x, output_size=wanted)


@torch_op("adaptive_max_pool2d")
def _adaptive_max_pool2d(x: RelayExpr, size: Any) -> RelayExpr:
    return _op.nn.adaptive_max_pool2d(x, output_size=_adaptive_size(x, size))


def _adaptive_size(x: RelayExpr, size: Any) -> tuple[int, ...]:
    spatial = infer_shape(x)[-2:]
    items = size if isinstance(size, (list, tuple)) else [size] * 2
    wanted = [
        dim if item is None else as_ints(item)[0] for dim, item in zip(spatial, items, strict=True)
    ]
    return tuple(wanted)


@torch_op("upsample_nearest2d")
def _upsample_nearest(x: RelayExpr, size: Any, *scales: Any) -> RelayExpr:
    return _resize(
        x, size, scales[0] if scales else None, "nearest_neighbor", "asymmetric", "floor"
    )


@torch_op("upsample_bilinear2d")
def _upsample_bilinear(x: RelayExpr, size: Any, align: bool, *scales: Any) -> RelayExpr:
    mode = "align_corners" if align else "half_pixel"
    return _resize(x, size, scales[0] if scales else None, "linear", mode, "")


def _resize(
    x: RelayExpr, size: Any, scales: Any, method: str, coordinates: str, rounding: str
) -> RelayExpr:
    spatial = infer_shape(x)[2:]
    if size is not None:
        wanted = as_ints(size)
    else:
        factors = scales if isinstance(scales, (list, tuple)) else [scales] * 2
        wanted = [int(dim * float(f)) for dim, f in zip(spatial, factors, strict=True)]
    return _op.image.resize2d(
        x, wanted, layout="NCHW", method=method, coordinate_transformation_mode=coordinates,
        rounding_method=rounding,
    )  # fmt: skip
