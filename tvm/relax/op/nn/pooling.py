"""Pooling."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.relax.expr import Call
from tvm.relax.op.infer import dims_of, fail, made, tensors, window_positions
from tvm.relax.op.operator import Dims, Expr, as_numbers, documented, operator
from tvm.tir.data_layout import layout

from .conv import checked_layouts, padding_pairs, spread

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _checked(call: Any, rank: int) -> Any:
    """A call's tensor, and the mappings between the usual layout and those of it and of the result."""
    info, attrs = tensors(call, 1)[0], call.attrs
    mapping = checked_layouts(call, attrs.layout, _LAYOUTS[rank], "layout")
    out = checked_layouts(call, attrs.out_layout, _LAYOUTS[rank], "out layout")
    count = len(layout(attrs.layout))
    if info.ndim not in (-1, count):
        raise fail(call, f"requires a tensor of {count} dimensions, got {info}")
    return info, mapping, out


def _infer_pool(rank: int) -> Any:
    def infer(call: Any, bb: Any) -> Any:
        """A tensor in `out_layout`, or the layout of `data`, with a position for each place of the
        window; of the dtype of `data`."""
        info, mapping, out = _checked(call, rank)
        attrs, dims = call.attrs, dims_of(info)
        if dims is None:
            return made(None, info.dtype, info.vdevice, len(layout(attrs.out_layout)))
        old = list(mapping.forward_shape(list(dims)))
        new = [*old[:2], *[_size(attrs, old[2 + i], i, rank) for i in range(rank)]]
        return made(list(out.backward_shape(new)), info.dtype, info.vdevice)

    return infer


def _size(attrs: Any, size: Any, i: int, rank: int) -> Any:
    padding = attrs.padding[i] + attrs.padding[i + rank]
    used = attrs.dilation[i] * (attrs.pool_size[i] - 1) + 1
    length = size + padding - used
    if attrs.ceil_mode:
        length = length + attrs.strides[i] - 1
    return window_positions(length, attrs.strides[i])


def _legalize_pool(rank: int, kind: str) -> Any:
    function = {1: topi.nn.pool1d, 2: topi.nn.pool2d, 3: topi.nn.pool3d}[rank]

    def legalize(bb: Any, call: Call) -> Any:
        attrs = call.attrs
        if attrs.out_layout != attrs.layout:
            return call
        return bb.call_te(
            function, call.args[0], kernel=as_numbers(attrs.pool_size), stride=as_numbers(attrs.strides),
            dilation=as_numbers(attrs.dilation), padding=as_numbers(attrs.padding), pool_type=kind,
            ceil_mode=attrs.ceil_mode, layout=attrs.layout,
            count_include_pad=attrs.count_include_pad,
            primfunc_name_hint=f"{kind}_pool{rank}d",
        )  # fmt: skip

    return legalize


def pool_attributes(rank: int, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a pooling, one number for each axis."""
    who = f"pool{rank}d"
    return {
        "pool_size": spread(given["pool_size"], rank, who),
        "strides": spread(given["strides"], rank, who),
        "padding": padding_pairs(given["padding"], rank, who),
        "dilation": spread(given["dilation"], rank, who),
        "out_layout": given["out_layout"] or given["layout"],
    }


def _pool(rank: int, kind: str) -> Any:
    ones, zeros, usual = (1,) * rank, (0,) * (2 if rank < 3 else 3), _LAYOUTS[rank]

    def build(
        data: Expr, pool_size: Dims = ones, strides: Dims = ones, padding: Dims = zeros,
        dilation: Dims = ones, ceil_mode: bool = False, count_include_pad: bool = False,
        layout: str = usual, out_layout: str | None = None,
    ) -> Expr:  # fmt: skip
        return pool_attributes(rank, locals())

    name = f"{kind}_pool{rank}d"
    what = "greatest elements" if kind == "max" else "means"
    doc = f"""The {what} of windows over {rank} axes.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    pool_size, strides, padding, dilation : int or tuple of int
        Of the windows.
    ceil_mode : bool
        Whether a window that is partly outside counts.
    count_include_pad : bool
        Whether padding counts for means.
    layout, out_layout : str
        Of the tensor and the result.
    """
    legalize = _legalize_pool(rank, kind)
    return operator(
        f"relax.nn.{name}", f"Pool{rank}DAttrs", infer=_infer_pool(rank), FLegalize=legalize
    )(documented(build, name, __name__, doc))


max_pool1d, max_pool2d, max_pool3d = [_pool(rank, "max") for rank in (1, 2, 3)]
avg_pool1d, avg_pool2d, avg_pool3d = [_pool(rank, "avg") for rank in (1, 2, 3)]


def _infer_adaptive(rank: int) -> Any:
    def infer(call: Any, bb: Any) -> Any:
        """A tensor in `out_layout`, or the layout of `data`, its spatial axes of the wanted size;
        of the dtype of `data`."""
        info, mapping, out = _checked(call, rank)
        attrs, dims = call.attrs, dims_of(info)
        if dims is None:
            is_kept = attrs.layout == attrs.out_layout and attrs.output_size is None
            if is_kept and info.shape is not None:
                return info
            return made(None, info.dtype, info.vdevice, len(layout(attrs.out_layout)))
        new = list(mapping.forward_shape(list(dims)))
        if attrs.output_size is not None:
            new[2:] = list(attrs.output_size)
        return made(list(out.backward_shape(new)), info.dtype, info.vdevice)

    return infer


def _adaptive(rank: int) -> Any:
    usual = _LAYOUTS[rank]
    function = {1: topi.nn.adaptive_pool1d, 2: topi.nn.adaptive_pool, 3: topi.nn.adaptive_pool3d}

    def legalize(bb: Any, call: Call) -> Any:
        attrs = call.attrs
        if attrs.out_layout != attrs.layout:
            return call
        size = attrs.output_size
        if size is None:
            info = call.args[0].struct_info
            mapping = checked_layouts(call, attrs.layout, usual, "layout")
            size = list(mapping.forward_shape(list(info.shape.values)))[2:]
        return bb.call_te(
            function[rank], call.args[0], as_numbers(size), "avg", attrs.layout,
            primfunc_name_hint=f"adaptive_avg_pool{rank}d",
        )  # fmt: skip

    def build(
        data: Expr, output_size: Dims = None, layout: str = usual, out_layout: str | None = None
    ) -> Expr:
        size = None if output_size is None else spread(output_size, rank, "output_size")
        return {"output_size": size, "out_layout": out_layout or layout}

    name = f"adaptive_avg_pool{rank}d"
    doc = f"""Means of as many windows over {rank} axes as the result has elements.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    output_size : int or tuple of int, optional
        Of the result; by default that of the tensor.
    layout, out_layout : str
        Of the tensor and the result.
    """
    return operator(
        f"relax.nn.{name}", f"AdaptivePool{rank}DAttrs", infer=_infer_adaptive(rank),
        FLegalize=legalize,
    )(documented(build, name, __name__, doc))  # fmt: skip


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = [_adaptive(r) for r in (1, 2, 3)]
