"""Operators whose attributes the run decides, where the static operator's facets need numbers.

What stands here are the types, shape functions and kernels that follow from no static one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import PrimExpr
from tvm.ir.type import TensorType, TupleType, Type

from .run_time import (
    RunTime,
    entries,
    length_of,
    number,
    scalar,
    shape_tensor,
    unknowns,
    vector_length,
)
from .types import expect, expect_tensor, shape_of_type, tensor


def _of_rank(who: str, argument: str) -> Any:
    """The type of results whose rank is the length of the second argument."""

    def relation(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
        data = expect_tensor(arg_types[0], who)
        return tensor(unknowns(vector_length(arg_types[1], who, argument)), data.dtype)

    return relation


def _reshaped(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
    return [topi.reshape(inputs[0], out_type.shape)]


def _reshape_shape(
    attrs: Any, inputs: Sequence[te.Tensor], out_ndims: Sequence[object]
) -> list[te.Tensor]:
    """0 copies a dimension (unless it is allowed as an extent), -1 takes what is left, -2 copies
    the last one, -3 is the product of two."""
    have, wanted = entries(inputs[0]), entries(inputs[1])
    total, known, dims = number(1), number(1), []
    for extent in have:
        total = total * extent
    at = number(0)  # the dimension that the next entry is about
    for value in wanted:
        dim = _entry_of_reshape(value, at, have, attrs.allowzero)
        at = at + tir.Select(value.equal(-3), number(2), number(1))
        known = known * tir.Select(dim < 0, number(1), dim)
        dims.append(dim)
    left = tir.indexdiv(total, tir.max(known, number(1)))
    return [shape_tensor([tir.Select(dim < 0, left, dim) for dim in dims])]


def _entry_of_reshape(
    value: PrimExpr, at: PrimExpr, have: Sequence[PrimExpr], allow_zero: bool
) -> PrimExpr:
    if not have:
        return value
    here, after = number(0), number(1)
    for i, extent in enumerate(have):
        here = tir.Select(at.equal(i), extent, here)
        after = tir.Select(at.equal(i - 1), extent, after)
    copied = tir.Select(value.equal(-2), here, tir.Select(value.equal(-3), here * after, value))
    return copied if allow_zero else tir.Select(value.equal(0), here, copied)


RESHAPE = RunTime(
    {"newshape": ()},
    infer_type=_of_rank("dyn.reshape", "newshape"),
    shape_func=_reshape_shape,
)


class DynExpandDimsAttrs(Attrs, key="relay.attrs.DynExpandDimsAttrs"):
    """How many axes of extent 1 come in."""

    num_newaxis: int = 1


def _expand_dims_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "dyn.expand_dims")
    expect_tensor(arg_types[1], "dyn.expand_dims", "axis")
    return tensor(unknowns(len(data.shape) + attrs.num_newaxis), data.dtype)


def _expand_dims_shape(
    attrs: Any, inputs: Sequence[te.Tensor], out_ndims: Sequence[object]
) -> list[te.Tensor]:
    have, count = entries(inputs[0]), attrs.num_newaxis
    axis = scalar(inputs[1]).astype("int64")
    axis = tir.Select(axis < 0, axis + (len(have) + 1), axis)
    dims: list[PrimExpr] = []
    for i in range(len(have) + count):
        before = have[i] if i < len(have) else number(1)
        behind = have[i - count] if i >= count else number(1)
        new = tir.all(axis <= i, axis + count > i)
        dims.append(tir.Select(new, number(1), tir.Select(axis > i, before, behind)))
    return [shape_tensor(dims)]


EXPAND_DIMS = RunTime(
    {"axis": 0},
    attrs=DynExpandDimsAttrs,
    infer_type=_expand_dims_type,
    compute=_reshaped,
    shape_func=_expand_dims_shape,
)


def _squeeze_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "dyn.squeeze")
    count = vector_length(arg_types[1], "dyn.squeeze", "axis")
    expect(
        0 < count <= len(data.shape),
        f"dyn.squeeze requires 1 to {len(data.shape)} axes, got {count}",
    )
    return tensor(unknowns(len(data.shape) - count), data.dtype)


def _squeeze_shape(
    attrs: Any, inputs: Sequence[te.Tensor], out_ndims: Sequence[object]
) -> list[te.Tensor]:
    have = entries(inputs[0])
    axes = [tir.Select(a < 0, a + len(have), a) for a in entries(inputs[1])]
    # a dimension stays at the position that the count of those kept before it gives
    dims: list[PrimExpr] = [number(1)] * (len(have) - len(axes))
    position = number(0)
    for i, extent in enumerate(have):
        gone = tir.any(*[a.equal(i) for a in axes])
        for k in range(len(dims)):
            dims[k] = tir.Select(tir.all(tir.Not(gone), position.equal(k)), extent, dims[k])
        position = position + tir.Select(gone, number(0), number(1))
    return [shape_tensor(dims)]


SQUEEZE = RunTime({"axis": None}, infer_type=_squeeze_type, shape_func=_squeeze_shape)


def _tile_compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
    data = inputs[0]
    shape = list(out_type.shape)
    lead = len(shape) - len(data.shape)

    def element(*i: PrimExpr) -> PrimExpr:
        return data(*[tir.indexmod(k, d) for k, d in zip(i[lead:], data.shape, strict=True)])

    return [te.compute(shape, element, name="T_tile", tag="broadcast")]


TILE = RunTime({"reps": ()}, compute=_tile_compute)


def _strided_slice_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    who = "dyn.strided_slice"
    data = expect_tensor(arg_types[0], who)
    shape = shape_of_type(data)
    counts = [
        vector_length(ty, who, argument)
        for ty, argument in zip(arg_types[1:], ("begin", "end", "strides"), strict=True)
    ]
    expect(max(counts) <= len(shape), f"{who} requires at most {len(shape)} begins, got {counts}")
    return tensor([*unknowns(counts[0]), *shape[counts[0] :]], data.dtype)


def _bounds(
    attrs: Any, extent: PrimExpr, begin: PrimExpr, end: PrimExpr, stride: PrimExpr
) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
    """The first index, the number of elements and the step; numpy's rules."""
    zero, one = number(0), number(1)
    if attrs.slice_mode == "size":
        first = tir.min(tir.Select(begin < 0, begin + extent, begin), extent)
        size = tir.Select(end < 0, extent - first, tir.min(end, extent - first))
        return first, size, one
    is_up = stride > 0
    low, high = tir.Select(is_up, zero, number(-1)), tir.Select(is_up, extent, extent - 1)
    first = tir.max(tir.min(tir.Select(begin < 0, begin + extent, begin), high), low)
    last = tir.max(tir.min(tir.Select(end < 0, end + extent, end), high), low)
    distance = tir.Select(is_up, last - first, first - last)
    step = tir.max(tir.Select(is_up, stride, zero - stride), one)
    return first, tir.max(tir.truncdiv(distance + step - 1, step), zero), stride


def _parameters(inputs: Sequence[te.Tensor], position: int) -> tuple[PrimExpr, PrimExpr, PrimExpr]:
    """The begin, end and stride at one axis; what is left out reaches to the end by ones."""
    found = []
    for values, default in zip(inputs[1:], (0, 2**31 - 1, 1), strict=True):
        count = length_of(values)
        at = position if count > 1 or default != 1 else 0
        has = at < count
        found.append(values(at).astype("int64") if has else number(default))
    return found[0], found[1], found[2]


def _strided_slice_shape(
    attrs: Any, inputs: Sequence[te.Tensor], out_ndims: Sequence[object]
) -> list[te.Tensor]:
    dims = entries(inputs[0])
    for axis in range(length_of(inputs[1])):
        dims[axis] = _bounds(attrs, dims[axis], *_parameters(inputs, axis))[1]
    return [shape_tensor(dims)]


def _strided_slice_compute(
    attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType
) -> list[te.Tensor]:
    data, count = inputs[0], length_of(inputs[1])

    def element(*i: PrimExpr) -> PrimExpr:
        at = list(i)
        for axis in range(count):
            extent = data.shape[axis].astype("int64")
            first, _, stride = _bounds(attrs, extent, *_parameters(inputs, axis))
            at[axis] = (first + i[axis].astype("int64") * stride).astype(i[axis].dtype)
        return data(*at)

    shape = list(out_type.shape)
    return [te.compute(shape, element, name="T_strided_slice", tag="injective")]


STRIDED_SLICE = RunTime(
    {"begin": (), "end": (), "strides": ()},
    infer_type=_strided_slice_type,
    compute=_strided_slice_compute,
    shape_func=_strided_slice_shape,
)


def _topk_compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    results = out_type.fields if isinstance(out_type, TupleType) else (out_type,)
    first = expect_tensor(results[0], "dyn.topk")
    count = first.shape[attrs.axis % len(first.shape)]
    found = topi.topk(inputs[0], count, attrs.axis, attrs.ret_type, attrs.is_ascend, attrs.dtype)
    return found if isinstance(found, list) else [found]


TOPK = RunTime({"k": 1}, compute=_topk_compute)


def _pad_compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
    data, widths, value = inputs
    modes = ("constant", "edge", "reflect")

    def element(*i: PrimExpr) -> PrimExpr:
        at, inside = [], []
        for axis, (index, extent) in enumerate(zip(i, data.shape, strict=True)):
            position = index - widths(axis, 0).astype(index.dtype)
            inside.append(tir.all(position >= 0, position < extent))
            at.append(_mirrored(position, extent, attrs.pad_mode))
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


PAD = RunTime({"pad_width": ()}, compute=_pad_compute)
