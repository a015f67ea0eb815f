"""ONNX operators that sample images at other positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, is_static, scalar_like
from tvm.relay.frontend.deformable import Window, deformable_conv2d
from tvm.relay.frontend.dynamic_extents import as_vector, element, extent
from tvm.relay.frontend.dynamic_resize import resize_dynamic_axis
from tvm.relay.frontend.indexing import along_axis, move_axis
from tvm.relay.frontend.resize import Resizing, has_ties, is_exact, resize_axis, resize_images

from .registry import OnnxNode, onnx_op, onnx_ops


@onnx_op("Resize", "Upsample")
def _resize(node: OnnxNode) -> RelayExpr:
    """Whole images by one operator where it does exactly the same, else axis by axis.

    Extents, scales and the part of the image that is shown may be the run's.
    """
    how = _resizing(node)
    if (size := _size_of_images(node, how)) is not None:
        return resize_images(node[0], size, how)
    shape = node.shape(0)
    axes, rank = _axes(node, len(shape)), len(shape)
    is_crop, is_nearest = how.coordinates == "tf_crop_and_resize", how.method == "nearest_neighbor"
    x = node[0] if is_nearest or node.dtype(0).startswith("float") else node[0].astype("float32")
    roi = node.value_or_expr(1, "roi") if is_crop else np.repeat([0.0, 1.0], len(axes))
    for position, (axis, (factor, want)) in enumerate(zip(axes, _wanted(node, axes), strict=True)):
        region = _item(roi, position), _item(roi, position + len(axes))
        if all(isinstance(known, (int, float)) for known in (factor, want, *region)):
            if (want, factor, region) != (shape[axis], 1, (0.0, 1.0)):
                x = resize_axis(x, axis, want, factor, how, region)
            continue
        is_one = isinstance(factor, float) and factor == 1
        is_mixed = is_nearest or is_crop or axis >= 2 or rank < 3  # never images and channels
        if is_mixed and (is_crop or not is_one):
            x = resize_dynamic_axis(x, axis, factor, want, how, region)
    return x if infer_dtype(x) == node.dtype(0) else _op.round(x).astype(node.dtype(0))


def _scales_index(node: OnnxNode) -> int:
    """Which input the factors are; Upsample never had another one between."""
    return 1 if node.op_type == "Upsample" or node.opset < 11 else 2


def _is_of_the_run(node: OnnxNode, *indices: int) -> bool:
    """Whether one of the inputs is known only at run time."""
    return node.allow_dynamic and any(
        node.has(i) and node.shape(i) != (0,) and node.value(i) is None for i in indices
    )


def _item(values: Any, index: int) -> Any:
    """A number of an array, or a vector of one number of a vector."""
    return float(values[index]) if isinstance(values, np.ndarray) else element(values, index)


def _wanted(node: OnnxNode, axes: Sequence[int]) -> list[tuple[Any, Any]]:
    """For each axis its factor and its extent; one may be None, which the run takes of the other."""
    shape, index = node.shape(0), _scales_index(node)
    if _is_of_the_run(node, index):
        return [(element(node[index], i), None) for i in range(len(axes))]
    extents = [shape[axis] for axis in axes]
    if (factors := _factors(node, shape)) is not None:
        given = [factors[axis] for axis in axes]
        return [
            (f, int(np.floor(dim * f)) if isinstance(dim, int) else None)
            for f, dim in zip(given, extents, strict=True)
        ]
    sizes = node.value_or_expr(3, "sizes")
    wanted = [
        int(sizes[i]) if isinstance(sizes, np.ndarray) else _op.cast(element(sizes, i), "int64")
        for i in range(len(axes))
    ]
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    if is_static([*extents, *wanted]):
        ratios = [want / have if have else 1.0 for want, have in zip(wanted, extents, strict=True)]
        if policy == "stretch":
            return list(zip(ratios, wanted, strict=True))
        known = min(ratios) if policy == "not_larger" else max(ratios)
        return [(known, int(np.floor(known * have + 0.5))) for have in extents]
    if policy == "stretch":
        return [
            (want / have if is_static([want, have]) and have else None, want)
            for want, have in zip(wanted, extents, strict=True)
        ]
    have = [_op.cast(as_vector(extent(node[0], axis)), "float32") for axis in axes]
    pairs = zip(wanted, have, strict=True)
    parts = _op.concatenate([_op.cast(as_vector(w), "float32") / h for w, h in pairs], 0)
    find = _op.min if policy == "not_larger" else _op.max
    ratio, half = find(parts, keepdims=True), constant([0.5], "float32")
    return [(ratio, _op.cast(_op.floor(ratio * h + half), "int64")) for h in have]


def _size_of_images(node: OnnxNode, how: Resizing) -> RelayExpr | list[int] | None:
    """Height and width of the result where one operator, ``image.resize2d``, does the same."""
    shape = node.shape(0)
    is_plain = how.coordinates in _COORDINATES and not (how.antialias or how.exclude_outside)
    if len(shape) != 4 or not is_plain:
        return None
    if not is_static(shape) or _is_of_the_run(node, _scales_index(node), 3):
        return _dynamic_size(node, how)
    axes, size, given = _axes(node, 4), list(shape), _factors(node, shape)
    for axis, (_, want) in zip(axes, _wanted(node, axes), strict=True):
        size[axis] = want
    if size[:2] != list(shape[:2]) or (given and not is_exact(shape, size, given)):
        return None
    return None if how.method == "nearest_neighbor" and has_ties(shape, size) else size[2:]


def _dynamic_size(node: OnnxNode, how: Resizing) -> RelayExpr | list[int] | None:
    """The same for extents of the run, batches of any size."""
    shape = node.shape(0)
    if not node.dtype(0).startswith("float") or _is_of_the_run(node, _scales_index(node)):
        return None
    if (factors := _factors(node, shape)) is not None:
        return _size_by_factors(node, factors)
    if node.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    axes = _axes(node, 4)
    known = node.output_dims[0] if node.output_dims else None
    if known is not None and is_static(known[2:]) and set(axes) >= {2, 3}:
        size = [dim for dim in known[2:] if isinstance(dim, int)]
        is_sure = is_static(shape[2:]) and not has_ties(shape[2:], size)
        return size if is_sure or how.method != "nearest_neighbor" else None
    # nearest neighbours in the middle of two elements are found by exact positions
    if axes != [0, 1, 2, 3] or how.method == "nearest_neighbor":
        return None
    return _op.strided_slice(_op.cast(node[3], "int64"), [2], [4])


def _size_by_factors(node: OnnxNode, factors: list[float]) -> RelayExpr | list[int] | None:
    """Height and width, if the extents alone tell the factors."""
    shape = node.shape(0)
    is_integer = [
        float(factor * dim if isinstance(dim, int) else factor).is_integer()
        for dim, factor in zip(shape, factors, strict=True)
    ]
    if not all(is_integer) or factors[:2] != [1.0, 1.0]:
        return None
    if is_static(shape[2:]):
        return [int(np.floor(d * f)) for d, f in zip(shape[2:], factors[2:], strict=True)]
    have = _op.strided_slice(_op.shape_of(node[0], "int64"), [2], [4])
    return have * constant(np.array(factors[2:]), "int64")


_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def _resizing(node: OnnxNode) -> Resizing:
    method = {"nearest": "nearest_neighbor", "bilinear": "linear"}.get(
        mode := node.attr("mode", "nearest"), mode
    )
    if node.op_type == "Upsample" or node.opset < 11:
        return Resizing(method, "asymmetric", "floor")
    return Resizing(
        method,
        node.attr("coordinate_transformation_mode", "half_pixel"),
        node.attr("nearest_mode", "round_prefer_floor"),
        node.attr("cubic_coeff_a", -0.75),
        bool(node.attr("antialias", 0)) and method != "nearest_neighbor",
        bool(node.attr("exclude_outside", 0)),
        node.attr("extrapolation_value", 0.0),
    )


def _axes(node: OnnxNode, rank: int) -> list[int]:
    return [axis % rank for axis in node.attr("axes", range(rank))]


def _factors(node: OnnxNode, shape: tuple[int, ...]) -> list[float] | None:
    """The factors of all axes, if the node states them."""
    values: Any = node.attr("scales")
    if values is None and node.attr("height_scale") is not None:
        values = [1.0, 1.0, node.attr("height_scale"), node.attr("width_scale")]
    if values is None:
        index = _scales_index(node)
        values = node.require_value(index, "scales") if node.has(index) else None
    if values is None or not np.size(values):
        return None
    result = [1.0] * len(shape)
    for axis, factor in zip(_axes(node, len(shape)), values, strict=True):
        result[axis] = float(factor)
    return result


@onnx_op("GridSample", "com.microsoft.GridSample")
def _grid_sample(
    x: RelayExpr, grid: RelayExpr, padding_mode: str = "zeros", align_corners: bool = False,
    *, mode: str | None = None, node: OnnxNode,
) -> RelayExpr:  # fmt: skip
    rank = len(infer_shape(x))
    if rank not in (4, 5):
        raise node.unsupported(f"data of {rank} dimensions")
    mode = mode or ("linear" if node.opset >= 20 else "bilinear")
    return _op.image.grid_sample(
        x, move_axis(grid, -1, 1),
        {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode),
        "NCHW" if rank == 4 else "NCDHW", padding_mode, align_corners,
    )  # fmt: skip


@onnx_op("AffineGrid")
def _affine_grid(node: OnnxNode) -> RelayExpr:
    """The positions of an image's pixels after a map of each image: maps times (x, y, 1)."""
    size, dtype = node.value_or_expr(1, "size"), node.dtype(0)
    rank = len(size) - 2 if isinstance(size, np.ndarray) else node.shape(0)[1]
    is_aligned = bool(node.attr("align_corners", 0))
    maps = _op.expand_dims(_op.transpose(node[0], (0, 2, 1)), 2, rank)
    *columns, result = [
        _op.squeeze(_op.strided_slice(maps, [i], [i + 1], axes=[1]), [1]) for i in range(rank + 1)
    ]
    for i, column in enumerate(columns):  # x, which the last axis counts, first
        axis = rank - i
        position = axis + 1
        count = int(size[position]) if isinstance(size, np.ndarray) else element(size, position)
        positions = _op.reshape(
            _pixel_positions(count, is_aligned, dtype), along_axis(axis, rank + 2)
        )
        result = result + column * positions
    return result


def _pixel_positions(count: Any, is_aligned: bool, dtype: str) -> RelayExpr:
    """Where pixels are between -1 and 1; aligned ones at the corners lie on these."""
    if isinstance(count, int):
        each, last = np.arange(count, dtype="float64"), max(count - 1, 1)
        at = 2 * each / last - (count > 1) if is_aligned else (2 * each + 1) / count - 1
        return constant(at, dtype)
    extent = _op.reshape(_op.cast(count, dtype), ())
    one, two = scalar_like(1, extent), scalar_like(2, extent)
    first = _op.arange(scalar_like(0, extent), extent, one, dtype)
    if not is_aligned:
        return (two * first + one) / extent - one
    start = _op.cast(_op.greater(extent, one), dtype)
    return two * first / _op.maximum(extent - one, one) - start


@onnx_op("RoiAlign")
def _roi_align(
    x: RelayExpr, regions: RelayExpr, batches: RelayExpr, output_height: int = 1,
    output_width: int = 1, spatial_scale: float = 1.0, sampling_ratio: int = 0, mode: str = "avg",
    coordinate_transformation_mode: str = "half_pixel", *, node: OnnxNode,
) -> RelayExpr:  # fmt: skip
    """Regions of images by interpolated samples."""
    batches = _op.expand_dims(batches.astype(infer_dtype(regions)), 1)
    return _op.vision.roi_align(
        x, _op.concatenate([batches, regions], 1), (output_height, output_width), spatial_scale,
        sampling_ratio or -1, "NCHW", {"avg": "avg", "max": "max_corner"}[mode],
        aligned=node.opset >= 16 and coordinate_transformation_mode == "half_pixel",
    )  # fmt: skip


onnx_ops({
    "MaxRoiPool": lambda x, regions, spatial_scale=1.0, *, pooled_shape: _op.vision.roi_pool(
        x, regions, tuple(pooled_shape), spatial_scale
    ),
})  # fmt: skip


@onnx_op("DeformConv")
def _deform_conv(node: OnnxNode) -> RelayExpr:
    for i in range(3):
        node.static_shape(i)
    window = Window(
        node.attr("strides", [1, 1]), node.attr("pads", [0] * 4)[:2], node.attr("dilations", [1, 1])
    )
    result = deformable_conv2d(
        node[0], node[1], node[2], node[4] if node.has(4) else None, window, node.attr("group", 1),
        node.attr("offset_group", 1),
    )  # fmt: skip
    return _op.nn.bias_add(result, node[3]) if node.has(3) else result
