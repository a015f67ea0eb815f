"""Resizing and sampling of images."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.ir.expr import PrimExpr
from tvm.relax.expr import Call
from tvm.relax.op.infer import (
    check_count,
    dims_of,
    fail,
    known_dims,
    made,
    prove_unequal,
    simplified,
    tensor,
    tensors,
)
from tvm.relax.op.nn.conv import checked_layouts
from tvm.relax.op.operator import Attr, DataType, Expr, Shape, operator
from tvm.relax.struct_info import ShapeExpr, ShapeStructInfo
from tvm.tir import IntImm
from tvm.tir.data_layout import layout as make_layout


def _infer(call: Any, bb: Any) -> Any:
    """A tensor in the layout of `data`, its spatial axes of the given size; of dtype `out_dtype`,
    or that of `data`."""
    check_count(call, 2)
    info = tensor(call, 0)
    size = call.args[1].struct_info
    if not isinstance(size, ShapeStructInfo):
        raise fail(call, f"requires the size as a Shape, got {size}")
    if size.ndim != 2:
        raise fail(call, f"requires a size of two dimensions, got {size}")
    attrs = call.attrs
    mapping = checked_layouts(call, attrs.layout, "NCHW", "layout")
    count = len(make_layout(attrs.layout))
    if info.ndim not in (-1, count):
        raise fail(call, f"requires a tensor of {count} dimensions, got {info}")
    kind = info.dtype if attrs.out_dtype.is_void else attrs.out_dtype
    dims = dims_of(info)
    values = call.args[1].values if isinstance(call.args[1], ShapeExpr) else size.values
    if dims is None or values is None:
        return made(None, kind, info.vdevice, count)
    new = list(mapping.forward_shape(list(dims)))
    new[2:] = list(values)
    result = [simplified(dim) for dim in mapping.backward_shape(new)]
    return made(result, kind, info.vdevice)


def _legalize(bb: Any, call: Call) -> Any:
    attrs = call.attrs
    return bb.call_te(
        topi.image.resize2d, call.args[0], list(attrs.roi), call.args[1], attrs.layout,
        attrs.method, attrs.coordinate_transformation_mode, attrs.rounding_method,
        attrs.cubic_alpha, attrs.cubic_exclude, attrs.extrapolation_value,
        None if attrs.out_dtype.is_void else attrs.out_dtype, primfunc_name_hint="resize2d",
    )  # fmt: skip


@operator("relax.image.resize2d", "Resize2DAttrs", infer=_infer, FLegalize=_legalize)
def resize2d(
    data: Expr, size: Shape, roi: Attr = None, layout: str = "NCHW", method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "round",
    cubic_alpha: float = -0.5, cubic_exclude: int = 0, extrapolation_value: float = 0.0,
    out_dtype: DataType = None,
) -> Expr:  # fmt: skip
    """An image of another size.

    Parameters
    ----------
    data : relax.Expr
        The images.
    size : int, tuple of int, or Expr
        Their new height and width.
    roi : list of float, optional
        The part that ``tf_crop_and_resize`` takes.
    layout : str
        Of the images.
    method : str
        ``"nearest_neighbor"``, ``"linear"`` or ``"cubic"``.
    coordinate_transformation_mode, rounding_method : str
        Where new pixels are among the old ones.
    cubic_alpha, cubic_exclude, extrapolation_value : float
        Of cubic interpolation, and of pixels outside.
    out_dtype : str, optional
        The data type of the result.
    """
    if roi is None:
        roi = (0.0, 0.0, 0.0, 0.0)
    elif isinstance(roi, float):
        roi = (roi,) * 4
    if isinstance(size, (int, PrimExpr)):
        size = (size, size)
    if isinstance(size, (list, tuple)) and len(size) == 1:
        size = (size[0], size[0])
    return {"roi": tuple([float(getattr(v, "value", v)) for v in roi]), "size": size}


def _infer_grid_sample(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `data`, with its images and channels, whose spatial axes are those
    of `grid`."""
    data, grid = infos = tensors(call, 2)
    layout = call.attrs.layout
    if layout not in ("NCHW", "NCDHW"):
        raise fail(call, f"requires a layout of NCHW or NCDHW, got {layout!r}")
    rank = len(layout)
    for info in infos:
        if info.ndim not in (-1, rank):
            raise fail(call, f"requires tensors of {rank} dimensions, got {info}")
    dims, places = known_dims(data), known_dims(grid)
    if dims is None or places is None:
        return made(None, data.dtype, data.vdevice, rank)
    if prove_unequal(places[1], IntImm("int64", rank - 2)):
        raise fail(call, f"requires {rank - 2} coordinates along axis 1 of the grid, got {grid}")
    if prove_unequal(dims[0], places[0]):
        raise fail(call, f"requires a grid for each of {dims[0]} images, got {places[0]}")
    return made([*dims[:2], *places[2:]], data.dtype, data.vdevice)


def _legalize_grid_sample(bb: Any, call: Call) -> Any:
    attrs = call.attrs
    return bb.call_te(
        topi.image.grid_sample, *call.args, attrs.method, attrs.layout, attrs.padding_mode,
        attrs.align_corners,
    )  # fmt: skip


@operator(
    "relax.image.grid_sample", "GridSampleAttrs", infer=_infer_grid_sample,
    FLegalize=_legalize_grid_sample,
)  # fmt: skip
def grid_sample(
    data: Expr, grid: Expr, method: str = "bilinear", layout: str = "NCHW",
    padding_mode: str = "zeros", align_corners: bool = True,
) -> Expr:  # fmt: skip
    """Images at the positions of a grid.

    Parameters
    ----------
    data : relax.Expr
        The images.
    grid : relax.Expr
        The positions, (batch, 2, height, width) or (batch, 3, depth, height, width): x, y (and z)
        in [-1, 1].
    method : str
        ``"bilinear"``, ``"nearest"`` or, for NCHW, ``"bicubic"``.
    layout : str
        ``"NCHW"`` or ``"NCDHW"``.
    padding_mode : str
        What lies outside: ``"zeros"``, the elements of the ``"border"``, or a ``"reflection"``.
    align_corners : bool
        Whether -1 and 1 are the centres of the corner pixels, or their outer edges.
    """
