"""PyTorch linear layers, convolutions, pooling, resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import infer_shape, scalar_like
from tvm.relay.frontend.dynamic_resize import resize_to_dynamic_extents
from tvm.relay.frontend.matmul import matmul
from tvm.relay.frontend.resize import Resizing, is_exact, resize_axes, resize_images
from tvm.relay.frontend.windows import conv_transpose, convolution

from .dynamic_shapes import as_sizes, has_dynamic, is_dynamic, reshaped, size_of, sizes_of
from .registry import (
    Converter,
    Rows,
    as_ints,
    as_number,
    is_tensor,
    promoted,
    spread,
    torch_op,
    torch_ops,
)


@torch_op("matmul", "mm", "bmm", "mv", "dot")
def matrix_product(a: RelayExpr, b: RelayExpr, *_: Any) -> RelayExpr:
    """The product of vectors, matrices or batches of them."""
    if len(infer_shape(a)) == len(infer_shape(b)) == 1:
        return _op.sum(a * b)
    left, right = promoted(a, b)
    if is_dynamic(left) or is_dynamic(right):
        return _dynamic_matmul(left, right)
    return matmul(left, right)


def _dynamic_matmul(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    """A product of matrices; batches have to be the same, as broadcasting would depend on data."""
    a_rank, b_rank = len(infer_shape(a)), len(infer_shape(b))
    if min(a_rank, b_rank) == 1 or (b_rank > 2 and a_rank != b_rank):
        raise OpAttributeUnImplemented(
            f"products of tensors of ranks {a_rank} and {b_rank} require sizes known at import"
        )
    if b_rank == 2:
        return linear(a, _op.transpose(b, (1, 0)))
    if a_rank == 3:
        return _op.nn.batch_matmul(a, b, transpose_b=False)
    left, right = [reshaped(x, [-1, *sizes_of(x)[-2:]]) for x in (a, b)]
    product = _op.nn.batch_matmul(left, right, transpose_b=False)
    return reshaped(product, [*sizes_of(a)[:-1], size_of(b, -1)])


@torch_op("linear")
def linear(x: RelayExpr, weight: RelayExpr, bias: Any = None) -> RelayExpr:
    """Rows times a weight (units, inputs), with a bias."""
    if len(infer_shape(weight)) == 1:
        product = matrix_product(x, weight)
        return product if bias is None else product + bias
    if bias is not None and len(infer_shape(bias)) != 1:
        biased: RelayExpr = linear(x, weight) + bias
        return biased
    shape, units = infer_shape(x), infer_shape(weight)[0]
    flat = x if len(shape) == 2 else _op.reshape(x, (-1, infer_shape(weight)[1]))
    result = _op.nn.dense(flat, weight)
    result = result if bias is None else _op.nn.bias_add(result, bias, axis=-1)
    if is_dynamic(x) and len(shape) > 2:
        return _op.reshape_like(result, x, 0, 1, 0, len(shape) - 1)
    return result if len(shape) == 2 else _op.reshape(result, (*shape[:-1], units))


@torch_op("addmm")
def _addmm(bias: RelayExpr, a: RelayExpr, b: RelayExpr, beta: Any = 1, alpha: Any = 1) -> RelayExpr:
    product = matrix_product(a, b)
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
    rank = len(infer_shape(weight)) - 2
    steps, pads, spacing = [spread(v, rank) for v in (strides, padding, dilation)]
    if len(infer_shape(x)) == rank + 1:
        alone = _convolution(
            _op.expand_dims(x, 0), weight, bias, strides, padding, dilation, transposed,
            output_padding, groups,
        )  # fmt: skip
        return _op.squeeze(alone, [0])
    if transposed:
        extra = spread(output_padding, rank)
        result = conv_transpose(x, weight, steps, pads, spacing, groups, extra)
    else:
        result = convolution(x, weight, steps, pads, spacing, groups)
    return result if bias is None else _op.nn.bias_add(result, bias)


@torch_op("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(
    x: RelayExpr, weight: RelayExpr, bias: Any = None, strides: Any = 1, padding: Any = 0,
    output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
) -> RelayExpr:  # fmt: skip
    return _convolution(x, weight, bias, strides, padding, dilation, True, output_padding, groups)


@torch_op("conv1d", "conv2d", "conv3d")
def _conv(
    x: RelayExpr, weight: RelayExpr, bias: Any = None, strides: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> RelayExpr:  # fmt: skip
    if isinstance(padding, str):
        padding = _named_padding(padding, infer_shape(weight)[2:], dilation)
    return _convolution(x, weight, bias, strides, padding, dilation, False, 0, groups)


@torch_op("conv_tbc")
def _conv_tbc(x: RelayExpr, weight: RelayExpr, bias: RelayExpr, padding: Any = 0) -> RelayExpr:
    """A convolution of data of (time, batch, channels)."""
    moved = _conv(_op.transpose(x, [1, 2, 0]), _op.transpose(weight, [2, 1, 0]), bias, 1, padding)
    return _op.transpose(moved, [2, 0, 1])


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


def _nearest(coordinates: str, rounding: str) -> Converter:
    return lambda x, size, *scales: _resize(
        x, size, scales, Resizing("nearest_neighbor", coordinates, rounding)
    )


def _interpolated(method: str) -> Converter:
    return lambda x, size, align, *scales: _resize(
        x, size, scales, Resizing(method, "align_corners" if align else "half_pixel", "")
    )


def _resize(x: RelayExpr, size: Any, scales: Sequence[Any], how: Resizing) -> RelayExpr:
    spatial = infer_shape(x)[2:]
    if size is not None:
        wanted = as_sizes(size)
        if has_dynamic([*wanted, *sizes_of(x)[2:]]):
            extents = [_op.reshape(w, (1,)) if is_tensor(w) else w for w in wanted]
            return resize_to_dynamic_extents(x, extents, how)
    else:
        given = scales[0] if isinstance(scales[0], (list, tuple)) else [scales[0]] * len(spatial)
        factors = [float(as_number(f)) for f in given]
        wanted = [int(dim * f) for dim, f in zip(spatial, factors, strict=True)]
        if how.coordinates != "align_corners" and not is_exact(spatial, wanted, factors):
            return resize_axes(x, range(2, 2 + len(wanted)), wanted, factors, how)
    return resize_images(x, wanted, how)


def _antialiased(method: str) -> Converter:
    """Resizing with filters as wide as the pixels that they make."""
    how = Resizing(method, "half_pixel", alpha=-0.5, antialias=True, exclude_outside=True)

    def convert(x: RelayExpr, size: Any, align: bool, *scales: Any) -> RelayExpr:
        spatial, given = infer_shape(x)[2:], scales[0] if size is None else [*scales, None, None]
        factors = [None if f is None else float(as_number(f)) for f in given]
        wanted = (
            [int(dim * f) for dim, f in zip(spatial, factors, strict=True) if f]
            if size is None else as_ints(size)
        )  # fmt: skip
        apart = [
            _ratio(have, want, align, f)
            for have, want, f in zip(spatial, wanted, factors, strict=False)
        ]
        return resize_axes(x, range(2, 2 + len(wanted)), wanted, apart, how)

    return convert


def _ratio(have: int, want: int, align: bool, factor: float | None) -> float:
    """New pixels for each old one."""
    if align:
        return (want - 1) / (have - 1) if min(have, want) > 1 else math.inf
    return factor or want / have


_UPSAMPLING: Rows = {
    "upsample_nearest1d upsample_nearest2d": _nearest("asymmetric", "floor"),
    "_upsample_nearest_exact2d": _nearest("half_pixel", "round_prefer_ceil"),
    "upsample_linear1d upsample_bilinear2d": _interpolated("linear"),
    "upsample_bicubic2d": _interpolated("cubic"),
    "_upsample_bilinear2d_aa": _antialiased("linear"),
    "_upsample_bicubic2d_aa": _antialiased("cubic"),
    "_upsample_lanczos2d_aa": _antialiased("lanczos"),
}
torch_ops(_UPSAMPLING)
