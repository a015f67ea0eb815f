"""Convolutions over one and three spatial axes.

On processors they become convolutions over two axes, which have the fast kernels: an axis of
extent 1 is added, or the positions of the window along the depth become channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.expr import Tuple, const

from ..attributes import padding_pairs
from ..operator import Padding1, Spatial1, operator
from ..parameters import same_parameters
from ..registry import ops
from ..shaping import in_order
from ..types import Dim, are_known, is_known, shape_of_type
from .argument_types import of_convolution
from .conv import PLAIN_CONVOLUTION, conv2d, conv_type

TO_THE_END = 2**31 - 1  # of a slice that goes on to the last element


def shape_in(ty: Type, src: str, dst: str) -> list[int] | None:
    """A tensor's extents in the order of another layout; None if one is left to the run."""
    extents = extents_in(ty, src, dst)
    return list(extents) if are_known(extents) else None


def extents_in(ty: Type, src: str, dst: str) -> list[Dim]:
    """A tensor's extents in the order of another layout, open ones among them."""
    extents = dict(zip(src, shape_of_type(ty), strict=True))
    return [extents[axis] for axis in dst]


def _conv1d_on_planes(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Type]
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
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[TensorType]
) -> RelayExpr | None:
    """A convolution of planes, whose channels are those of all planes that a window sees."""
    out_layout = attrs.out_layout or attrs.data_layout
    if not topi.utils.is_target("cpu") or sorted(out_layout) != sorted("NCDHW"):
        return None
    if sorted(attrs.data_layout) != sorted("NCDHW"):
        return None
    if sorted(attrs.kernel_layout) != sorted("OIDHW"):
        return None
    shape = extents_in(types[0], attrs.data_layout, "NCDHW")
    kernel = shape_in(types[1], attrs.kernel_layout, "OIDHW")
    if kernel is None or not has_known_planes(shape):
        return None
    data = in_order(inputs[0], attrs.data_layout, "NCDHW")
    weight = in_order(inputs[1], attrs.kernel_layout, "OIDHW")
    out = conv3d_by_planes(
        data, weight, shape, kernel, attrs.strides, padding_pairs(attrs.padding, 3),
        attrs.dilation, attrs.groups, attrs.out_dtype, types[0].dtype,
    )  # fmt: skip
    return in_order(out, "NCDHW", out_layout)


def has_known_planes(shape: Sequence[Dim]) -> bool:
    """Whether NCDHW data has known channels, and a batch or a depth that distinguishes planes."""
    return is_known(shape[1]) and (is_known(shape[0]) or is_known(shape[2]))


def conv3d_by_planes(
    data: RelayExpr,
    weight: RelayExpr,
    shape: Sequence[Dim],
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    out_dtype: str,
    dtype: str,
) -> RelayExpr:
    """NCDHW by OIDHW: planes seen through one position of the window along the depth lie side by side."""
    batch, _, depth, *_ = shape
    out_channels, inner, window, *plane = kernel
    if pads[0] or pads[3]:
        widths = ((0, 0), (0, 0), (pads[0], pads[3]), (0, 0), (0, 0))
        data = ops.nn.pad(data, const(0, dtype), pad_width=widths)
    reach = (window - 1) * dilation[0] + 1
    count = (depth + pads[0] + pads[3] - reach) // strides[0] + 1 if isinstance(depth, int) else -1
    seen = []
    for position in range(window):
        first = position * dilation[0]
        # of an open depth, ends below zero count from behind
        behind = first + 1 - reach or TO_THE_END
        last = first + (count - 1) * strides[0] + 1 if isinstance(depth, int) else behind
        seen.append(
            ops.strided_slice(data, begin=(first,), end=(last,), strides=(strides[0],), axes=(2,))
        )
    # (batch, depth, channel, position in the window, height, width)
    stacked = ops.transpose(ops.stack(Tuple(seen), axis=2), axes=(0, 3, 1, 2, 4, 5))
    out = ops.nn.conv2d(
        ops.reshape(stacked, newshape=(-3, -3, -2)),
        ops.reshape(weight, newshape=(out_channels, inner * window, *plane)),
        strides=strides[1:],
        padding=(pads[1], pads[2], pads[4], pads[5]),
        dilation=dilation[1:],
        groups=groups,
        out_dtype=out_dtype,
    )
    planes = (batch if isinstance(batch, int) else -1, count)
    out = ops.reshape(out, newshape=(-4, *planes, -2))
    return ops.transpose(out, axes=(0, 2, 1, 3, 4))


@operator(
    "nn.conv1d",
    support_level=2,
    infer_type=conv_type("nn.conv1d", "W"),
    legalize=_conv1d_on_planes,
    argument_types=of_convolution,
    **PLAIN_CONVOLUTION,
)
@same_parameters(conv2d, rank=1)
def conv1d(strides: Spatial1 = 1, padding: Padding1 = 0, dilation: Spatial1 = 1) -> None:
    """Convolution over one spatial axis; parameters as in `conv2d`."""


@operator(
    "nn.conv3d",
    support_level=2,
    infer_type=conv_type("nn.conv3d", "DHW"),
    legalize=_conv3d_on_planes,
    argument_types=of_convolution,
    **PLAIN_CONVOLUTION,
)
@same_parameters(conv2d, rank=3)
def conv3d() -> None:
    """Convolution over three spatial axes; parameters as in `conv2d`.

    Padding is 1, 3 (depth, height, width) or 6 (front, top, left, back, bottom, right) numbers.
    """
