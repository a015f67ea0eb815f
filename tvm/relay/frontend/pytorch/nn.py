"""PyTorch linear layers, convolutions, pooling, resizing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_shape, is_static
from tvm.relay.frontend.dynamic_extents import extent
from tvm.relay.frontend.dynamic_resize import resize_dynamic_axis, resize_to_dynamic_extents
from tvm.relay.frontend.indexing import move_axis
from tvm.relay.frontend.resize import Resizing, is_exact, resize_axes, resize_images
from tvm.relay.frontend.windows import conv_transpose, convolution

from .dynamic_shapes import as_sizes, has_dynamic, sizes_of
from .registry import (
    Converter,
    as_ints,
    as_number,
    is_tensor,
    spread,
    torch_op,
    torch_ops,
)


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


@torch_op("conv1d", "conv2d", "conv3d", "_convolution_mode")
def _conv(
    x: RelayExpr, weight: RelayExpr, bias: Any = None, strides: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> RelayExpr:  # fmt: skip
    if isinstance(padding, str):
        padding = _named_padding(padding, infer_shape(weight)[2:], dilation)
    return _convolution(x, weight, bias, strides, padding, dilation, False, 0, groups)


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
    factors = _factors(scales, len(spatial))
    wanted: list[Any]
    if size is None:
        if not is_static(spatial):
            return _resize_by_factors(x, factors, how)
        wanted = [int(dim * f) for dim, f in zip(spatial, factors, strict=True)]
    else:
        wanted = as_sizes(size)
        if has_dynamic([*wanted, *sizes_of(x)[2:]]):
            extents = [_op.reshape(w, (1,)) if is_tensor(w) else w for w in wanted]
            if how.coordinates == "align_corners" or None in factors:
                return resize_to_dynamic_extents(x, extents, how)
            return _resize_by_factors(x, factors, how, extents)
    if how.coordinates != "align_corners" and None not in factors:
        if not is_exact(spatial, wanted, factors):
            return resize_axes(x, range(2, 2 + len(wanted)), wanted, factors, how)
    return resize_images(x, wanted, how)


def _factors(scales: Sequence[Any], rank: int) -> list[Any]:
    """New pixels for each old one: a list, or a number for each axis, where torch gives some."""
    given = scales[0] if scales and isinstance(scales[0], (list, tuple)) else scales
    factors = [None if f is None else float(as_number(f)) for f in given]
    return factors if len(factors) == rank else (factors or [None]) * rank


def _resize_by_factors(
    x: RelayExpr, factors: Sequence[float], how: Resizing, wanted: Sequence[Any] | None = None
) -> RelayExpr:
    """Resize images whose extents the run knows; torch multiplies these in float64."""
    if wanted is None:
        wanted = [_scaled(extent(x, axis), factor) for axis, factor in enumerate(factors, 2)]
    if how.coordinates == "align_corners":
        return resize_to_dynamic_extents(x, wanted, how)
    for axis, (want, factor) in enumerate(zip(wanted, factors, strict=True), 2):
        x = resize_dynamic_axis(x, axis, factor, want, how)
    return x


def _scaled(size: Any, factor: float) -> Any:
    if isinstance(size, int):
        return int(size * factor)
    return _op.cast(_op.floor(_op.cast(size, "float64") * constant(factor, "float64")), "int64")


def _antialiased(method: str) -> Converter:
    """Resizing with filters as wide as the pixels that they make."""
    how = Resizing(method, "half_pixel", alpha=-0.5, antialias=True, exclude_outside=True)

    def convert(x: RelayExpr, size: Any, align: bool, *scales: Any) -> RelayExpr:
        spatial, given = infer_shape(x)[2:], scales[0] if size is None else [*scales, None, None]
        factors = [None if f is None else float(as_number(f)) for f in given]
        if not is_static(spatial):
            raise OpAttributeUnImplemented(
                f"antialiased resizing requires the extents of images at import, got {spatial}"
            )
        wanted = (
            [int(dim * f) for dim, f in zip(spatial, factors, strict=True) if f]
            if size is None else as_ints(size)
        )  # fmt: skip
        ratios = [
            _ratio(have, want, align, f)
            for have, want, f in zip(spatial, wanted, factors, strict=False)
        ]
        return resize_axes(x, range(2, 2 + len(wanted)), wanted, ratios, how)

    return convert


def _ratio(have: int, want: int, align: bool, factor: float | None) -> float:
    """New pixels for each old one."""
    if align:
        return (want - 1) / (have - 1) if min(have, want) > 1 else math.inf
    return factor or want / have


@torch_op("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def _grid_sampler(x: RelayExpr, grid: RelayExpr, mode: int, padding: int, align: Any) -> RelayExpr:
    rank = len(infer_shape(x)) - 2
    return _op.image.grid_sample(
        x, move_axis(grid, -1, 1), method=("bilinear", "nearest", "bicubic")[mode],
        layout=("NCHW", "NCDHW")[rank - 2],
        padding_mode=("zeros", "border", "reflection")[padding], align_corners=bool(align),
    )  # fmt: skip


torch_ops({
    "upsample_nearest1d upsample_nearest2d": _nearest("asymmetric", "floor"),
    "_upsample_nearest_exact2d": _nearest("half_pixel", "round_prefer_ceil"),
    "upsample_linear1d upsample_bilinear2d": _interpolated("linear"),
    "upsample_bicubic2d": _interpolated("cubic"),
    "_upsample_bilinear2d_aa": _antialiased("linear"),
    "_upsample_bicubic2d_aa": _antialiased("cubic"),
    "_upsample_lanczos2d_aa": _antialiased("lanczos"),
    # a convolution of data of (time, batch, channels)
    "conv_tbc": lambda x, weight, bias, padding=0: _op.transpose(
        _conv(_op.transpose(x, [1, 2, 0]), _op.transpose(weight, [2, 1, 0]), bias, 1, padding),
        [2, 0, 1],
    ),
})  # fmt: skip
