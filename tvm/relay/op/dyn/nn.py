"""Borders and sizes of images that the run decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm import te, tir, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Call

from ..layout_shapes import axis_of
from ..nn.activation import pad
from ..nn.upsampling import RESIZE_METHODS
from ..registry import ShapeFunc, ops
from ..types import TypeRelation, expect, expect_tensor, shape_of_type, tensor
from .declare import RealValues, Values, dynamic, entries, scalar, shape_tensor, unknowns


def _pad_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "dyn.nn.pad")
    widths = shape_of_type(expect_tensor(arg_types[1], "dyn.nn.pad", "pad_width", rank=2))
    expect(
        widths == (len(data.shape), 2),
        f"dyn.nn.pad requires a pair of widths for each of {len(data.shape)} axes, got {widths}",
    )
    expect_tensor(arg_types[2], "dyn.nn.pad", "pad_value", rank=0)
    return tensor(unknowns(len(data.shape)), data.dtype)


def _pad_compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
    data, widths, value = inputs
    modes = ("constant", "edge", "reflect")

    def element(*i: PrimExpr) -> PrimExpr:
        at, inside = [], []
        for axis, (index, extent) in enumerate(zip(i, data.shape, strict=True)):
            position = index - widths(axis, 0).astype(index.dtype)
            inside.append(tir.all(position >= 0, position < extent))
            at.append(_mirrored(position, extent, attrs.pad_mode))
        if attrs.pad_mode != "constant":
            return data(*at)
        return tir.if_then_else(tir.all(*inside), data(*at), value().astype(data.dtype))

    expect(attrs.pad_mode in modes, f"dyn.nn.pad requires a mode of {', '.join(modes)}")
    shape = list(out_type.shape)
    return [te.compute(shape, element, name="PadInput", tag="injective,pad")]


def _mirrored(place: PrimExpr, extent: PrimExpr, mode: str) -> Any:
    if mode == "constant":
        return place
    last = extent - 1
    if mode == "edge":
        return tir.max(tir.min(place, last), 0)
    back = tir.Select(place < 0, 0 - place, place)
    return tir.Select(back > last, last * 2 - back, back)


def _pad_shape(
    attrs: Any, inputs: Sequence[te.Tensor], out_ndims: Sequence[object]
) -> list[te.Tensor]:
    widths = inputs[1]
    return [
        shape_tensor(
            [
                extent + widths(axis, 0).astype("int64") + widths(axis, 1).astype("int64")
                for axis, extent in enumerate(entries(inputs[0]))
            ]
        )
    ]


@dynamic("dyn.nn.pad", pad, infer_type=_pad_type, compute=_pad_compute, shape_func=_pad_shape)
def _pad(attrs: Any, data: RelayExpr, pad_width: Values, pad_value: RelayExpr) -> RelayExpr:
    widths = tuple([(int(a), int(b)) for a, b in pad_width])
    return ops.nn.pad(data, pad_value, pad_width=widths, pad_mode=attrs.pad_mode)


def _with_unknown(who: str, spatial: str) -> TypeRelation:
    """The data's type, the spatial extents aside."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        data = expect_tensor(arg_types[0], who, rank=2 + len(spatial))
        shape = list(shape_of_type(data))
        for letter in spatial:
            shape[axis_of(attrs.layout, letter)] = unknowns(1)[0]
        return tensor(shape, getattr(attrs, "out_dtype", "") or data.dtype)

    return relation


def _sizes(attrs: Attrs, out_type: TensorType, spatial: str) -> list[PrimExpr]:
    return [out_type.shape[axis_of(attrs.layout, letter)] for letter in spatial]


def _resize_shape(
    attrs: Any, inputs: Sequence[te.Tensor], out_ndims: Sequence[object]
) -> list[te.Tensor]:
    dims = entries(inputs[0])
    for letter, extent in zip("HW", entries(inputs[1]), strict=True):
        dims[axis_of(attrs.layout, letter)] = extent
    return [shape_tensor(dims)]


def _resize2d_compute(
    attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType
) -> list[te.Tensor]:
    is_region = attrs.coordinate_transformation_mode == "tf_crop_and_resize"
    region = [inputs[2](i) for i in range(4)] if is_region else None
    return [
        topi.image.resize2d(
            inputs[0], region, _sizes(attrs, out_type, "HW"), attrs.layout, attrs.method,
            attrs.coordinate_transformation_mode, attrs.rounding_method, attrs.cubic_alpha,
            attrs.cubic_exclude, attrs.extrapolation_value, out_type.dtype,
        )
    ]  # fmt: skip


@dynamic(
    "dyn.image.resize2d",
    ops.image.resize2d.attrs_type,
    infer_type=_with_unknown("dyn.image.resize2d", "HW"),
    compute=_resize2d_compute,
    shape_func=_resize_shape,
)
def _resize2d(attrs: Any, data: RelayExpr, size: Values, roi: RealValues) -> RelayExpr:
    region = tuple([float(v) for v in roi.reshape(-1)]) or None
    known = attrs.replace(size=tuple([int(v) for v in size]), roi=region)
    return Call(ops.image.resize2d, (data,), known)


def _upsampling_shape(spatial: str) -> ShapeFunc[Attrs]:
    def shape(
        attrs: Attrs, inputs: Sequence[te.Tensor], out_ndims: Sequence[object]
    ) -> list[te.Tensor]:
        dims = entries(inputs[0])
        for letter, factor in zip(spatial, inputs[1:], strict=True):
            axis = axis_of(attrs.layout, letter)
            extent = tir.round(dims[axis].astype("float64") * scalar(factor).astype("float64"))
            dims[axis] = extent.astype("int64")
        return [shape_tensor(dims)]

    return shape


def _upsampling(
    static: Op, spatial: str, resize: Callable[..., te.Tensor], mode: Callable[[Attrs], str]
) -> Callable[[Callable[..., RelayExpr]], Op]:
    """Upsampling of axes by factors that the run decides."""

    def compute(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Any) -> list[te.Tensor]:
        size, method = _sizes(attrs, out_type, spatial), RESIZE_METHODS[attrs.method]
        return [resize(inputs[0], None, size, attrs.layout, method, mode(attrs))]

    return dynamic(
        f"dyn.{static.name}",
        static.attrs_type,
        infer_type=_with_unknown(f"dyn.{static.name}", spatial),
        compute=compute,
        shape_func=_upsampling_shape(spatial),
    )


def _upsampled(static: Op, data: RelayExpr, attrs: Attrs, **factors: np.ndarray) -> RelayExpr:
    known = {name: float(factor.reshape(-1)[0]) for name, factor in factors.items()}
    return Call(static, (data,), attrs.replace(**known))


@_upsampling(
    ops.nn.upsampling, "HW", topi.image.resize2d,
    lambda attrs: "align_corners" if attrs.align_corners else "asymmetric",
)  # fmt: skip
def _upsampling2d(attrs: Any, data: RelayExpr, scale_h: Values, scale_w: Values) -> RelayExpr:
    return _upsampled(ops.nn.upsampling, data, attrs, scale_h=scale_h, scale_w=scale_w)


@_upsampling(
    ops.nn.upsampling3d, "DHW", topi.image.resize3d,
    lambda attrs: attrs.coordinate_transformation_mode,
)  # fmt: skip
def _upsampling3d(
    attrs: Any, data: RelayExpr, scale_d: Values, scale_h: Values, scale_w: Values
) -> RelayExpr:
    factors = {"scale_d": scale_d, "scale_h": scale_h, "scale_w": scale_w}
    return _upsampled(ops.nn.upsampling3d, data, attrs, **factors)
