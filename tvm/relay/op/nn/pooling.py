"""Pooling over windows, globally, and to a given output size, in plain and blocked layouts."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type

from ..attributes import as_optional_ints, padding_pairs, spread
from ..layout import layout_bound
from ..layout_shapes import axes_extents, moved, shape_in_layout
from ..registry import OpPattern, Schedule, define_op, ops
from ..types import Dim, TypeRelation, apply, expect, expect_tensor, shape_of_type, tensor


class MaxPool2DAttrs(Attrs, key="relay.attrs.MaxPool2DAttrs"):
    """A window over two axes; padding is (top, left, bottom, right)."""

    pool_size: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)
    dilation: tuple[int, ...] = (1, 1)
    layout: str = "NCHW"
    out_layout: str = ""
    ceil_mode: bool = False


class AvgPool2DAttrs(MaxPool2DAttrs, key="relay.attrs.AvgPool2DAttrs"):
    """A window whose mean is taken."""

    count_include_pad: bool = False


class MaxPool1DAttrs(Attrs, key="relay.attrs.MaxPool1DAttrs"):
    """A window over one axis."""

    pool_size: tuple[int, ...]
    strides: tuple[int, ...] = (1,)
    padding: tuple[int, ...] = (0, 0)
    dilation: tuple[int, ...] = (1,)
    layout: str = "NCW"
    out_layout: str = ""
    ceil_mode: bool = False


class AvgPool1DAttrs(MaxPool1DAttrs, key="relay.attrs.AvgPool1DAttrs"):
    """A window over one axis whose mean is taken."""

    count_include_pad: bool = False


class MaxPool3DAttrs(Attrs, key="relay.attrs.MaxPool3DAttrs"):
    """A window over three axes; padding is (front, top, left, back, bottom, right)."""

    pool_size: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0, 0, 0)
    dilation: tuple[int, ...] = (1, 1, 1)
    layout: str = "NCDHW"
    out_layout: str = ""
    ceil_mode: bool = False


class AvgPool3DAttrs(MaxPool3DAttrs, key="relay.attrs.AvgPool3DAttrs"):
    """A window over three axes whose mean is taken."""

    count_include_pad: bool = False


class GlobalPool2DAttrs(Attrs, key="relay.attrs.GlobalPool2DAttrs"):
    """Pooling over the whole of two axes."""

    layout: str = "NCHW"
    out_layout: str = ""


class AdaptivePool2DAttrs(Attrs, key="relay.attrs.AdaptivePool2DAttrs"):
    """Pooling to an output size."""

    output_size: tuple[int, ...] | None = None  # None: keep
    layout: str = "NCHW"
    out_layout: str = ""


class AdaptivePool1DAttrs(Attrs, key="relay.attrs.AdaptivePool1DAttrs"):
    """Pooling of one axis to an output size."""

    output_size: tuple[int, ...] | None = None  # None: keep
    layout: str = "NCW"
    out_layout: str = ""


class AdaptivePool3DAttrs(Attrs, key="relay.attrs.AdaptivePool3DAttrs"):
    """Pooling of three axes to an output size."""

    output_size: tuple[int, ...] | None = None  # None: keep
    layout: str = "NCDHW"
    out_layout: str = ""


def pool_type(who: str, spatial: str) -> TypeRelation:
    """The type of a pooling over windows."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        data = expect_tensor(arg_types[0], who)
        extents = axes_extents(shape_of_type(data), attrs.layout, who)
        expect(min(attrs.strides) > 0, f"{who} requires positive strides, got {attrs.strides}")
        for i, axis in enumerate(spatial):
            extents[axis] = apply(
                lambda e, i=i: topi.nn.pooling.window_count(
                    e,
                    attrs.pool_size[i],
                    attrs.strides[i],
                    attrs.dilation[i],
                    attrs.padding[i] + attrs.padding[i + len(spatial)],
                    attrs.ceil_mode,
                ),
                extents[axis],
            )
            expect(
                not isinstance(extents[axis], int) or extents[axis] > 0,
                f"{who} requires data at least as large as the window {attrs.pool_size}, "
                f"got {data}",
            )
        return tensor(shape_in_layout(extents, attrs.out_layout or attrs.layout), data.dtype)

    return relation


def _sized_type(who: str, spatial: str) -> TypeRelation:
    """The type of a pooling to given extents (1 where there is no `output_size`)."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        data = expect_tensor(arg_types[0], who)
        extents = axes_extents(shape_of_type(data), attrs.layout, who)
        sizes = _sizes(attrs, extents, spatial)
        expect(
            len(sizes) == len(spatial),
            f"{who} requires an output_size of {len(spatial)} numbers, got {sizes}",
        )
        for axis, size in zip(spatial, sizes, strict=True):
            extents[axis] = size
        return tensor(shape_in_layout(extents, attrs.out_layout or attrs.layout), data.dtype)

    return relation


def _sizes(attrs: Attrs, extents: dict[str, Dim], spatial: str) -> Sequence[Dim]:
    if isinstance(attrs, GlobalPool2DAttrs):
        return (1,) * len(spatial)
    if attrs.output_size is None:
        return [extents[axis] for axis in spatial]
    sizes = attrs.output_size
    return sizes * len(spatial) if len(sizes) == 1 else sizes


def _schedule_pool(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.x86.schedule_pool(outs, attrs.layout)


def _schedule_adaptive(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.x86.schedule_adaptive_pool(outs)


def _generic(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.generic.default_schedule(outs, True)


_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def _pool(name: str, attrs_type: type[Attrs], rank: int, kind: str) -> Op:
    function = (topi.nn.pool1d, topi.nn.pool2d, topi.nn.pool3d)[rank - 1]

    def compute(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
        out = function(
            inputs[0], attrs.pool_size, attrs.strides, attrs.dilation, attrs.padding, kind,
            attrs.ceil_mode, attrs.layout, kind == "avg" and attrs.count_include_pad,
        )  # fmt: skip
        return [moved(out, attrs.layout, attrs.out_layout or attrs.layout)]

    return define_op(
        name,
        attrs_type,
        inputs=("data",),
        infer_type=pool_type(name, _SPATIAL[rank]),
        fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
        compute=compute,
        schedules={"generic": _generic, "cpu": _schedule_pool},
        infer_layout=layout_bound,
    )


def _sized_pool(name: str, attrs_type: type[Attrs], rank: int, kind: str) -> Op:
    spatial = _SPATIAL[rank]
    function = (topi.nn.adaptive_pool1d, topi.nn.adaptive_pool, topi.nn.adaptive_pool3d)[rank - 1]
    schedules: dict[str, Schedule[Attrs]] = {"generic": _generic, "cpu": _schedule_adaptive}

    def compute(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
        extents = axes_extents(topi.utils.dims(inputs[0].shape), attrs.layout, name)
        sizes = _sizes(attrs, extents, spatial)
        out = function(inputs[0], sizes, kind, attrs.layout)
        return [moved(out, attrs.layout, attrs.out_layout or attrs.layout)]

    return define_op(
        name,
        attrs_type,
        inputs=("data",),
        infer_type=_sized_type(name, spatial),
        fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
        compute=compute,
        schedules=schedules,
        infer_layout=layout_bound,
    )


_pool("nn.max_pool2d", MaxPool2DAttrs, 2, "max")
_pool("nn.avg_pool2d", AvgPool2DAttrs, 2, "avg")
_pool("nn.max_pool1d", MaxPool1DAttrs, 1, "max")
_pool("nn.avg_pool1d", AvgPool1DAttrs, 1, "avg")
_pool("nn.max_pool3d", MaxPool3DAttrs, 3, "max")
_pool("nn.avg_pool3d", AvgPool3DAttrs, 3, "avg")
_sized_pool("nn.global_max_pool2d", GlobalPool2DAttrs, 2, "max")
_sized_pool("nn.global_avg_pool2d", GlobalPool2DAttrs, 2, "avg")
_sized_pool("nn.adaptive_max_pool1d", AdaptivePool1DAttrs, 1, "max")
_sized_pool("nn.adaptive_avg_pool1d", AdaptivePool1DAttrs, 1, "avg")
_sized_pool("nn.adaptive_max_pool2d", AdaptivePool2DAttrs, 2, "max")
_sized_pool("nn.adaptive_avg_pool2d", AdaptivePool2DAttrs, 2, "avg")
_sized_pool("nn.adaptive_max_pool3d", AdaptivePool3DAttrs, 3, "max")
_sized_pool("nn.adaptive_avg_pool3d", AdaptivePool3DAttrs, 3, "avg")


def _window_attrs(
    pool_size: object, strides: object, dilation: object, padding: object, rank: int
) -> dict[str, object]:
    return {
        "pool_size": spread(pool_size, rank),
        "strides": spread(strides, rank),
        "dilation": spread(dilation, rank),
        "padding": padding_pairs(padding, rank),
    }


def max_pool2d(
    data: RelayExpr,
    pool_size: int | Sequence[int] = (1, 1),
    strides: int | Sequence[int] = (1, 1),
    dilation: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> RelayExpr:
    """The largest element of each window.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    pool_size, strides, dilation : int or sequence of int
        The window, its steps, and the spacing of its elements.
    padding : int or sequence of int
        1, 2 (vertical, horizontal) or 4 (top, left, bottom, right) numbers.
    layout, out_layout : str
        The data's layout, and the output's if it is another one.
    ceil_mode : bool
        Let the last window reach over the edge.
    """
    return ops.nn.max_pool2d(
        data,
        **_window_attrs(pool_size, strides, dilation, padding, 2),
        layout=layout,
        out_layout=out_layout,
        ceil_mode=bool(ceil_mode),
    )


def avg_pool2d(
    data: RelayExpr,
    pool_size: int | Sequence[int] = (1, 1),
    strides: int | Sequence[int] = (1, 1),
    dilation: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    layout: str = "NCHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> RelayExpr:
    """The mean of each window; parameters as in `max_pool2d`, and

    count_include_pad : bool
        Count padded elements in the mean.
    """
    return ops.nn.avg_pool2d(
        data,
        **_window_attrs(pool_size, strides, dilation, padding, 2),
        layout=layout,
        out_layout=out_layout,
        ceil_mode=bool(ceil_mode),
        count_include_pad=bool(count_include_pad),
    )


def max_pool1d(
    data: RelayExpr,
    pool_size: int | Sequence[int] = (1,),
    strides: int | Sequence[int] = (1,),
    dilation: int | Sequence[int] = (1,),
    padding: int | Sequence[int] = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> RelayExpr:
    """The largest element of each window along one axis; parameters as in `max_pool2d`."""
    return ops.nn.max_pool1d(
        data,
        **_window_attrs(pool_size, strides, dilation, padding, 1),
        layout=layout,
        out_layout=out_layout,
        ceil_mode=bool(ceil_mode),
    )


def avg_pool1d(
    data: RelayExpr,
    pool_size: int | Sequence[int] = (1,),
    strides: int | Sequence[int] = (1,),
    dilation: int | Sequence[int] = (1,),
    padding: int | Sequence[int] = (0,),
    layout: str = "NCW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> RelayExpr:
    """The mean of each window along one axis; parameters as in `avg_pool2d`."""
    return ops.nn.avg_pool1d(
        data,
        **_window_attrs(pool_size, strides, dilation, padding, 1),
        layout=layout,
        out_layout=out_layout,
        ceil_mode=bool(ceil_mode),
        count_include_pad=bool(count_include_pad),
    )


def global_max_pool2d(data: RelayExpr, layout: str = "NCHW", out_layout: str = "") -> RelayExpr:
    """The largest element of each channel.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    layout, out_layout : str
        The data's layout, and the output's if it is another one.
    """
    return ops.nn.global_max_pool2d(data, layout=layout, out_layout=out_layout)


def global_avg_pool2d(data: RelayExpr, layout: str = "NCHW", out_layout: str = "") -> RelayExpr:
    """The mean of each channel; parameters as in `global_max_pool2d`."""
    return ops.nn.global_avg_pool2d(data, layout=layout, out_layout=out_layout)


def adaptive_max_pool2d(
    data: RelayExpr,
    output_size: int | Sequence[int] | None = None,
    layout: str = "NCHW",
    out_layout: str = "",
) -> RelayExpr:
    """The largest element of each of `output_size` nearly equal windows.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    output_size : int or sequence of int, optional
        The extents of the output, the input's by default.
    layout, out_layout : str
        The data's layout, and the output's if it is another one.
    """
    return ops.nn.adaptive_max_pool2d(
        data, output_size=as_optional_ints(output_size), layout=layout, out_layout=out_layout
    )


def adaptive_avg_pool2d(
    data: RelayExpr,
    output_size: int | Sequence[int] | None = None,
    layout: str = "NCHW",
    out_layout: str = "",
) -> RelayExpr:
    """The mean of each of `output_size` nearly equal windows; as `adaptive_max_pool2d`."""
    return ops.nn.adaptive_avg_pool2d(
        data, output_size=as_optional_ints(output_size), layout=layout, out_layout=out_layout
    )


def max_pool3d(
    data: RelayExpr,
    pool_size: int | Sequence[int] = (1, 1, 1),
    strides: int | Sequence[int] = (1, 1, 1),
    dilation: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
) -> RelayExpr:
    """The largest element of each window over three axes; parameters as in `max_pool2d`.

    Padding is 1, 3 (depth, height, width) or 6 (front, top, left, back, bottom, right) numbers.
    """
    return ops.nn.max_pool3d(
        data,
        **_window_attrs(pool_size, strides, dilation, padding, 3),
        layout=layout,
        out_layout=out_layout,
        ceil_mode=bool(ceil_mode),
    )


def avg_pool3d(
    data: RelayExpr,
    pool_size: int | Sequence[int] = (1, 1, 1),
    strides: int | Sequence[int] = (1, 1, 1),
    dilation: int | Sequence[int] = (1, 1, 1),
    padding: int | Sequence[int] = (0, 0, 0),
    layout: str = "NCDHW",
    out_layout: str = "",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> RelayExpr:
    """The mean of each window over three axes; parameters as in `max_pool3d` and `avg_pool2d`."""
    return ops.nn.avg_pool3d(
        data,
        **_window_attrs(pool_size, strides, dilation, padding, 3),
        layout=layout,
        out_layout=out_layout,
        ceil_mode=bool(ceil_mode),
        count_include_pad=bool(count_include_pad),
    )


def _adaptive(op: Op, data: RelayExpr, size: object, layout: str, out_layout: str) -> RelayExpr:
    return op(data, output_size=as_optional_ints(size), layout=layout, out_layout=out_layout)


def adaptive_max_pool1d(
    data: RelayExpr,
    output_size: int | Sequence[int] | None = None,
    layout: str = "NCW",
    out_layout: str = "",
) -> RelayExpr:
    """As `adaptive_max_pool2d`, along one axis."""
    return _adaptive(ops.nn.adaptive_max_pool1d, data, output_size, layout, out_layout)


def adaptive_avg_pool1d(
    data: RelayExpr,
    output_size: int | Sequence[int] | None = None,
    layout: str = "NCW",
    out_layout: str = "",
) -> RelayExpr:
    """As `adaptive_avg_pool2d`, along one axis."""
    return _adaptive(ops.nn.adaptive_avg_pool1d, data, output_size, layout, out_layout)


def adaptive_max_pool3d(
    data: RelayExpr,
    output_size: int | Sequence[int] | None = None,
    layout: str = "NCDHW",
    out_layout: str = "",
) -> RelayExpr:
    """As `adaptive_max_pool2d`, over three axes."""
    return _adaptive(ops.nn.adaptive_max_pool3d, data, output_size, layout, out_layout)


def adaptive_avg_pool3d(
    data: RelayExpr,
    output_size: int | Sequence[int] | None = None,
    layout: str = "NCDHW",
    out_layout: str = "",
) -> RelayExpr:
    """As `adaptive_avg_pool2d`, over three axes."""
    return _adaptive(ops.nn.adaptive_avg_pool3d, data, output_size, layout, out_layout)


def global_max_pool1d(data: RelayExpr, layout: str = "NCW", out_layout: str = "") -> RelayExpr:
    """As `global_max_pool2d`, along one axis."""
    return _adaptive(ops.nn.adaptive_max_pool1d, data, 1, layout, out_layout)


def global_avg_pool1d(data: RelayExpr, layout: str = "NCW", out_layout: str = "") -> RelayExpr:
    """As `global_avg_pool2d`, along one axis."""
    return _adaptive(ops.nn.adaptive_avg_pool1d, data, 1, layout, out_layout)


def global_max_pool3d(data: RelayExpr, layout: str = "NCDHW", out_layout: str = "") -> RelayExpr:
    """As `global_max_pool2d`, over three axes."""
    return _adaptive(ops.nn.adaptive_max_pool3d, data, (1, 1, 1), layout, out_layout)


def global_avg_pool3d(data: RelayExpr, layout: str = "NCDHW", out_layout: str = "") -> RelayExpr:
    """As `global_avg_pool2d`, over three axes."""
    return _adaptive(ops.nn.adaptive_avg_pool3d, data, (1, 1, 1), layout, out_layout)
