"""Enlarging images by factors: resizing to the extents these give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from tvm import te, tir, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.type import Type
from tvm.relay.expr import Call

from ..attributes import as_float
from ..image.resize import resize2d, resize3d
from ..layout import layout_bound
from ..layout_shapes import axes_extents, shape_in_layout
from ..operator import Attribute, Expr, operator
from ..parameters import documented_by
from ..registry import OpPattern
from ..run_time import RunTime
from ..types import Dim, TypeRelation, apply, expect, expect_tensor, shape_of_type, tensor

# the names for two and three axes, and that of resizing
RESIZE_METHODS = {
    "nearest_neighbor": "nearest_neighbor",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
}


def _scaled(attrs: Attrs, extents: dict[str, Dim], spatial: str) -> dict[str, Dim]:
    """The extents of the spatial axes in the result."""
    factors = {axis: getattr(attrs, f"scale_{axis.lower()}") for axis in spatial}
    return {axis: apply(times, extents[axis], factor) for axis, factor in factors.items()}


def times(extent: Dim, factor: float | PrimExpr) -> Dim:
    """An extent by a factor, rounded."""
    if isinstance(factor, float) and isinstance(extent, int):
        return round(extent * factor)
    wide, exact = [
        x.astype("float64") if isinstance(x, PrimExpr) else tir.const(x, "float64")
        for x in (extent, factor)
    ]
    return tir.round(wide * exact).astype(getattr(extent, "dtype", "int64"))


def _type(who: str, spatial: str) -> TypeRelation:
    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor in the layout of `data` and of its dtype, its spatial extents scaled."""
        data = expect_tensor(arg_types[0], who)
        expect(
            attrs.method in RESIZE_METHODS,
            f"{who} requires a method of {', '.join(RESIZE_METHODS)}, got {attrs.method!r}",
        )
        extents = axes_extents(shape_of_type(data), attrs.layout, who)
        extents.update(_scaled(attrs, extents, spatial))
        return tensor(shape_in_layout(extents, attrs.layout), data.dtype)

    return relation


def _size(call: Call, arg_types: Sequence[Type], spatial: str) -> list[Dim] | None:
    extents = axes_extents(shape_of_type(arg_types[0]), call.attrs.layout, "upsampling")
    size = list(_scaled(call.attrs, extents, spatial).values())
    return size if all(isinstance(e, int) for e in size) else None


def _resized2d(call: Call, arg_types: Sequence[Type]) -> RelayExpr | None:
    attrs = call.attrs
    size = _size(call, arg_types, "HW")
    mode = "align_corners" if attrs.align_corners else "asymmetric"
    return None if size is None else resize2d(
        call.args[0], size, layout=attrs.layout, method=RESIZE_METHODS[attrs.method],
        coordinate_transformation_mode=mode,
    )  # fmt: skip


def _resized3d(call: Call, arg_types: Sequence[Type]) -> RelayExpr | None:
    attrs = call.attrs
    size = _size(call, arg_types, "DHW")
    return None if size is None else resize3d(
        call.args[0], size, layout=attrs.layout, method=RESIZE_METHODS[attrs.method],
        coordinate_transformation_mode=attrs.coordinate_transformation_mode,
    )  # fmt: skip


def _compute2d(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    """Of open extents, which resizing to a size cannot tell."""
    size = axes_extents(shape_of_type(out_type), attrs.layout, "upsampling")
    return [
        topi.nn.upsampling(
            inputs[0], attrs.scale_h, attrs.scale_w, attrs.layout, attrs.method,
            attrs.align_corners, [size[axis] for axis in "HW"],
        )
    ]  # fmt: skip


def _compute3d(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    size = axes_extents(shape_of_type(out_type), attrs.layout, "upsampling")
    return [
        topi.nn.upsampling3d(
            inputs[0], attrs.scale_d, attrs.scale_h, attrs.scale_w, attrs.layout, attrs.method,
            attrs.coordinate_transformation_mode, [size[axis] for axis in "DHW"],
        )
    ]  # fmt: skip


def _facets(name: str, spatial: str) -> dict[str, Any]:
    return {
        "infer_type": _type(name, spatial),
        "fuse": OpPattern.INJECTIVE,
        "infer_layout": layout_bound,
        "run_time": RunTime({f"scale_{axis.lower()}": 1.0 for axis in spatial}),
    }


# expressions are for operators of run-time extents
Scale = Annotated[float | RelayExpr, Attribute("float", as_float)]


@operator(
    "nn.upsampling",
    "UpSamplingAttrs",
    support_level=2,
    compute=_compute2d,
    simplify=_resized2d,
    **_facets("nn.upsampling", "HW"),
)
@documented_by(topi.nn.upsampling)
def upsampling(
    data: Expr,
    scale_h: Scale = 1,
    scale_w: Scale = 1,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> RelayExpr:
    """Enlarge images by factors.

    Parameters
    ----------
    align_corners : bool
        Whether the corner elements keep their values.
    """


@operator(
    "nn.upsampling3d",
    "UpSampling3DAttrs",
    support_level=2,
    compute=_compute3d,
    simplify=_resized3d,
    **_facets("nn.upsampling3d", "DHW"),
)
def upsampling3d(
    data: Expr,
    scale_d: Scale = 1,
    scale_h: Scale = 1,
    scale_w: Scale = 1,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> RelayExpr:
    """Enlarge volumes by factors.

    Parameters
    ----------
    data : relay.Expr
        The volumes.
    scale_d, scale_h, scale_w : float
        The factors of depth, height and width.
    layout : str
        The data's layout.
    method : str
        "nearest_neighbor" or "trilinear".
    coordinate_transformation_mode : str
        As for `image.resize3d`.
    """
