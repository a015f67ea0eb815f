"""Convolutions over one and three spatial axes.

On processors they become convolutions over two axes, which have the fast kernels: an axis of
extent 1 is added, or the places of the window along the depth become channels.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.expr import Tuple, const

from ..attributes import padding_pairs
from ..registry import OpPattern, Precision, define_op, ops
from ..shaping import in_order
from ..types import Dim, is_known, shape_of_type
from .conv import PLAIN_SCHEDULES, conv_attrs, conv_compute, conv_type


class Conv1DAttrs(Attrs, key="relay.attrs.Conv1DAttrs"):
    """A convolution over one axis."""

    strides: tuple[int, ...] = (1,)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1,)
    groups: int = 1
    channels: int | None = None
    kernel_size: tuple[int, ...] | None = None
    data_layout: str = "NCW"
    kernel_layout: str = "OIW"
    out_layout: str = ""
    out_dtype: str = ""


class Conv3DAttrs(Attrs, key="relay.attrs.Conv3DAttrs"):
    """A convolution over three axes; padding is (front, top, left, back, bottom, right)."""

    strides: tuple[int, ...] = (1, 1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0, 0, 0)
    dilation: tuple[int, ...] = (1, 1, 1)
    groups: int = 1
    channels: int | None = None
    kernel_size: tuple[int, ...] | None = None
    data_layout: str = "NCDHW"
    kernel_layout: str = "OIDHW"
    out_layout: str = ""
    out_dtype: str = ""


def shape_in(ty: Type, src: str, dst: str) -> list[int] | None:
    """A tensor's extents in the order of another layout; None if one is left to the run."""
    extents = extents_in(ty, src, dst)
    return extents if is_known(*extents) else None  # type: ignore[return-value]


def extents_in(ty: Type, src: str, dst: str) -> list[Dim]:
    """A tensor's extents in the order of another layout, open ones among them."""
    extents = dict(zip(src, shape_of_type(ty), strict=True))
    return [extents[axis] for axis in dst]


def _conv1d_on_planes(
    attrs: Conv1DAttrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr | None:
    """A convolution of images of one row."""
    out_layout = attrs.out_layout or attrs.data_layout
    if not topi.utils.is_target("cpu") or sorted(out_layout) != sorted("NCW"):
        return None
    if sorted(attrs.data_layout) != sorted("NCW") or sorted(attrs.kernel_layout) != sorted("OIW"):
        return None
    data = in_order(inputs[0], attrs.data_layout, "NCW")
    weight = in_order(inputs[1], attrs.kernel_layout, "OIW")
    out = ops.nn.conv2d(
        ops.expand_dims(data, axis=2, num_newaxis=1),
        ops.expand_dims(weight, axis=2, num_newaxis=1),
        strides=(1, *attrs.strides),
        padding=(0, attrs.padding[0], 0, attrs.padding[1]),
        dilation=(1, *attrs.dilation),
        groups=attrs.groups,
        out_dtype=attrs.out_dtype,
    )
    return in_order(ops.squeeze(out, axis=(2,)), "NCW", out_layout)


def _conv3d_on_planes(
    attrs: Conv3DAttrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr | None:
    """A convolution of planes, whose channels are those of all planes that a window sees."""
    out_layout = attrs.out_layout or attrs.data_layout
    if not topi.utils.is_target("cpu") or sorted(out_layout) != sorted("NCDHW"):
        return None
    if sorted(attrs.data_layout) != sorted("NCDHW"):
        return None
    if sorted(attrs.kernel_layout) != sorted("OIDHW"):
        return None
    shape = shape_in(types[0], attrs.data_layout, "NCDHW")
    kernel = shape_in(types[1], attrs.kernel_layout, "OIDHW")
    if shape is None or kernel is None:
        return None
    data = in_order(inputs[0], attrs.data_layout, "NCDHW")
    weight = in_order(inputs[1], attrs.kernel_layout, "OIDHW")
    out = conv3d_by_planes(
        data, weight, shape, kernel, attrs.strides, padding_pairs(attrs.padding, 3),
        attrs.dilation, attrs.groups, attrs.out_dtype, types[0].dtype,  # type: ignore[attr-defined]
    )  # fmt: skip
    return in_order(out, "NCDHW", out_layout)


def conv3d_by_planes(
    data: RelayExpr,
    weight: RelayExpr,
    shape: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    out_dtype: str,
    dtype: str,
) -> RelayExpr:
    """NCDHW by OIDHW: planes seen through one place of the window along the depth lie side by side."""
    batch, channels, depth, height, width = shape
    out_channels, inner, window, *plane = kernel
    if pads[0] or pads[3]:
        widths = ((0, 0), (0, 0), (pads[0], pads[3]), (0, 0), (0, 0))
        data = ops.nn.pad(data, const(0, dtype), pad_width=widths)
    reach = (window - 1) * dilation[0] + 1
    count = (depth + pads[0] + pads[3] - reach) // strides[0] + 1
    seen = []
    for place in range(window):
        first = place * dilation[0]
        last = first + (count - 1) * strides[0] + 1
        seen.append(
            ops.strided_slice(data, begin=(first,), end=(last,), strides=(strides[0],), axes=(2,))
        )
    # (batch, depth, channel, place in the window, height, width)
    stacked = ops.transpose(ops.stack(Tuple(seen), axis=2), axes=(0, 3, 1, 2, 4, 5))
    out = ops.nn.conv2d(
        ops.reshape(stacked, newshape=(batch * count, channels * window, height, width)),
        ops.reshape(weight, newshape=(out_channels, inner * window, *plane)),
        strides=strides[1:],
        padding=(pads[1], pads[2], pads[4], pads[5]),
        dilation=dilation[1:],
        groups=groups,
        out_dtype=out_dtype,
    )
    rows, columns = [
        (extent + pads[i] + pads[i + 3] - ((size - 1) * dilation[i] + 1)) // strides[i] + 1
        for i, extent, size in ((1, height, plane[0]), (2, width, plane[1]))
    ]
    out = ops.reshape(out, newshape=(batch, count, out_channels, rows, columns))
    return ops.transpose(out, axes=(0, 2, 1, 3, 4))


define_op(
    "nn.conv1d",
    Conv1DAttrs,
    inputs=("data", "weight"),
    infer_type=conv_type("nn.conv1d", "W"),
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=conv_compute,
    schedules=PLAIN_SCHEDULES,
    legalize=_conv1d_on_planes,
    precision=Precision.ALWAYS,
)
define_op(
    "nn.conv3d",
    Conv3DAttrs,
    inputs=("data", "weight"),
    infer_type=conv_type("nn.conv3d", "DHW"),
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=conv_compute,
    schedules=PLAIN_SCHEDULES,
    legalize=_conv3d_on_planes,
    precision=Precision.ALWAYS,
)


def conv1d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCW",
    kernel_layout: str = "OIW",
    out_layout: str = "",
    out_dtype: str = "",
) -> RelayExpr:
    """Convolution over one spatial axis; parameters as in `conv2d`."""
    return ops.nn.conv1d(
        data,
        weight,
        **conv_attrs(strides, padding, dilation, groups, channels, kernel_size, 1),
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype or "",
    )


def conv3d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    dilation: int | Sequence[int] = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: int | Sequence[int] | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> RelayExpr:
    """Convolution over three spatial axes; parameters as in `conv2d`.

    Padding is 1, 3 (depth, height, width) or 6 (front, top, left, back, bottom, right) numbers.
    """
    return ops.nn.conv3d(
        data,
        weight,
        **conv_attrs(strides, padding, dilation, groups, channels, kernel_size, 3),
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype or "",
    )
