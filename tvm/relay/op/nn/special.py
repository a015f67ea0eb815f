"""Operators of special networks: correlation, deformable convolution, moving windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, Tuple

from ..computes import RESULT_DTYPE, computed_by
from ..known_shapes import known_shape, sliced
from ..layout import Layouts
from ..layout_shapes import axes_extents, expect_layouts, moved, shape_in_layout
from ..operator import Expr, Padding2, Spatial2, operator
from ..parameters import more_parameters
from ..registry import LayoutChoice, ops
from ..schedules import default_schedules
from ..types import (
    Tensor4,
    expect,
    expect_dim,
    expect_same_dtype,
    expect_tensor,
    is_any,
    is_known,
    positive_axis,
    product,
    shape_of_type,
    tensor,
    unknown,
)
from .argument_types import data_type, of_convolution
from .conv import conv2d, conv_type


def _correlation_type(attrs: Any, data1: Tensor4, data2: Tensor4) -> Type:
    """A tensor of shape (batch, displacements, height, width) and the operands' dtype."""
    who = "nn.correlation"
    dtype = expect_same_dtype((data1, data2), who)
    expect(attrs.layout == "NCHW", f"{who} requires the layout NCHW, got {attrs.layout!r}")
    expect(attrs.kernel_size % 2 == 1, f"{who} requires an odd kernel_size")
    shape = shape_of_type(data1)
    for have, want in zip(shape_of_type(data2), shape, strict=True):
        expect_dim(have, want, who, "the extents of data2")
    height, width = [0 if is_any(e) else e for e in shape[2:]]
    extents = topi.nn.correlation_extents(
        height, width, attrs.kernel_size, attrs.max_displacement, attrs.stride1, attrs.stride2,
        attrs.padding,
    )  # fmt: skip
    positions = [
        unknown() if is_any(have) else e for have, e in zip(shape[2:], extents[1:], strict=True)
    ]
    expect(
        min([e for e in positions if isinstance(e, int)], default=1) > 0,
        f"{who} requires maps that leave a place between the borders, got {data1}",
    )
    return tensor((shape[0], extents[0], *positions), dtype)


_SCHEDULES = default_schedules(topi.x86.schedule_steps)


@operator(
    "nn.correlation",
    support_level=2,
    defaults={
        "kernel_size": 1, "max_displacement": 1, "stride1": 1, "stride2": 1, "padding": 0,
        "is_multiply": True, "layout": "NCHW",
    },
    infer_type=_correlation_type,
    compute=computed_by(
        topi.nn.correlation_nchw, "kernel_size", "max_displacement", "stride1", "stride2",
        "padding", "is_multiply",
    ),
    schedules=_SCHEDULES,
)  # fmt: skip
def correlation(
    data1: Expr,
    data2: Expr,
    kernel_size: int,
    max_displacement: int,
    stride1: int,
    stride2: int,
    padding: Padding2,
    is_multiply: bool,
    layout: str,
) -> RelayExpr:
    """The correlation of two feature maps over displacements of the second.

    Parameters
    ----------
    layout : str
        "NCHW".
    """


def _deformable_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor as that of a plain convolution of `data` and the weight."""
    who = "nn.deformable_conv2d"
    expect_layouts(attrs, who, ("NCHW", "OIHW"), ("NHWC", "HWIO"))
    out = conv_type(who, "HW")(attrs, [arg_types[0], arg_types[2]])
    offset = expect_tensor(arg_types[1], who, "offset", rank=4)
    extents = axes_extents(shape_of_type(out), attrs.out_layout or attrs.data_layout, who)
    window = axes_extents(shape_of_type(arg_types[2]), attrs.kernel_layout, who)
    if is_known(window["H"], window["W"]):
        extents["C"] = 2 * attrs.deformable_groups * window["H"] * window["W"]
        wanted = shape_in_layout(extents, attrs.data_layout)
        for have, want in zip(shape_of_type(offset), wanted, strict=True):
            expect_dim(have, want, who, "the offset's extents")
    return out


def _deformable_layouts(
    attrs: Any, new_in: Layouts | None, old_in: Layouts, arg_types: Sequence[Type]
) -> LayoutChoice:
    """The offsets have the layout of the data."""
    data, kernel = tir.layout(attrs.data_layout), tir.layout(attrs.kernel_layout)
    return LayoutChoice((data, data, kernel), (tir.layout(attrs.out_layout or data.name),))


def _deformable_compute(
    attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType
) -> list[te.Tensor]:
    is_first = attrs.data_layout == "NCHW"
    function = topi.nn.deformable_conv2d_nchw if is_first else topi.nn.deformable_conv2d_nhwc
    by_layout = computed_by(
        function, "strides", "padding", "dilation", "deformable_groups", "groups", RESULT_DTYPE
    )
    [out] = by_layout(attrs, inputs, out_type)
    return [moved(out, attrs.data_layout, attrs.out_layout or attrs.data_layout)]


def _deformable_arguments(attrs: Attrs, known: Sequence[Type | None]) -> list[Type | None]:
    """The kernel as of other convolutions, and two offsets for each position of the window."""
    data, (_, offset, kernel) = data_type(known), known
    kernel = kernel or of_convolution(attrs, known)[2]
    if offset is not None or kernel is None:
        return [data, offset, kernel]
    out = conv_type("nn.deformable_conv2d", "HW")(attrs, [data, kernel])
    extents = axes_extents(shape_of_type(out), attrs["out_layout"] or attrs["data_layout"], "")
    window = axes_extents(shape_of_type(kernel), attrs["kernel_layout"], "")
    extents["C"] = product((2 * attrs["deformable_groups"], window["H"], window["W"]))
    shape = shape_in_layout(extents, attrs["data_layout"])
    return [data, tensor(shape, data.dtype), kernel]


@operator(
    "nn.deformable_conv2d",
    support_level=2,
    fields=(
        "deformable_groups", "strides", "padding", "dilation", "groups", "channels", "kernel_size",
        "data_layout", "kernel_layout", "out_layout", "out_dtype",
    ),
    infer_type=_deformable_type,
    infer_layout=_deformable_layouts,
    compute=_deformable_compute,
    schedules=_SCHEDULES,
    argument_types=_deformable_arguments,
)  # fmt: skip
@more_parameters(conv2d)
def deformable_conv2d(
    data: Expr, offset: Expr, dilation: Spatial2 = (1, 1), deformable_groups: int = 1
) -> None:
    """Convolution with a window whose positions are moved by data.

    Parameters
    ----------
    data, weight : relay.Expr
        The input and the kernel.
    offset : relay.Expr
        For each group and position of the window how far down and right it moves, along the channels.
    deformable_groups : int
        The number of channel groups that have offsets of their own.
    """


def _fifo_type(attrs: Any, data: TensorType, buffer: TensorType) -> Type:
    """A tensor of the buffer's shape and dtype."""
    who = "nn.fifo_buffer"
    expect_same_dtype((data, buffer), who)
    have, kept = shape_of_type(data), shape_of_type(buffer)
    expect(len(have) == len(kept), f"{who} requires data and buffer of one rank")
    axis = positive_axis(attrs.axis, len(kept), who)
    for i, (new, old) in enumerate(zip(have, kept, strict=True)):
        if i != axis:
            expect_dim(new, old, who, f"the data's extent along axis {i}")
        elif is_known(new) and is_known(old):
            expect(new <= old, f"{who} requires a buffer longer than the data along axis {axis}")
    return buffer


def _fifo_buffer_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """The data stands at the end; before it, what of the buffer is left."""
    data, buffer = call.args
    shape, held = [known_shape(x, "nn.fifo_buffer") for x in (data, buffer)]
    axis = call.attrs.axis % len(shape)
    kept = max(held[axis] - shape[axis], 0)
    to_data = sliced(grad, axis, kept, held[axis])
    rest = tuple([held[axis] - kept if a == axis else n for a, n in enumerate(held)])
    none = ops.zeros(shape=rest, dtype=tensor_type_of(grad).dtype)
    to_buffer = ops.concatenate(Tuple([none, sliced(grad, axis, 0, kept)]), axis=axis)
    return [to_data, to_buffer]


@operator(
    "nn.fifo_buffer",
    "FIFOBufferAttrs",
    support_level=1,
    defaults={"axis": 0},
    infer_type=_fifo_type,
    compute=computed_by(topi.nn.fifo_buffer, "axis"),
    gradient=_fifo_buffer_gradient,
)
def fifo_buffer(data: Expr, buffer: Expr, axis: int) -> RelayExpr:
    """The buffer without its oldest entries, the data behind: a window that moves in time."""
