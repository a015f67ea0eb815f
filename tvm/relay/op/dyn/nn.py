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
from .declare import dynamic, entries, scalar, shape_tensor, unknowns


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
            place = index - widths(axis, 0).astype(index.dtype)
            inside.append(tir.all(place >= 0, place < extent))
            at.append(_mirrored(place, extent, attrs.pad_mode))
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


def _static_pad(call: Call, values: list[np.ndarray]) -> RelayExpr:
    widths = tuple([(int(a), int(b)) for a, b in values[0]])
    return ops.nn.pad(call.args[0], call.args[2], pad_width=widths, pad_mode=call.attrs.pad_mode)


dynamic(
    "dyn.nn.pad",
    pad.op.attrs_type,
    inputs=("data", "pad_width", "pad_value"),
    reads=(1,),
    infer_type=_pad_type,
    compute=_pad_compute,
    shape_func=_pad_shape,
    static=_static_pad,
)


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


def _static_resize2d(call: Call, values: list[np.ndarray]) -> RelayExpr:
    size, roi = values
    region = tuple([float(v) for v in roi.reshape(-1)]) or None
    attrs = call.attrs.replace(size=tuple([int(v) for v in size]), roi=region)
    return Call(ops.image.resize2d, call.args[:1], attrs)


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


dynamic(
    "dyn.image.resize2d",
    ops.image.resize2d.attrs_type,
    inputs=("data", "size", "roi"),
    reads=(1, 2),
    reals=(2,),
    infer_type=_with_unknown("dyn.image.resize2d", "HW"),
    compute=_resize2d_compute,
    shape_func=_resize_shape,
    static=_static_resize2d,
)


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
    name: str, spatial: str, static: Op, resize: Callable[..., te.Tensor],
    mode: Callable[[Attrs], str],
) -> Op:  # fmt: skip
    names = tuple([f"scale_{letter.lower()}" for letter in spatial])

    def make_static(call: Call, values: list[np.ndarray]) -> RelayExpr:
        factors = [float(v.reshape(-1)[0]) for v in values]
        attrs = call.attrs.replace(**dict(zip(names, factors, strict=True)))
        return Call(static, call.args[:1], attrs)

    return dynamic(
        name,
        static.attrs_type,
        inputs=("data", *names),
        reads=tuple(range(1, 1 + len(spatial))),
        infer_type=_with_unknown(name, spatial),
        compute=lambda attrs, inputs, out_type: [
            resize(
                inputs[0], None, _sizes(attrs, out_type, spatial), attrs.layout,
                RESIZE_METHODS[attrs.method], mode(attrs),
            )
        ],
        shape_func=_upsampling_shape(spatial),
        static=make_static,
    )  # fmt: skip


_upsampling(
    "dyn.nn.upsampling", "HW", ops.nn.upsampling, topi.image.resize2d,
    lambda attrs: "align_corners" if attrs.align_corners else "asymmetric",
)  # fmt: skip
_upsampling(
    "dyn.nn.upsampling3d", "DHW", ops.nn.upsampling3d, topi.image.resize3d,
    lambda attrs: attrs.coordinate_transformation_mode,
)  # fmt: skip
