"""Convolutions over two spatial axes, plain and in blocked layouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tvm import te, tir, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, Constant, const
from tvm.target import Target

from ..attributes import padding_pairs
from ..layout import layout_named
from ..layout_shapes import axes_extents, moved, plain_layout, shape_in_layout, window_counts
from ..operator import Expr, OptionalSpatial2, OptionalStr, Padding2, Spatial2, operator
from ..parameters import more_parameters, same_parameters
from ..plain_results import of_plain_result
from ..registry import OpPattern, Precision, ops
from ..schedules import alterations, default_schedules
from ..shaping import layout_transform
from ..types import (
    Dim,
    Shape,
    TypeRelation,
    apply,
    are_known,
    expect,
    expect_dim,
    expect_tensor,
    is_known,
    shape_of_type,
    show,
    tensor,
)
from .argument_types import of_convolution
from .conv_gradient import conv2d_gradient
from .conv_plan import by_winograd, recorded_plan, winograd_tile
from .narrow_conv import (
    find_narrow_products,
    in_words,
    with_channels,
    with_raised_data,
    without_raise,
    word_blocks,
)
from .plain_rows import in_plain_rows, keeps_channels_apart, wants_plain_rows


def conv_type(who: str, spatial: str) -> TypeRelation:
    """The type of a convolution over the spatial axes, in any layouts."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor in `out_layout`, or the layout of `data`, with a position for each place of the
        window; of dtype `out_dtype`, or that of `data`."""
        data = expect_tensor(arg_types[0], who)
        weight = expect_tensor(arg_types[1], who, "weight")
        have = axes_extents(shape_of_type(data), attrs.data_layout, who)
        kernel_layout = _kernel_layout(attrs, shape_of_type(weight))
        kernel = axes_extents(shape_of_type(weight), kernel_layout, f"{who}'s weight")
        _check_kernel(attrs, have, kernel, weight, who, spatial)
        if attrs.kernel_size is not None:
            kernel.update(zip(spatial, attrs.kernel_size, strict=True))
        steps = (*attrs.strides, *attrs.dilation)
        expect(min(steps) > 0, f"{who} requires positive strides and dilation, got {steps}")
        channels = attrs.channels
        if channels is None:
            channels = _out_channels(attrs, have, kernel)
        out: dict[str, Dim] = {"N": have["N"], "C": channels}
        out |= window_counts(have, kernel, spatial, attrs.padding, attrs.strides, attrs.dilation)
        for axis in spatial:
            expect(
                out[axis] != 0 or have[axis] == 0,
                f"{who} requires data at least as large as the window, got "
                f"{axis} = {have[axis]} for a kernel of {kernel[axis]}",
            )
        shape = shape_in_layout(out, attrs.out_layout or attrs.data_layout)
        return tensor(shape, attrs.out_dtype or data.dtype)

    return relation


def _kernel_layout(attrs: Attrs, shape: Shape) -> str:
    """The layout of a kernel; blocks that its attribute is silent about are those it has."""
    name = str(attrs.kernel_layout)
    is_silent = name == "OIHW" and attrs.data_layout != "NCHW" and len(shape) == 6
    return f"OIHW{shape[4]}i{shape[5]}o" if is_silent else name


def _has_multiplier(attrs: Attrs, have: dict[str, Dim], kernel: dict[str, Dim]) -> bool:
    """Whether a depthwise kernel holds the channel multiplier in I, and the data's channels in O."""
    if attrs.groups == 1 or not str(attrs.kernel_layout).startswith("OI"):
        return attrs.groups > 1 and attrs.kernel_layout in ("HWOI",)
    return kernel["O"] == have["C"] == attrs.groups and is_known(kernel["I"]) and kernel["I"] != 1


def _out_channels(attrs: Attrs, have: dict[str, Dim], kernel: dict[str, Dim]) -> Dim:
    if _has_multiplier(attrs, have, kernel):
        return apply(lambda a, b: a * b, kernel["O"], kernel["I"])
    return kernel["O"]


def _without_multiplier(call: Call, arg_types: Sequence[Type]) -> RelayExpr | None:
    """A depthwise convolution whose kernel has a filter an output channel.

    weight: (channels, multiplier, 3, 3)    ->    (channels * multiplier, 1, 3, 3)
    """
    attrs, weight = call.attrs, shape_of_type(arg_types[1])
    if attrs.groups == 1 or len(weight) != len(attrs.kernel_layout):
        return None
    have = axes_extents(shape_of_type(arg_types[0]), attrs.data_layout, call.operator.name)
    kernel = axes_extents(weight, attrs.kernel_layout, call.operator.name)
    if attrs.kernel_layout == "HWOI" or not _has_multiplier(attrs, have, kernel):
        return None
    shape = (_out_channels(attrs, have, kernel), 1, *weight[2:])
    return call.replace(args=(call.args[0], ops.reshape(call.args[1], newshape=shape)))


def _check_kernel(
    attrs: Attrs, have: dict[str, Dim], kernel: dict[str, Dim], weight: Type, who: str, spatial: str
) -> None:
    expect(attrs.groups > 0, f"{who} requires groups of at least 1, got {attrs.groups}")
    if attrs.channels is not None:
        channels = _out_channels(attrs, have, kernel)
        expect_dim(channels, attrs.channels, who, "the weight's output channels")
    if attrs.kernel_size is not None:
        for axis, size in zip(spatial, attrs.kernel_size, strict=True):
            expect_dim(kernel[axis], size, who, f"the weight's extent along {axis}")
    if _has_multiplier(attrs, have, kernel):
        return
    wanted = apply(lambda c: c // attrs.groups, have["C"])
    both = isinstance(wanted, int) and isinstance(kernel["I"], int)
    expect(
        not both or (wanted == kernel["I"] and have["C"] == wanted * attrs.groups),
        f"{who} requires {wanted} input channels in the weight (data has {have['C']} in "
        f"{attrs.groups} group{'s' if attrs.groups > 1 else ''}), got weight "
        f"{show(shape_of_type(weight))}",
    )
    outer = kernel["O"]
    expect(
        not isinstance(outer, int) or outer % attrs.groups == 0,
        f"{who} requires output channels divisible by groups={attrs.groups}, got {outer}",
    )


def conv_compute(
    attrs: Attrs, inputs: Sequence[te.Tensor], out_type: TensorType
) -> list[te.Tensor]:
    """A convolution of plain layouts; blocks are undone before it and made after it."""
    layouts = (attrs.data_layout, attrs.kernel_layout)
    plain, plain_kernel = [plain_layout(name) for name in layouts]
    data = moved(inputs[0], attrs.data_layout, plain)
    weight = moved(inputs[1], attrs.kernel_layout, plain_kernel)
    out = topi.nn.conv(
        data, weight, attrs.strides, attrs.padding, attrs.dilation, attrs.groups,
        plain, plain_kernel, out_type.dtype,
    )  # fmt: skip
    return [moved(out, plain, attrs.out_layout or attrs.data_layout)]


def _conv2d_on_cpu(
    attrs: Any,
    inputs: Sequence[RelayExpr],
    arg_types: Sequence[TensorType],
    out_type: TensorType,
    target: Target,
) -> RelayExpr | None:
    """NCHW convolutions: channels in blocks of the vector width."""
    layouts = (attrs.data_layout, attrs.kernel_layout, attrs.out_layout or "NCHW")
    if layouts != ("NCHW", "OIHW", "NCHW"):
        return None
    if "dnnl" in target.libs and all(t.dtype == "float32" for t in arg_types):
        return None  # it has blocks of its own
    call = Call(ops.nn.conv2d, inputs, attrs)
    channels, kernel = shape_of_type(arg_types[0])[1], shape_of_type(arg_types[1])
    if not is_known(channels) or not are_known(kernel):
        return None
    out_channels = kernel[0]
    if wants_plain_rows(call, arg_types, out_type, target):
        return in_plain_rows(call, out_type, target)
    if attrs.groups == 1:
        narrow = _of_narrow_numbers(call, arg_types, out_type, target)
        if narrow is not None:
            return narrow
    # vectors are of sums: neighbours that compute in other types have the same blocks
    blocks = topi.x86.conv2d.channel_blocks(channels, out_channels, out_type.dtype, target)
    inner, outer = blocks
    if attrs.groups == 1:
        if (wider := _in_full_vectors(call, arg_types, out_type, outer, target)) is not None:
            return wider
        plan = recorded_plan(call, arg_types, out_type, target)
        if plan is None:
            tile = winograd_tile(call, arg_types, blocks, target)
        else:
            inner, outer = blocks = plan.in_block, plan.out_block
            tile = (plan.winograd, plan.group) if plan.winograd else None
        if tile is not None:
            return by_winograd(call, *tile, blocks)
        weight_layout = f"OIHW{inner}i{outer}o"
        op = ops.nn.contrib_conv2d_NCHWc
    elif attrs.groups == channels == out_channels:
        if keeps_channels_apart(call, arg_types, out_type):
            return None
        inner, weight_layout = outer, f"OIHW1i{outer}o"
        op = ops.nn.contrib_depthwise_conv2d_NCHWc
    else:
        return _in_groups(call, channels, out_channels, arg_types, out_type, target)
    return _blocked(call, op, inner, outer, weight_layout)


def _in_full_vectors(
    call: Call, arg_types: Sequence[TensorType], out_type: TensorType, block: int, target: Target
) -> RelayExpr | None:
    """Filters of zeros fill the vectors of channels, if less time is spent in spite of more work."""
    channels, kernel = shape_of_type(out_type)[1], shape_of_type(arg_types[1])
    if not is_known(channels) or not are_known(kernel):
        return None
    full = topi.x86.conv2d.full_block(out_type.dtype, target)
    wide = topi.x86.conv2d.full_vector_channels(channels, block, full, math.prod(kernel[1:]))
    if wide is None:
        return None
    return _of_more_filters(call, arg_types, out_type, wide, target)


def _of_more_filters(
    call: Call, arg_types: Sequence[TensorType], out_type: TensorType, wide: int, target: Target
) -> RelayExpr | None:
    """The call with filters of zeros, whose results are cut off, if the weight is a constant."""
    weight, shape = call.args[1], shape_of_type(out_type)
    if not isinstance(weight, Constant) or target.kind.name != "llvm" or not is_known(shape[1]):
        return None
    filters = np.pad(weight.data.numpy(), ((0, wide - shape[1]), (0, 0), (0, 0), (0, 0)))
    kernel = const(filters, weight.data.dtype)
    attrs = call.attrs.replace(channels=wide)
    types = [arg_types[0], tensor(filters.shape, weight.data.dtype)]
    result = tensor((shape[0], wide, *shape[2:]), out_type.dtype)
    altered = _conv2d_on_cpu(attrs, (call.args[0], kernel), types, result, target)
    if altered is None:
        return None
    return ops.strided_slice(altered, begin=(0,), end=(shape[1],), axes=(1,))


def _blocked(call: Call, op: Op, inner: int, outer: int, weight_layout: str) -> RelayExpr:
    """The call with its channels in blocks, and transforms around it."""
    altered = call.attrs.replace(
        data_layout=f"NCHW{inner}c", kernel_layout=weight_layout, out_layout=f"NCHW{outer}c"
    )
    data = layout_transform(call.args[0], "NCHW", altered.data_layout)
    weight = layout_transform(call.args[1], "OIHW", weight_layout)
    return layout_transform(Call(op, (data, weight), altered), altered.out_layout, "NCHW")


def _in_groups(
    call: Call,
    channels: int,
    out_channels: int,
    arg_types: Sequence[TensorType],
    out_type: TensorType,
    target: Target,
) -> RelayExpr | None:
    """A grouped convolution; groups that fill less than a vector are joined by weights of zero."""
    groups = call.attrs.groups
    inner, outer = channels // groups, out_channels // groups
    dtype, weight = out_type.dtype, call.args[1]
    together = 1
    if inner > 1 and isinstance(weight, Constant):
        together = topi.x86.conv2d.groups_together(groups, max(inner, outer), dtype, target)
    blocks = topi.x86.conv2d.channel_blocks(inner * together, outer * together, dtype, target)
    narrow = word_blocks(call, arg_types, (inner * together, outer * together), target)
    if min(blocks) < 4 and narrow is None:
        return None
    attrs = call.attrs.replace(groups=groups // together)
    if together > 1:
        kernel = shape_of_type(arg_types[1])[2:]
        weight = ops.reshape(weight, newshape=(-1, together, outer, 1, inner, *kernel))
        ones = np.eye(together).reshape(together, 1, together, 1, 1, 1)
        shape = (out_channels, together * inner, *kernel)
        joined_weight = ops.multiply(weight, const(ones, arg_types[1].dtype))
        weight = ops.reshape(joined_weight, newshape=shape)
    joined = Call(call.op, (call.args[0], weight), attrs)
    if narrow is not None:
        return in_words(ops.nn.contrib_conv2d_NCHWc, joined, [t.dtype for t in arg_types], *narrow)
    return _blocked(joined, ops.nn.contrib_conv2d_NCHWc, *blocks, f"OIHW{blocks[0]}i{blocks[1]}o")


def _of_narrow_numbers(
    call: Call, arg_types: Sequence[TensorType], out_type: TensorType, target: Target
) -> RelayExpr | None:
    """Dot products of narrow numbers; Winograd's convolution in float32 where that is faster."""
    data, weight = call.args
    if isinstance(weight, Constant) and all(t.dtype == "bfloat16" for t in arg_types):
        out_channels, channels, *_ = weight.data.shape
        blocks = topi.x86.conv2d.channel_blocks(channels, out_channels, "float32", target)
        speed = topi.x86.conv2d.bfloat16_speed(target)
        tile = winograd_tile(call, arg_types, blocks, target, speed)
        if tile is not None:
            wide = call.replace(args=(data, ops.cast(weight, dtype="float32")))
            return by_winograd(wide, *tile, blocks)
    return _by_dot_products(call, arg_types, out_type, target)


def _by_dot_products(
    call: Call, arg_types: Sequence[TensorType], out_type: TensorType, target: Target
) -> RelayExpr | None:
    """A convolution of narrow numbers, with channels in the groups of the processor's instruction."""
    own: Sequence[str] = [t.dtype for t in arg_types]
    products = find_narrow_products(call, own, call.attrs.out_dtype or own[0], target)
    if products is None:
        return None
    kernel, weight = shape_of_type(arg_types[1]), call.args[1]
    assert are_known(kernel)
    out_channels, channels, *_ = kernel
    missing = -channels % products.group(target)
    blocks = products.blocks(channels + missing, out_channels, target)
    if blocks is None:
        wide = topi.utils.rounded_up(out_channels, 8 if out_channels < 16 else 16)
        is_more = wide > out_channels
        return _of_more_filters(call, arg_types, out_type, wide, target) if is_more else None
    if products.is_raised:
        call, own = with_raised_data(call), products.dtypes
    factors = with_channels(call.args, own, missing)
    op = ops.nn.contrib_conv2d_NCHWc
    if products.has_small_weights:
        op = ops.nn.contrib_conv2d_NCHWc_small_weights
    altered = in_words(op, call.replace(args=factors), own, products.dtypes, blocks)
    if not products.is_raised or not isinstance(weight, Constant):
        return altered
    return without_raise(altered, weight, blocks[1])


def mac_count_of_conv(call: Call) -> int:
    """Output elements times the kernel's elements for one output channel."""
    out, weight = [tensor_type_of(x).concrete_shape for x in (call, call.args[1])]
    layout = [axis for axis in str(call.attrs.kernel_layout) if axis.isalpha()]
    others = [e for axis, e in zip(layout, weight, strict=True) if axis not in "Oo"]
    return math.prod(out) * math.prod(others)


# of all convolutions, and of those in plain layouts
CONVOLUTION: dict[str, Any] = {
    "mac_count": mac_count_of_conv,
    "fuse": OpPattern.OUT_ELEMWISE_FUSABLE,
    "precision": Precision.ALWAYS,
}
PLAIN_CONVOLUTION: dict[str, Any] = {
    **CONVOLUTION,
    "compute": conv_compute,
    "schedules": default_schedules(topi.x86.schedule_conv2d),
    "simplify": _without_multiplier,
}


@operator(
    "nn.conv2d",
    support_level=2,
    infer_type=conv_type("nn.conv2d", "HW"),
    gradient=of_plain_result(conv2d_gradient),
    alter_layout=alterations(cpu=_conv2d_on_cpu),
    infer_layout=layout_named,
    argument_types=of_convolution,
    **PLAIN_CONVOLUTION,
)
def conv2d(
    data: Expr,
    weight: Expr,
    strides: Spatial2 = (1, 1),
    padding: Padding2 = (0, 0),
    dilation: Spatial2 = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: OptionalSpatial2 = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: OptionalStr = "",
    out_dtype: OptionalStr = "",
) -> RelayExpr:
    """Convolution over two spatial axes.

    Parameters
    ----------
    data, weight : relay.Expr
        The input and the kernel.
    strides, padding, dilation : int or sequence of int
        Steps; zeros around the data, as 1, 2 (vertical, horizontal) or 4 (top, left, bottom,
        right) numbers; spacing of the kernel's elements.
    groups : int
        The number of channel groups that do not see each other.
    channels, kernel_size : optional
        The output channels and the kernel's extents, checked if given.
    data_layout, kernel_layout, out_layout : str
        Layouts; the output's is the data's by default.
    out_dtype : str
        The dtype of the sums, the data's by default.
    """


def _has_groups(attrs: Any) -> bool:
    """Whether the kernel's input channels come in groups, as in OIHW4i16o4i."""
    return str(attrs.kernel_layout).count("i") == 2


def _blocked_conv(
    attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType, has_small_weights: bool = False
) -> list[te.Tensor]:
    conv: Callable[..., te.Tensor] = topi.nn.conv2d_NCHWc
    data, weight = inputs[0], _in_both_blocks(attrs, inputs)
    if _has_groups(attrs):
        words = topi.utils.dims(weight.shape)[-1]
        conv = partial(
            topi.nn.conv2d_NCHWc_int8, n_elems=words, has_small_weights=has_small_weights
        )
    layouts = (attrs.data_layout, attrs.out_layout or attrs.data_layout)
    steps = (attrs.strides, attrs.padding, attrs.dilation)
    conv = partial(conv, data, weight, *steps, *layouts, out_type.dtype, groups=attrs.groups)
    if topi.utils.is_target("cpu") and _goes_by_pixels(attrs, weight, out_type):
        tile = topi.x86.conv2d.pixel_tile(weight, attrs.groups, out_type.dtype)
        return [conv(padded_pixels=tile.padded)]
    out = conv()
    if _has_groups(attrs):
        return [out]
    if topi.utils.is_target("cpu") and topi.x86.conv2d.should_skip_border_rows(
        out, padding_pairs(attrs.padding, 2)[0]
    ):
        out = conv(skip_border_rows=True)
    return [out]


def _goes_by_pixels(attrs: Any, weight: te.Tensor, out_type: TensorType) -> bool:
    """Whether rows and columns are one axis: the run knows them, or no good tile divides them."""
    if topi.utils.is_dynamic_shape(out_type.shape[2:]):
        return True
    if _has_groups(attrs):
        return False
    rows, columns = topi.utils.dims(out_type.shape[2:4])
    is_padded = any(padding_pairs(attrs.padding, 2))
    return topi.x86.conv2d.suits_pixels(
        weight, attrs.groups, (rows, columns), is_padded, out_type.dtype
    )


def _in_both_blocks(attrs: Any, inputs: Sequence[te.Tensor]) -> te.Tensor:
    """The weight with its input and output channels in blocks, as OIHW4i4o of OIHW4o."""
    weight = inputs[1]
    if len(weight.shape) >= 6:
        return weight
    inner, outer = [
        tir.layout(name).factor_of("C")
        for name in (attrs.data_layout, attrs.out_layout or attrs.data_layout)
    ]
    return moved(weight, attrs.kernel_layout, f"OIHW{inner}i{outer}o")


def _schedule_blocked_conv(attrs: Any, outs: Sequence[te.Tensor], target: Target) -> te.Schedule:
    if _has_groups(attrs):
        return topi.x86.schedule_conv2d_NCHWc_int8(outs)
    return topi.x86.schedule_conv2d_NCHWc(outs)


@operator(
    "nn.contrib_conv2d_NCHWc",
    conv2d,
    infer_type=conv_type("nn.contrib_conv2d_NCHWc", "HW"),
    compute=_blocked_conv,
    schedules={**default_schedules(), "cpu": _schedule_blocked_conv},
    infer_layout=layout_named,
    **CONVOLUTION,
)
@more_parameters(conv2d, {"weight": "kernel"})
def contrib_conv2d_nchwc(data_layout: str = "NCHW8c") -> None:
    """Convolution with channels in blocks; parameters as in `conv2d`.

    Parameters
    ----------
    data, kernel : relay.Expr
        The input and the kernel.
    """


@operator(
    "nn.contrib_conv2d_NCHWc_small_weights",
    conv2d,
    infer_type=conv_type("nn.contrib_conv2d_NCHWc_small_weights", "HW"),
    compute=partial(_blocked_conv, has_small_weights=True),
    schedules={**default_schedules(), "cpu": _schedule_blocked_conv},
    infer_layout=layout_named,
    **CONVOLUTION,
)
@same_parameters(contrib_conv2d_nchwc)
def contrib_conv2d_nchwc_small_weights() -> None:
    """Convolution with channels in blocks and in groups of four; parameters as in `conv2d`.

    The absolute values of two neighbouring weights of a group add up to 128 at most: int16 holds
    their sum of products with uint8 data.
    """


@operator(
    "nn.contrib_depthwise_conv2d_NCHWc",
    conv2d,
    infer_type=conv_type("nn.contrib_depthwise_conv2d_NCHWc", "HW"),
    compute=lambda attrs, inputs, out_type: [
        topi.nn.depthwise_conv2d_NCHWc(
            inputs[0], inputs[1], attrs.strides, attrs.padding, attrs.dilation,
            attrs.data_layout, attrs.out_layout or attrs.data_layout, out_type.dtype,
            topi.x86.conv2d.OPEN_COLUMNS if topi.utils.is_target("cpu") else 1,
        )
    ],
    schedules=default_schedules(topi.x86.schedule_depthwise_conv2d_NCHWc),
    infer_layout=layout_named,
    **CONVOLUTION,
)  # fmt: skip
@same_parameters(contrib_conv2d_nchwc)
def contrib_depthwise_conv2d_nchwc() -> None:
    """Depthwise convolution with channels in blocks; parameters as in `conv2d`."""
