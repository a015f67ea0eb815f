"""Transposed convolutions over one to three spatial axes.

On processors they become convolutions. An output at stride * q + r sees the window's positions r,
r + stride, ...: each r is a channel of a convolution with that part of the window, turned round,
and the channels are interleaved at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import const

from ..attributes import padding_pairs
from ..layout_shapes import axes_extents, moved, shape_in_layout
from ..operator import OptionalStr, Spatial2, operator
from ..parameters import more_parameters, of_rank
from ..plain_results import of_plain_result
from ..registry import ops
from ..shaping import in_order
from ..types import (
    Dim,
    TypeRelation,
    apply,
    expect_dim,
    expect_tensor,
    is_known,
    shape_of_type,
    tensor,
)
from .argument_types import of_transposed_convolution
from .conv import PLAIN_CONVOLUTION, conv2d
from .conv_gradient import conv2d_transpose_gradient
from .conv_ranks import (
    TO_THE_END,
    conv3d_by_planes,
    extents_in,
    has_known_planes,
    shape_in,
)


def conv_transpose_type(who: str, spatial: str) -> TypeRelation:
    """The type of a transposed convolution; the weight's O are the channels of one group."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor in `out_layout`, or the layout of `data`: along a spatial axis (extent - 1) *
        stride + (window - 1) * dilation + 1, less the padding and more by `output_padding`; of
        dtype `out_dtype`, or that of `data`."""
        data = expect_tensor(arg_types[0], who)
        weight = expect_tensor(arg_types[1], who, "weight")
        have = axes_extents(shape_of_type(data), attrs.data_layout, who)
        kernel = axes_extents(shape_of_type(weight), attrs.kernel_layout, f"{who}'s weight")
        expect_dim(kernel["I"], have["C"], who, "the weight's input channels")
        rank = len(spatial)
        pad = padding_pairs(attrs.padding, rank)
        channels = apply(lambda o: o * attrs.groups, kernel["O"])
        if attrs.channels is not None:
            expect_dim(channels, attrs.channels, who, "the weight's output channels")
            channels = attrs.channels
        out: dict[str, Dim] = {"N": have["N"], "C": channels}
        for i, axis in enumerate(spatial):
            grow = attrs.output_padding[i] - pad[i] - pad[i + rank]
            stride, dilation = attrs.strides[i], attrs.dilation[i]
            out[axis] = apply(
                lambda e, k, s=stride, d=dilation, g=grow: (e - 1) * s + (k - 1) * d + 1 + g,
                have[axis],
                kernel[axis],
            )
        shape = shape_in_layout(out, attrs.out_layout or attrs.data_layout)
        return tensor(shape, attrs.out_dtype or data.dtype)

    return relation


def _compute(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
    data, weight = inputs
    out = topi.nn.conv_transpose(
        data, weight, attrs.strides, attrs.padding, attrs.dilation, attrs.output_padding,
        attrs.groups, attrs.data_layout, attrs.kernel_layout,
        out_type.dtype,
    )  # fmt: skip
    return [moved(out, attrs.data_layout, attrs.out_layout or attrs.data_layout)]


@dataclass(frozen=True)
class _Axis:
    """One spatial axis: extents, and where in the interleaved phases the output begins."""

    extent: Dim
    kernel: int
    stride: int
    pad: int
    reach: int  # of the output, what exceeds the stride times one less than the extent

    @property
    def taps(self) -> int:
        """Positions of the window that each phase sees."""
        return -(-self.kernel // self.stride)

    @property
    def start(self) -> int:
        """The first multiple of the stride that is computed."""
        return min(self.pad // self.stride, self.taps - 1)

    @property
    def pads(self) -> tuple[int, int]:
        """Zeros before and after the data."""
        behind = -(-(self.reach + self.pad) // self.stride) - 1
        return self.taps - 1 - self.start, max(behind, 0)

    @property
    def more(self) -> int:
        """Multiples of the stride that are computed, beyond the extent."""
        return sum(self.pads) - self.taps + 1

    @property
    def cut(self) -> tuple[int, int]:
        """What is cut off before and behind the output."""
        before = self.pad - self.start * self.stride
        return before, self.stride * (self.more + 1) - self.reach - before


def _by_phases(
    attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[TensorType]
) -> RelayExpr | None:
    """The convolution whose channels are the phases, interleaved."""
    rank = len(attrs.strides)
    spatial = "DHW"[3 - rank :]
    out_layout = attrs.out_layout or attrs.data_layout
    if not topi.utils.is_target("cpu") or sorted(out_layout) != sorted("NC" + spatial):
        return None
    if sorted(attrs.data_layout + attrs.kernel_layout) != sorted("NCIO" + 2 * spatial):
        return None
    shape = extents_in(types[0], attrs.data_layout, "NC" + spatial)
    kernel = shape_in(types[1], attrs.kernel_layout, "IO" + spatial)
    result = extents_in(types[2], out_layout, "NC" + spatial)
    if kernel is None or not is_known(shape[1]) or {*attrs.dilation} != {1}:
        return None
    if rank > 2 and not has_known_planes(shape):
        return None
    if any([isinstance(extent, int) and extent == 0 for extent in (*shape, *kernel, *result)]):
        return None
    axes = _axes(attrs, shape[2:], kernel[2:])
    data = in_order(inputs[0], attrs.data_layout, "NC" + spatial)
    weight = in_order(inputs[1], attrs.kernel_layout, "IO" + spatial)
    if rank == 1:  # an image of one row
        axes = [_Axis(1, 1, 1, 0, 1), *axes]
        data, weight = ops.expand_dims(data, axis=2), ops.expand_dims(weight, axis=2)
    dtype = types[1].dtype
    phases = _phases(weight, kernel[0], kernel[1], axes, attrs.groups, dtype)
    channels = kernel[1] * attrs.groups
    out = _convolved(data, phases, shape[:2], channels, axes, attrs, types[0].dtype)
    out = _interleaved(out, channels, axes)
    if rank == 1:
        out = ops.squeeze(out, axis=(2,))
    return in_order(out, "NC" + spatial, out_layout)


def _axes(attrs: Attrs, extents: Sequence[Dim], kernel: Sequence[int]) -> list[_Axis]:
    rank = len(attrs.strides)
    pads = padding_pairs(attrs.padding, rank)
    axes = []
    for i, (extent, size) in enumerate(zip(extents, kernel, strict=True)):
        reach = size - pads[i] - pads[i + rank] + attrs.output_padding[i]
        axes.append(_Axis(extent, size, attrs.strides[i], pads[i], reach))
    return axes


def _phases(
    weight: RelayExpr, inner: int, outer: int, axes: Sequence[_Axis], groups: int, dtype: str
) -> RelayExpr:
    """(group, output channel, phase) by input channel by the positions that a phase sees."""
    tails = [(0, axis.taps * axis.stride - axis.kernel) for axis in axes]
    if any([tail for _, tail in tails]):
        weight = ops.nn.pad(weight, const(0, dtype), pad_width=((0, 0), (0, 0), *tails))
    split = [extent for axis in axes for extent in (axis.taps, axis.stride)]
    weight = ops.reshape(weight, newshape=(groups, inner // groups, outer, *split))
    positions = [3 + 2 * i for i in range(len(axes))]
    for axis in positions:
        weight = ops.reverse(weight, axis=axis)
    weight = ops.transpose(weight, axes=(0, 2, *[axis + 1 for axis in positions], 1, *positions))
    strides = prod([axis.stride for axis in axes])
    shape = (groups * outer * strides, inner // groups, *[axis.taps for axis in axes])
    return ops.reshape(weight, newshape=shape)


def _convolved(
    data: RelayExpr,
    weight: RelayExpr,
    shape: Sequence[Dim],
    channels: int,
    axes: Sequence[_Axis],
    attrs: Attrs,
    dtype: str,
) -> RelayExpr:
    pads = (*[axis.pads[0] for axis in axes], *[axis.pads[1] for axis in axes])
    ones = (1,) * len(axes)
    if len(axes) == 2:
        return ops.nn.conv2d(
            data, weight, padding=pads, groups=attrs.groups, out_dtype=attrs.out_dtype
        )
    strides = prod([axis.stride for axis in axes])
    kernel = (channels * strides, shape[1] // attrs.groups, *[axis.taps for axis in axes])
    full = (*shape, *[axis.extent for axis in axes])
    return conv3d_by_planes(
        data, weight, full, kernel, ones, pads, ones, attrs.groups, attrs.out_dtype, dtype
    )


def _interleaved(out: RelayExpr, channels: int, axes: Sequence[_Axis]) -> RelayExpr:
    """Phases side by side along each axis, cut to the output."""
    rank = len(axes)
    strides = [axis.stride for axis in axes]
    if max(strides) > 1:
        # axes are split and merged, and copied: some extents may be open
        out = ops.reshape(out, newshape=(0, -4, channels, -1, *[0] * rank))
        for i in range(rank - 1):
            out = ops.reshape(out, newshape=(*[0] * (2 + i), -4, strides[i], -1, *[0] * rank))
        order = [at for i in range(rank) for at in (2 + rank + i, 2 + i)]
        out = ops.transpose(out, axes=(0, 1, *order))
        out = ops.reshape(out, newshape=(0, 0, *[-3] * rank))
    begin = [axis.cut[0] for axis in axes]
    end = [-axis.cut[1] if axis.cut[1] else TO_THE_END for axis in axes]
    if not any(begin) and {*end} == {TO_THE_END}:
        return out
    return ops.strided_slice(out, begin=begin, end=end, axes=tuple(range(2, 2 + rank)))


_FIELDS = (
    "output_padding", "strides", "padding", "dilation", "groups", "channels", "kernel_size",
    "data_layout", "kernel_layout", "out_layout", "out_dtype",
)  # fmt: skip
_TRANSPOSED: dict[str, Any] = {
    **PLAIN_CONVOLUTION,
    "fields": _FIELDS,
    "compute": _compute,
    "legalize": _by_phases,
    "argument_types": of_transposed_convolution,
}


@operator(
    "nn.conv2d_transpose",
    support_level=2,
    defaults={"kernel_layout": "OIHW"},
    infer_type=conv_transpose_type("nn.conv2d_transpose", "HW"),
    gradient=of_plain_result(conv2d_transpose_gradient),
    **_TRANSPOSED,
)
@more_parameters(conv2d)
def conv2d_transpose(
    kernel_layout: str = "IOHW", out_layout: OptionalStr = "", output_padding: Spatial2 = (0, 0)
) -> None:
    """Transposed convolution over two spatial axes.

    Parameters
    ----------
    output_padding : int or sequence of int
        Extra rows and columns at the end of the output.
    """


conv1d_transpose, conv3d_transpose = [
    of_rank(
        operator(
            f"nn.conv{rank}d_transpose",
            support_level=2,
            defaults={"kernel_layout": f"OI{spatial}"},
            infer_type=conv_transpose_type(f"nn.conv{rank}d_transpose", spatial),
            **_TRANSPOSED,
        ),
        conv2d_transpose,
        rank,
    )
    for rank, spatial in ((1, "W"), (3, "DHW"))
]
