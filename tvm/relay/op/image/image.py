"""Resizing images."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type

from ..attributes import as_float, as_int, as_ints
from ..layout import layout_bound
from ..layout_shapes import axes_extents, shape_in_layout
from ..registry import OpPattern, define_op
from ..types import expect, expect_tensor, shape_of_type, tensor


class Resize2DAttrs(Attrs, key="relay.attrs.Resize2DAttrs"):
    """The size wanted and the interpolation."""

    size: tuple[int, ...]
    layout: str = "NCHW"
    method: str = "linear"
    coordinate_transformation_mode: str = "half_pixel"
    rounding_method: str = ""
    cubic_alpha: float = -0.5
    cubic_exclude: int = 0
    extrapolation_value: float = 0.0
    out_dtype: str = ""


def _resize2d_type(attrs: Resize2DAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "image.resize2d")
    expect(len(attrs.size) == 2, f"image.resize2d requires a size of two numbers, got {attrs.size}")
    methods = ("nearest_neighbor", "linear", "cubic")
    expect(
        attrs.method in methods,
        f"image.resize2d requires a method of {', '.join(methods)}, got {attrs.method!r}",
    )
    extents = axes_extents(shape_of_type(data), attrs.layout, "image.resize2d")
    extents["H"], extents["W"] = attrs.size
    return tensor(shape_in_layout(extents, attrs.layout), attrs.out_dtype or data.dtype)


RESIZE2D = define_op(
    "image.resize2d",
    Resize2DAttrs,
    inputs=("data",),
    infer_type=_resize2d_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [
        topi.image.resize2d(
            inputs[0],
            None,
            attrs.size,
            attrs.layout,
            attrs.method,
            attrs.coordinate_transformation_mode,
            attrs.rounding_method,
            attrs.cubic_alpha,
            attrs.cubic_exclude,
            attrs.extrapolation_value,
            out_type.dtype,
        )
    ],
    infer_layout=layout_bound,
)


def resize2d(
    data: RelayExpr,
    size: int | Sequence[int],
    roi: Sequence[float] | None = None,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> RelayExpr:
    """Resize images to a size.

    Parameters
    ----------
    data : relay.Expr
        The images.
    size : int or sequence of int
        The new height and width.
    roi : sequence of float, optional
        Only the whole image is handled.
    layout : str
        The data's layout.
    method : str
        "nearest_neighbor", "linear" or "cubic".
    coordinate_transformation_mode : str
        "half_pixel", "pytorch_half_pixel", "align_corners" or "asymmetric".
    rounding_method : str
        For the nearest neighbour: "round", "floor", "ceil" and so on.
    cubic_alpha, cubic_exclude, extrapolation_value : float
        Coefficients of cubic interpolation, and the value outside of a region.
    out_dtype : str, optional
        The dtype of the result, the data's by default.
    """
    if roi is not None and any(roi) and tuple(roi) != (0, 0, 1, 1):
        raise ValueError("image.resize2d handles the whole image only, got a region of interest")
    both = as_ints(size)
    return RESIZE2D(
        data,
        size=both * 2 if len(both) == 1 else both,
        layout=str(layout),
        method=str(method),
        coordinate_transformation_mode=str(coordinate_transformation_mode),
        rounding_method=str(rounding_method),
        cubic_alpha=as_float(cubic_alpha),
        cubic_exclude=as_int(cubic_exclude),
        extrapolation_value=as_float(extrapolation_value),
        out_dtype=out_dtype or "",
    )
