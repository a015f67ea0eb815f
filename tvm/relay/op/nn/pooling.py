"""Pooling over windows, globally, and to a given output size, in plain and blocked layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter
from typing import Any

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.expr import Call
from tvm.support.docstrings import described_by

from ..layout import layout_bound
from ..layout_shapes import axes_extents, moved, shape_in_layout
from ..operator import (
    Expr,
    OperatorFunction,
    OptionalInts,
    OptionalStr,
    P,
    Padding2,
    R,
    Spatial2,
    operator,
)
from ..parameters import more_parameters, of_rank, same_parameters
from ..plain_results import of_plain_result
from ..registry import OpPattern, ops
from ..schedules import default_schedules
from ..separable import separable_gradient
from ..types import Dim, TypeRelation, apply, expect, expect_tensor, shape_of_type, tensor
from .pooling_composition import (
    adapted_axis,
    averaged_axis,
    channels_first,
    composed_adaptive_max_pool,
    composed_max_pool1d,
    composed_max_pool3d,
    global_avg_pool2d_gradient,
)


def pool_type(who: str, spatial: str) -> TypeRelation:
    """The type of a pooling over windows."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor in `out_layout`, or the layout of `data`, with a position for each place of the
        window; of the dtype of `data`."""
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
            extent = extents[axis]
            expect(
                not isinstance(extent, int) or extent > 0,
                f"{who} requires data at least as large as the window {attrs.pool_size}, "
                f"got {data}",
            )
        return tensor(shape_in_layout(extents, attrs.out_layout or attrs.layout), data.dtype)

    return relation


def _sized_type(who: str, spatial: str) -> TypeRelation:
    """The type of a pooling to given extents (1 where there is no `output_size`)."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        """A tensor in `out_layout`, or the layout of `data`, its spatial axes of the wanted size;
        of the dtype of `data`."""
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
    if "output_size" not in attrs:  # global
        return (1,) * len(spatial)
    if attrs.output_size is None:
        return [extents[axis] for axis in spatial]
    sizes: tuple[int, ...] = attrs.output_size
    return sizes * len(spatial) if len(sizes) == 1 else sizes


def _schedule_pool(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.x86.schedule_pool(outs, attrs.layout)


_SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
_FIELDS = ("strides", "padding", "dilation", "layout", "out_layout", "ceil_mode")


def _pool(
    rank: int, kind: str, **facets: Any
) -> Callable[[Callable[P, R | None]], OperatorFunction[P, R]]:
    """A pooling over windows, under the function's name."""
    function = (topi.nn.pool1d, topi.nn.pool2d, topi.nn.pool3d)[rank - 1]

    def compute(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
        out = function(
            inputs[0], attrs.pool_size, attrs.strides, attrs.dilation, attrs.padding, kind,
            attrs.ceil_mode, attrs.layout, kind == "avg" and attrs.count_include_pad,
        )  # fmt: skip
        return [moved(out, attrs.layout, attrs.out_layout or attrs.layout)]

    return _of_function(
        pool_type,
        _SPATIAL[rank],
        fields=("pool_size", *(["count_include_pad"] if kind == "avg" else []), *_FIELDS),
        defaults={"pool_size": Parameter.empty},  # printed programs always tell it
        compute=compute,
        schedules={**default_schedules(), "cpu": _schedule_pool},
        accumulates=kind == "avg",
        **facets,
    )


def _sized_pool(
    rank: int, kind: str, attrs: str | OperatorFunction[..., Any], **facets: Any
) -> Callable[[Callable[P, R | None]], OperatorFunction[P, R]]:
    """A pooling to given extents, or to 1, under the function's name."""
    spatial = _SPATIAL[rank]
    function = (topi.nn.adaptive_pool1d, topi.nn.adaptive_pool, topi.nn.adaptive_pool3d)[rank - 1]

    def compute(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
        extents = axes_extents(topi.utils.dims(inputs[0].shape), attrs.layout, "pooling")
        sizes = _sizes(attrs, extents, spatial)
        out = function(inputs[0], sizes, kind, attrs.layout)
        return [moved(out, attrs.layout, attrs.out_layout or attrs.layout)]

    return _of_function(
        _sized_type,
        spatial,
        attrs=attrs,
        compute=compute,
        schedules=default_schedules(topi.x86.schedule_adaptive_pool),
        accumulates=kind == "avg",
        **facets,
    )


def _of_function(
    relation: Callable[[str, str], TypeRelation], spatial: str, **facets: Any
) -> Callable[[Callable[P, R | None]], OperatorFunction[P, R]]:
    def declare(function: Callable[P, R | None]) -> OperatorFunction[P, R]:
        name = f"nn.{function.__name__}"
        declared = operator(
            name,
            support_level=2,
            infer_type=relation(name, spatial),
            fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
            infer_layout=layout_bound,
            **facets,
        )
        return declared(function)

    return declare


@_pool(
    2,
    "max",
    gradient=lambda call, grad: [Call(ops.nn.max_pool2d_grad, (grad, call.args[0]), call.attrs)],
)
def max_pool2d(
    data: Expr,
    pool_size: Spatial2 = (1, 1),
    strides: Spatial2 = (1, 1),
    dilation: Spatial2 = (1, 1),
    padding: Padding2 = (0, 0),
    layout: str = "NCHW",
    out_layout: OptionalStr = "",
    ceil_mode: bool = False,
) -> RelayExpr:
    """The largest element of each window.

    Parameters
    ----------
    pool_size, strides, dilation : int or sequence of int
        The window, its steps, and the spacing of its elements.
    padding : int or sequence of int
        1, 2 (vertical, horizontal) or 4 (top, left, bottom, right) numbers.
    layout, out_layout : str
        The data's layout, and the output's if it is another one.
    ceil_mode : bool
        Let the last window reach over the edge.
    """


@_pool(
    2,
    "avg",
    gradient=lambda call, grad: [Call(ops.nn.avg_pool2d_grad, (grad, call.args[0]), call.attrs)],
)
@more_parameters(max_pool2d)
def avg_pool2d(count_include_pad: bool = False) -> None:
    """The mean of each window.

    Parameters
    ----------
    count_include_pad : bool
        Count padded elements in the mean.
    """


max_pool1d = of_rank(
    _pool(1, "max", composition=channels_first(composed_max_pool1d)), max_pool2d, 1
)
max_pool3d = of_rank(
    _pool(3, "max", composition=channels_first(composed_max_pool3d)),
    max_pool2d,
    3,
    "Padding is 1, 3 (depth, height, width) or 6 (front, top, left, back, bottom, right) numbers.",
)
_AVERAGED = of_plain_result(separable_gradient(averaged_axis))
avg_pool1d = of_rank(_pool(1, "avg", gradient=_AVERAGED), avg_pool2d, 1)
avg_pool3d = of_rank(_pool(3, "avg", gradient=_AVERAGED), avg_pool2d, 3)


@_sized_pool(
    2,
    "max",
    "GlobalPool2DAttrs",
    composition=channels_first(lambda call, data: ops.max(data, axis=(2, 3), keepdims=True)),
)
@described_by(max_pool2d)
def global_max_pool2d(data: Expr, layout: str = "NCHW", out_layout: OptionalStr = "") -> RelayExpr:
    """The largest element of each channel."""


@_sized_pool(2, "avg", global_max_pool2d, gradient=of_plain_result(global_avg_pool2d_gradient))
@same_parameters(global_max_pool2d)
def global_avg_pool2d() -> None:
    """The mean of each channel; parameters as in `global_max_pool2d`."""


_TO_SIZE = channels_first(composed_adaptive_max_pool)
_ADAPTED = of_plain_result(separable_gradient(adapted_axis))


@_sized_pool(2, "max", "AdaptivePool2DAttrs", composition=_TO_SIZE)
def adaptive_max_pool2d(
    data: Expr, output_size: OptionalInts = None, layout: str = "NCHW", out_layout: OptionalStr = ""
) -> RelayExpr:
    """The largest element of each of `output_size` nearly equal windows.

    Parameters
    ----------
    output_size : int or sequence of int, optional
        The extents of the output, the input's by default.
    layout, out_layout : str
        The data's layout, and the output's if it is another one.
    """


@_sized_pool(2, "avg", adaptive_max_pool2d, gradient=_ADAPTED)
@same_parameters(adaptive_max_pool2d)
def adaptive_avg_pool2d() -> None:
    """The mean of each of `output_size` nearly equal windows; as `adaptive_max_pool2d`."""


adaptive_max_pool1d, adaptive_max_pool3d = [
    of_rank(
        _sized_pool(rank, "max", f"AdaptivePool{rank}DAttrs", composition=_TO_SIZE),
        adaptive_max_pool2d,
        rank,
    )
    for rank in (1, 3)
]
adaptive_avg_pool1d, adaptive_avg_pool3d = [
    of_rank(_sized_pool(rank, "avg", pool, gradient=_ADAPTED), adaptive_avg_pool2d, rank)
    for rank, pool in ((1, adaptive_max_pool1d), (3, adaptive_max_pool3d))
]


def global_max_pool1d(
    data: RelayExpr, layout: str = "NCW", out_layout: OptionalStr = ""
) -> RelayExpr:
    """As `global_max_pool2d`, along one axis."""
    return adaptive_max_pool1d(data, 1, layout, out_layout)


def global_avg_pool1d(
    data: RelayExpr, layout: str = "NCW", out_layout: OptionalStr = ""
) -> RelayExpr:
    """As `global_avg_pool2d`, along one axis."""
    return adaptive_avg_pool1d(data, 1, layout, out_layout)


def global_max_pool3d(
    data: RelayExpr, layout: str = "NCDHW", out_layout: OptionalStr = ""
) -> RelayExpr:
    """As `global_max_pool2d`, over three axes."""
    return adaptive_max_pool3d(data, (1, 1, 1), layout, out_layout)


def global_avg_pool3d(
    data: RelayExpr, layout: str = "NCDHW", out_layout: OptionalStr = ""
) -> RelayExpr:
    """As `global_avg_pool2d`, over three axes."""
    return adaptive_avg_pool3d(data, (1, 1, 1), layout, out_layout)
