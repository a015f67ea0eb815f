"""Convolutions."""

from __future__ import annotations

from typing import Any

from tvm import tir, topi
from tvm.error import TypeCheckError
from tvm.relax.expr import Call
from tvm.relax.op.infer import (
    VOID,
    as_sum,
    common_vdevice,
    dims_of,
    fail,
    is_number,
    made,
    prove_unequal,
    simplified,
    tensors,
    window_positions,
)
from tvm.relax.op.operator import DataType, Dims, Expr, Int, as_int, as_numbers, operator
from tvm.tir.data_layout import bijective_layout, layout


def spread(value: Any, rank: int, who: str) -> tuple[Any, ...]:
    """One number for each of so many axes, or the same for all."""
    items = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if len(items) == 1:
        items = items * rank
    if len(items) != rank:
        raise TypeCheckError(f"{who} requires 1 or {rank} numbers, got {len(items)}")
    return items


def padding_pairs(value: Any, rank: int, who: str) -> tuple[Any, ...]:
    """So many numbers before and as many after, from 1, ``rank`` or twice as many."""
    items = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if len(items) == 1:
        return items * (2 * rank)
    if len(items) == rank:
        return items + items
    if len(items) != 2 * rank:
        raise TypeCheckError(
            f"{who} requires 1, {rank} or {2 * rank} padding numbers, got {len(items)}"
        )
    return items


def checked_layouts(call: Any, given: str, canonical: str, what: str) -> Any:
    """The layout a call states, which converts to the canonical one."""
    try:
        found = bijective_layout(given, canonical)
    except Exception:
        found = None
    if found is None:
        raise fail(call, f"requires a {what} that converts to {canonical}, got {given}")
    return found


def _dims(call: Any, info: Any, given: str, canonical: str, what: str) -> Any:
    """The dimensions in canonical order, or None."""
    mapping = checked_layouts(call, given, canonical, what)
    count = len(layout(given))
    if info.ndim not in (-1, count):
        raise fail(call, f"requires a {what} {given} of {count} dimensions, got {info}")
    dims = dims_of(info)
    return None if dims is None else list(mapping.forward_shape(list(dims)))


def _check_known(call: Any, data: Any, weight: Any) -> Any:
    attrs = call.attrs
    if not attrs.out_dtype.is_void:
        return attrs.out_dtype
    if data.dtype.is_void or weight.dtype.is_void:
        return VOID
    if data.dtype != weight.dtype:
        raise fail(call, f"requires tensors of one dtype, got {data.dtype} and {weight.dtype}")
    return data.dtype


def _conv_infer(canonical: str, kernel: str, transposed: bool) -> Any:
    rank = len(canonical) - 2

    def infer(call: Any, bb: Any) -> Any:
        """A tensor in `out_layout`, or the layout of `data`; of dtype `out_dtype`, or that of the
        operands."""
        data, weight = infos = tensors(call, 2)
        attrs = call.attrs
        device = common_vdevice(call, infos)
        x = _dims(call, data, attrs.data_layout, canonical, "data layout")
        w = _dims(call, weight, attrs.kernel_layout, kernel, "kernel layout")
        out = checked_layouts(call, attrs.out_layout, canonical, "out layout")
        kind = _check_known(call, data, weight)
        count = len(layout(attrs.out_layout))
        if transposed:
            _check_output_padding(call)
        if x is None or w is None:
            return made(None, kind, device, count)
        dims = [x[0], *_channels(call, x[1], w, transposed)]
        for i in range(rank):
            size = _transposed_size if transposed else _size
            dims.append(size(attrs, x[2 + i], w[2 + i], i, rank))
        return made(list(out.backward_shape(dims)), kind, device)

    return infer


def _check_output_padding(call: Any) -> None:
    for extra, stride in zip(call.attrs.output_padding, call.attrs.strides, strict=True):
        if is_number(extra) and is_number(stride) and extra.value >= stride.value:
            raise fail(call, f"requires output_padding below the strides, got {extra} and {stride}")


def _channels(call: Any, inputs: Any, w: Any, transposed: bool) -> list[Any]:
    groups = call.attrs.groups
    a, outputs = (w[0], w[1]) if transposed else (w[1], w[0])
    wanted = simplified(a if transposed else a * groups)
    if _are_unequal(wanted, inputs):
        raise fail(call, f"requires {wanted} channels of the data, got {inputs}")
    divided = inputs if transposed else outputs
    if prove_unequal(tir.floormod(divided, groups), tir.IntImm("int64", 0)):
        raise fail(call, f"requires channels that {groups} groups divide, got {divided}")
    return [simplified(outputs * groups)] if transposed else [outputs]


def _are_unequal(a: Any, b: Any) -> bool:
    return prove_unequal(a, b)


def _size(attrs: Any, size: Any, kernel: Any, i: int, rank: int) -> Any:
    padding = attrs.padding[i] + attrs.padding[i + rank]
    used = attrs.dilation[i] * (kernel - 1) + 1
    return window_positions(size + padding - used, attrs.strides[i])


def _transposed_size(attrs: Any, size: Any, kernel: Any, i: int, rank: int) -> Any:
    padding = attrs.padding[i] + attrs.padding[i + rank]
    used = attrs.dilation[i] * (kernel - 1)
    return as_sum((size - 1) * attrs.strides[i] - padding + used + attrs.output_padding[i] + 1)


def _kind(call: Call) -> Any:
    found = call.struct_info.dtype
    return None if found == call.args[0].struct_info.dtype else found


def _keeps_layout(call: Call) -> bool:
    return bool(call.attrs.data_layout == call.attrs.out_layout)


def _legalize_conv(rank: int) -> Any:
    def legalize(bb: Any, call: Call) -> Any:
        attrs = call.attrs
        if not _keeps_layout(call) or attrs.data_layout not in _CONV_LAYOUTS[rank]:
            return call
        return bb.call_te(
            topi.nn.conv,
            inp=call.args[0],
            filt=call.args[1],
            stride=as_numbers(attrs.strides),
            padding=as_numbers(attrs.padding),
            dilation=as_numbers(attrs.dilation),
            groups=attrs.groups,
            data_layout=attrs.data_layout,
            kernel_layout=attrs.kernel_layout,
            out_dtype=_kind(call),
            primfunc_name_hint=f"conv{rank}d",
        )

    return legalize


_CONV_LAYOUTS = {
    1: ("NCW", "NWC"), 2: ("NCHW", "NHWC", "HWCN"), 3: ("NCDHW", "NDHWC")
}  # fmt: skip


def _conv_attributes(who: str, rank: int, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a convolution, one number for each axis."""
    found = {
        "strides": spread(given["strides"], rank, who),
        "padding": padding_pairs(given["padding"], rank, who),
        "dilation": spread(given["dilation"], rank, who),
    }
    if "output_padding" in given:
        found["output_padding"] = spread(given["output_padding"], rank, who)
    found["out_layout"] = given["out_layout"] or given["data_layout"]
    groups = getattr(given["groups"], "value", given["groups"])
    if groups <= 0:
        raise TypeCheckError(f"{who} requires a positive number of groups, got {groups}")
    return found


@operator(
    "relax.nn.conv1d", "Conv1DAttrs", infer=_conv_infer("NCW", "OIW", False),
    FLegalize=_legalize_conv(1),
)  # fmt: skip
def conv1d(
    data: Expr, weight: Expr, strides: Dims = 1, padding: Dims = 0, dilation: Dims = 1,
    groups: Int = 1, data_layout: str = "NCW", kernel_layout: str = "OIW",
    out_layout: str | None = None, out_dtype: DataType = None,
) -> Expr:  # fmt: skip
    """Convolution over one axis; see `conv2d`."""
    return _conv_attributes("conv1d", 1, locals())


@operator(
    "relax.nn.conv2d", "Conv2DAttrs", infer=_conv_infer("NCHW", "OIHW", False),
    FLegalize=_legalize_conv(2),
)  # fmt: skip
def conv2d(
    data: Expr, weight: Expr, strides: Dims = (1, 1), padding: Dims = (0, 0),
    dilation: Dims = (1, 1), groups: Int = 1, data_layout: str = "NCHW",
    kernel_layout: str = "OIHW", out_layout: str | None = None, out_dtype: DataType = None,
) -> Expr:  # fmt: skip
    """Convolution over two axes.

    Parameters
    ----------
    data, weight : relax.Expr
        The data, and the kernels.
    strides, padding, dilation : int or tuple of int
        Of the axes; four numbers of padding are those before both and after both.
    groups : int
        The number of groups.
    data_layout, kernel_layout, out_layout : str
        The layouts; the result's is by default that of the data.
    out_dtype : str, optional
        The data type of the result.
    """
    return _conv_attributes("conv2d", 2, locals())


@operator(
    "relax.nn.conv3d", "Conv3DAttrs", infer=_conv_infer("NCDHW", "OIDHW", False),
    FLegalize=_legalize_conv(3),
)  # fmt: skip
def conv3d(
    data: Expr, weight: Expr, strides: Dims = (1, 1, 1), padding: Dims = (0, 0, 0),
    dilation: Dims = (1, 1, 1), groups: Int = 1, data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW", out_layout: str | None = None, out_dtype: DataType = None,
) -> Expr:  # fmt: skip
    """Convolution over three axes; see `conv2d`."""
    return _conv_attributes("conv3d", 3, locals())


def _legalize_transposed(rank: int) -> Any:
    function = (
        topi.nn.group_conv1d_transpose_ncw if rank == 1 else topi.nn.group_conv2d_transpose_nchw
    )

    def legalize(bb: Any, call: Call) -> Any:
        attrs = call.attrs
        canonical = ("NCW", "IOW") if rank == 1 else ("NCHW", "IOHW")
        is_usual = (attrs.data_layout, attrs.kernel_layout) == canonical and _keeps_layout(call)
        if not is_usual or any([d != 1 for d in as_numbers(attrs.dilation)]):
            return call
        strides = as_int(attrs.strides[0]) if rank == 1 else as_numbers(attrs.strides)
        extra = as_int(attrs.output_padding[0]) if rank == 1 else as_numbers(attrs.output_padding)
        return bb.call_te(
            function, call.args[0], call.args[1], stride=strides, padding=as_numbers(attrs.padding),
            out_dtype=call.struct_info.dtype, output_padding=extra, groups=attrs.groups,
            primfunc_name_hint=f"conv{rank}d_transpose",
        )  # fmt: skip

    return legalize


@operator(
    "relax.nn.conv1d_transpose", "Conv1DTransposeAttrs", infer=_conv_infer("NCW", "IOW", True),
    FLegalize=_legalize_transposed(1),
)  # fmt: skip
def conv1d_transpose(
    data: Expr, weight: Expr, strides: Dims = 1, padding: Dims = 0, output_padding: Dims = 0,
    dilation: Dims = 1, groups: Int = 1, data_layout: str = "NCW", kernel_layout: str = "IOW",
    out_layout: str | None = None, out_dtype: DataType = None,
) -> Expr:  # fmt: skip
    """Transposed convolution over one axis; see `conv2d_transpose`."""
    return _conv_attributes("conv1d_transpose", 1, locals())


@operator(
    "relax.nn.conv2d_transpose", "Conv2DTransposeAttrs", infer=_conv_infer("NCHW", "IOHW", True),
    FLegalize=_legalize_transposed(2),
)  # fmt: skip
def conv2d_transpose(
    data: Expr, weight: Expr, strides: Dims = (1, 1), padding: Dims = (0, 0),
    output_padding: Dims = (0, 0), dilation: Dims = (1, 1), groups: Int = 1,
    data_layout: str = "NCHW", kernel_layout: str = "IOHW", out_layout: str | None = None,
    out_dtype: DataType = None,
) -> Expr:  # fmt: skip
    """Transposed convolution over two axes.

    Parameters
    ----------
    data, weight, strides, padding, dilation, groups, data_layout, kernel_layout :
        As of `conv2d`.
    output_padding : int or tuple of int
        More elements of the result, below the strides.
    out_layout, out_dtype :
        As of `conv2d`.
    """
    return _conv_attributes("conv2d_transpose", 2, locals())
