"""Resizing images, and cutting boxes out of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call
from tvm.tir import IntImm
from tvm.topi.image.resize import COORDINATE_MODES

from ..attributes import as_float, as_int, as_list, spread
from ..computes import RESULT_DTYPE, computed_by
from ..layout import layout_bound
from ..layout_shapes import axes_extents, axis_of, shape_in_layout
from ..operator import Attribute, Expr, Ints, OperatorFunction, OptionalStr, P, R, operator
from ..parameters import documented_by, of_rank
from ..registry import OpPattern, ops
from ..run_time import RunTime
from ..separable import separable_gradient
from ..types import (
    Tensor1,
    Tensor2,
    TypeRelation,
    expect,
    expect_dim,
    expect_tensor,
    shape_of_type,
    tensor,
)

_METHODS = ("nearest_neighbor", "linear", "cubic")


def _resize_type(who: str, spatial: str) -> TypeRelation:
    rank = len(spatial)

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor in the layout of `data`, its spatial axes of the given size; of dtype
        `out_dtype`, or that of `data`."""
        data = expect_tensor(arg_types[0], who)
        expect(
            len(attrs.size) == rank, f"{who} requires a size of {rank} numbers, got {attrs.size}"
        )
        expect(
            attrs.method in _METHODS,
            f"{who} requires a method of {', '.join(_METHODS)}, got {attrs.method!r}",
        )
        mode = attrs.coordinate_transformation_mode
        expect(
            mode in COORDINATE_MODES,
            f"{who} requires a coordinate_transformation_mode of {', '.join(COORDINATE_MODES)}, "
            f"got {mode!r}",
        )
        expect(
            attrs.roi is None or len(attrs.roi) == 2 * rank,
            f"{who} requires a region of {2 * rank} numbers, got {attrs.roi}",
        )
        extents = axes_extents(shape_of_type(data), attrs.layout, who)
        extents.update(zip(spatial, attrs.size, strict=True))
        return tensor(shape_in_layout(extents, attrs.layout), attrs.out_dtype or data.dtype)

    return relation


def _resized(call: Call, identity: RelayExpr, which: int) -> RelayExpr:
    attrs = call.attrs
    rank, roi = len(attrs.size), attrs.roi
    named = {name: getattr(attrs, name) for name in _RESIZING}
    ends = None if roi is None else (roi[which], roi[rank + which])
    # what lies outside depends on no element
    return ops.image.resize1d(
        identity, size=(attrs.size[which],), roi=ends, layout="NCW", extrapolation_value=0.0, **named
    )  # fmt: skip


_RESIZING = (
    "method", "coordinate_transformation_mode", "rounding_method", "cubic_alpha", "cubic_exclude",
)  # fmt: skip


def _resize(
    name: str, spatial: str, function: Callable[..., te.Tensor], **facets: Any
) -> Callable[[Callable[P, R | None]], OperatorFunction[P, R]]:
    def compute(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
        extents = topi.utils.dims(out_type.shape)
        size = [extents[axis_of(attrs.layout, axis)] for axis in spatial]
        return [
            function(
                inputs[0], attrs.roi, size, attrs.layout, attrs.method,
                attrs.coordinate_transformation_mode, attrs.rounding_method, attrs.cubic_alpha,
                attrs.cubic_exclude, attrs.extrapolation_value,
                out_type.dtype,
            )
        ]  # fmt: skip

    return operator(
        name,
        support_level=5,
        infer_type=_resize_type(name, spatial),
        fuse=OpPattern.INJECTIVE,
        compute=compute,
        infer_layout=layout_bound,
        gradient=separable_gradient(_resized),
        **facets,
    )


def _size(size: object, rank: int) -> tuple[int | PrimExpr, ...]:
    """One extent for each axis; types alone may have variables among them."""
    extents = size if isinstance(size, (list, tuple)) else [size]
    if not any([isinstance(e, PrimExpr) and not isinstance(e, IntImm) for e in extents]):
        return spread(size, rank)
    return tuple([e if isinstance(e, PrimExpr) else as_int(e) for e in extents])


def _region(roi: Sequence[float] | None) -> tuple[float, ...] | None:
    return None if roi is None else tuple([as_float(v) for v in as_list(roi, "numbers")]) or None


Size2 = Annotated[Any, Attribute("tuple[int | PrimExpr, ...]", partial(_size, rank=2))]
Region = Annotated[Any, Attribute("tuple[float, ...] | None", _region)]
_FIELDS = (
    "size", "layout", "roi", "method", "coordinate_transformation_mode", "rounding_method",
    "cubic_alpha", "cubic_exclude", "extrapolation_value", "out_dtype",
)  # fmt: skip


@_resize(
    "image.resize2d",
    "HW",
    topi.image.resize2d,
    fields=_FIELDS,
    run_time=RunTime({"size": (), "roi": None}),
)
@documented_by(topi.image.resize2d)
def resize2d(
    data: Expr,
    size: Size2,
    roi: Region = None,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: OptionalStr = None,
) -> RelayExpr:
    """Resize images to a size.

    Parameters
    ----------
    size : int or sequence of int
        The new height and width.
    roi : sequence of float, optional
        The region that "tf_crop_and_resize" shows: top, left, bottom, right in parts of the image.
    layout : str
        The data's layout.
    coordinate_transformation_mode : str
        "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"
        or "tf_crop_and_resize".
    rounding_method : str
        For the nearest neighbour: "round", "floor", "ceil" and so on.
    cubic_alpha : float
        The coefficient of cubic interpolation.
    cubic_exclude : int
        Not 0: elements outside have no part in cubic sums.
    out_dtype : str, optional
        The dtype of the result, the data's by default.
    """


resize1d = of_rank(_resize("image.resize1d", "W", topi.image.resize1d), resize2d, 1)
resize3d = of_rank(
    _resize("image.resize3d", "DHW", topi.image.resize3d, fields=_FIELDS), resize2d, 3
)


def _crop_and_resize_type(
    attrs: Any, data: TensorType, boxes: Tensor2, box_indices: Tensor1
) -> Type:
    """A tensor in the layout of `data`: a crop of `crop_size` for each box; of dtype `out_dtype`,
    or that of `data`."""
    who = "image.crop_and_resize"
    count, corners = shape_of_type(boxes)
    expect_dim(corners, 4, who, "the numbers of a box")
    expect_dim(shape_of_type(box_indices)[0], count, who, "the number of box indices")
    expect(len(attrs.crop_size) == 2, f"{who} requires two extents, got {attrs.crop_size}")
    expect(attrs.layout in ("NCHW", "NHWC"), f"{who} requires NCHW or NHWC, got {attrs.layout!r}")
    extents = axes_extents(shape_of_type(data), attrs.layout, who)
    extents["N"] = count
    extents.update(zip("HW", attrs.crop_size, strict=True))
    return tensor(shape_in_layout(extents, attrs.layout), attrs.out_dtype or data.dtype)


@operator(
    "image.crop_and_resize",
    support_level=5,
    defaults={"layout": "NCHW"},
    infer_type=_crop_and_resize_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(
        topi.image.crop_and_resize, "crop_size", "layout", "method", "extrapolation_value",
        RESULT_DTYPE,
    ),
)  # fmt: skip
def crop_and_resize(
    data: Expr,
    boxes: Expr,
    box_indices: Expr,
    crop_size: Ints,
    layout: str,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    out_dtype: OptionalStr = None,
) -> RelayExpr:
    """Cut boxes out of images and resize each to one size."""
