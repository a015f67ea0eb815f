"""Elements by index."""

from __future__ import annotations

from typing import Any

from tvm import te, tir, topi
from tvm.error import TVMError
from tvm.ir.op import Op
from tvm.relax.expr import Call, PrimValue, Tuple
from tvm.relax.op.base import tensor_to_shape
from tvm.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

from .infer import (
    axis_of,
    check_count,
    common_vdevice,
    dims_of,
    fail,
    known_dims,
    made,
    simplified,
    tensor,
    tensors,
)
from .operator import Expr, Tensors, operator


def _infer_take(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `x`: in its shape the axis is replaced by the shape of the indices."""
    check_count(call, 2)
    info, indices = tensor(call, 0), call.args[1].struct_info
    if isinstance(indices, PrimStructInfo):
        where: Any = TensorStructInfo((), indices.dtype)
    elif isinstance(indices, TensorStructInfo):
        where = indices
    else:
        raise fail(call, f"requires indices as a Tensor or a number, got {indices}")
    if not where.dtype.is_void and not (where.dtype.is_int or where.dtype.is_uint):
        raise fail(call, f"requires indices of an integer dtype, got {where.dtype}")
    axis = call.attrs.axis
    if axis is None and info.ndim != 1:
        raise fail(call, f"requires an axis for a tensor of {info.ndim} dimensions")
    if info.ndim < 0 or where.ndim < 0:
        return made(None, info.dtype, info.vdevice)
    axis = axis_of(call, axis or 0, info.ndim)
    dims, index_dims = dims_of(info), known_dims(where)
    ndim = info.ndim + where.ndim - 1
    if info.ndim == 1 and where.shape is not None and index_dims is None:
        return made(where.shape, info.dtype, info.vdevice)
    if dims is None or dims_of(where) is None:
        if info.ndim == 1 and where.shape is not None:
            return made(where.shape, info.dtype, info.vdevice)
        return made(None, info.dtype, info.vdevice, ndim)
    new = [*dims[:axis], *index_dims, *dims[axis + 1 :]]  # type: ignore[misc]
    return made(new, info.dtype, info.vdevice)


def _legalize_take(bb: Any, call: Call) -> Any:
    # indices beyond the bounds are a program's own fault
    indices = call.args[1]
    info = indices.struct_info
    if isinstance(info, PrimStructInfo):
        if info.value is None:
            return call

        def at(x: Any, index: Any, axis: int) -> Any:
            rest = [d for i, d in enumerate(x.shape) if i != axis]
            return te.compute(
                rest, lambda *i: x(*i[:axis], index, *i[axis:]), name="T_take", tag="injective"
            )

        axis = (call.attrs.axis or 0) % call.args[0].struct_info.ndim
        return bb.call_te(at, call.args[0], info.value, axis, primfunc_name_hint="take")
    return bb.call_te(
        topi.take, call.args[0], indices, call.attrs.axis, mode="fast", primfunc_name_hint="take"
    )


@operator("relax.take", "TakeAttrs", infer=_infer_take, FLegalize=_legalize_take)
def take(x: Expr, indices: Expr, axis: int | None = None) -> Expr:
    """The elements at indices along an axis.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    indices : relax.Expr
        The indices, a tensor or a number.
    axis : int, optional
        The axis; it may be left out for tensors of one dimension.
    """


# ---- slices


def _numbers(call: Any, index: int, integers: bool = True) -> list[Any] | None:
    """The values of an argument that is a tuple of numbers, if they are known."""
    info = call.args[index].struct_info
    if not isinstance(info, TupleStructInfo):
        raise fail(call, f"requires a tuple of numbers as argument {index}, got {info}")
    values = []
    for field in info.fields:
        if not isinstance(field, PrimStructInfo):
            raise fail(call, f"requires a tuple of numbers as argument {index}, got {info}")
        if integers and not field.dtype.is_int:
            raise fail(call, f"requires integers as argument {index}, got {field.dtype}")
        values.append(field.value)
    return None if any([v is None for v in values]) else values


def _infer_slice(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `x`, each extent the number of elements that the slice takes."""
    check_count(call, 4, 5)
    info = tensor(call, 0)
    parts = [_numbers(call, i) for i in range(1, len(call.args))]
    counts = {len(a.struct_info.fields) for a in call.args[1:]}
    if len(counts) > 1:
        raise fail(call, f"requires as many begins, ends and strides as axes, got {sorted(counts)}")
    axes = parts[0]
    if info.ndim < 0:
        return made(None, info.dtype, info.vdevice)
    if axes is not None:
        found = [axis_of(call, int(a.value), info.ndim) for a in axes]
        if len({*found}) != len(found):
            raise fail(call, f"requires axes that differ, got {found}")
        if not found:
            known = known_dims(info)
            return info if known is None else made(known, info.dtype, info.vdevice)
    dims = known_dims(info)
    if dims is None or any([p is None for p in parts]):
        return made(None, info.dtype, info.vdevice, info.ndim)
    begin, end = parts[1:3]
    strides = parts[3] if len(parts) > 3 else [tir.IntImm("int64", 1)] * len(found)
    new = list(dims)
    for axis, b, e, s in zip(found, begin, end, strides, strict=True):  # type: ignore[arg-type]
        new[axis] = slice_length(b, e, s, dims[axis], call.attrs.assume_inbound)
    return made(new, info.dtype, info.vdevice)


def slice_length(begin: Any, end: Any, stride: Any, extent: Any, is_inbound: bool) -> Any:
    """How many elements a slice of an axis takes."""
    begin, end, stride = [_wide(v) for v in (begin, end, stride)]
    given = (begin, end, stride, extent)
    values = [v.value for v in given if isinstance(v, tir.IntImm)]
    if len(values) == len(given):
        b, e, s, n = values
        if is_inbound:
            b, e = [v + n if v < 0 else v for v in (b, e)]
            count = max(0, -(-(e - b) // s) if s > 0 else -(-(b - e) // -s))
        else:
            count = len(range(*slice(b, e, s).indices(n))) if s > 0 else _back(b, e, s, n)
        return tir.IntImm("int64", count)
    low, high = [_canonical(v, extent, stride, is_inbound) for v in (begin, end)]
    if isinstance(stride, tir.IntImm):
        if stride.value < 0:
            return simplified(tir.ceildiv(low - high, tir.IntImm("int64", -stride.value)))
        return simplified(tir.ceildiv(high - low, stride))
    backward, forward = tir.ceildiv(low - high, -stride), tir.ceildiv(high - low, stride)
    return simplified(tir.if_then_else(stride < 0, backward, forward))


def _back(begin: int, end: int, stride: int, extent: int) -> int:
    def bounded(value: int) -> int:
        value = value + extent if value < 0 else value
        return min(max(value, -1), extent - 1)

    return max(0, -(-(bounded(begin) - bounded(end)) // -stride))


def _wide(value: Any) -> Any:
    if isinstance(value, tir.IntImm):
        return tir.IntImm("int64", value.value)
    return value if value.dtype == "int64" else value.astype("int64")


def _canonical(index: Any, extent: Any, stride: Any, is_inbound: bool) -> Any:
    least: Any
    if isinstance(stride, tir.IntImm):
        is_back = stride.value < 0
        least, most = (-1, extent - 1) if is_back else (0, extent)
    else:
        least = tir.if_then_else(stride < 0, tir.IntImm("int64", -1), tir.IntImm("int64", 0))
        most = tir.if_then_else(stride < 0, extent - 1, extent)
    if isinstance(index, tir.IntImm):
        index = index + extent if index.value < 0 else index
    else:
        # what is within bounds is not counted from the end
        index = index if is_inbound else tir.if_then_else(index < 0, index + extent, index)
    if is_inbound:
        return index
    return tir.min(tir.max(index, least), most)


def _legalize_slice(bb: Any, call: Call) -> Any:
    parts = []
    for arg in call.args[1:]:
        values = [field.value for field in arg.struct_info.fields]
        if any([v is None for v in values]):
            return call
        parts.append(values)
    axes = [int(a.value) % call.args[0].struct_info.ndim for a in parts[0]]
    strides = parts[3] if len(parts) > 3 else [tir.IntImm("int64", 1)] * len(axes)
    is_inbound = call.attrs.assume_inbound
    given = [*parts[1], *parts[2], *strides]
    count = len(axes)

    def compute(x: Any, values: Any) -> Any:
        begin, end, steps = [values[i * count : (i + 1) * count] for i in range(3)]
        return slice_compute(x, axes, begin, end, steps, is_inbound)

    return bb.call_te(compute, call.args[0], given, primfunc_name_hint="strided_slice")


def slice_compute(
    x: Any, axes: Any, begins: Any, ends: Any, strides: Any, is_inbound: bool = False
) -> Any:
    """Every so many elements along axes, of a tensor."""
    shape, starts, steps = list(x.shape), {}, {}
    for axis, b, e, s in zip(axes, begins, ends, strides, strict=True):
        extent = _wide(x.shape[axis])
        shape[axis] = slice_length(b, e, s, extent, is_inbound)
        starts[axis] = simplified(_canonical(_wide(b), extent, _wide(s), is_inbound))
        steps[axis] = _wide(s)

    def element(*indices: Any) -> Any:
        where = [i * steps[a] + starts[a] if a in steps else i for a, i in enumerate(indices)]
        return x(*where)

    return te.compute(shape, element, name="T_strided_slice_with_axes", tag="injective")


def _as_numbers(values: Any) -> Any:
    if isinstance(values, (list, tuple)):
        return Tuple([v if isinstance(v, PrimValue) else _number(v) for v in values])
    return values


def _number(value: Any) -> Any:
    if isinstance(value, tir.IntImm):
        return PrimValue(tir.IntImm("int64", value.value))
    if isinstance(value, (int, tir.PrimExpr)):
        return PrimValue(value)
    return value


@operator("relax.strided_slice", "StridedSliceAttrs", infer=_infer_slice, FLegalize=_legalize_slice)
def strided_slice(
    x: Expr, axes: Tensors, begin: Tensors, end: Tensors, strides: Tensors = None,
    assume_inbound: bool = False,
) -> Expr:  # fmt: skip
    """Every so many elements along axes.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    axes : list of int
        The axes.
    begin, end : list of int or PrimExpr
        The first index of each axis, and the bound.
    strides : list of int or PrimExpr, optional
        The distances, by default 1.
    assume_inbound : bool
        Whether it is known that indices are within bounds.
    """
    lists = [v for v in (axes, begin, end, strides) if isinstance(v, (list, tuple))]
    if len({len(values) for values in lists}) > 1:
        raise TVMError(
            "strided_slice requires a begin, an end and a stride for each of its axes, got "
            f"{', '.join([str(len(values)) for values in lists])} values"
        )
    parts = [_as_numbers(v) for v in (axes, begin, end, strides)]
    operands = [x, *parts[:3], *([] if strides is None else [parts[3]])]
    op = Op.get("relax.strided_slice")
    return Call(op, operands, op.attrs_type(bool(assume_inbound)))


def _infer_dynamic_slice(call: Any, bb: Any) -> Any:
    """A tensor of the rank and dtype of `x`, whose extents the run decides."""
    info, *rest = tensors(call, 4)
    for other in rest:
        if not other.dtype.is_void and other.dtype != "int64":
            raise fail(call, f"requires begin, end and strides of int64, got {other.dtype}")
        if other.ndim != 1:
            raise fail(call, f"requires begin, end and strides of one dimension, got {other}")
        dims = dims_of(other)
        if (
            info.ndim >= 0
            and dims is not None
            and getattr(dims[0], "value", info.ndim) != info.ndim
        ):
            raise fail(call, f"requires {info.ndim} begins, ends and strides, got {other}")
    return made(None, info.dtype, common_vdevice(call, [info]), info.ndim)


def _legalize_dynamic_slice(bb: Any, call: Call) -> Any:
    info = call.args[0].struct_info
    data, begin, end, strides = call.args
    shape = bb.emit(
        bb.call_te(_slice_shape, data, begin, end, strides, primfunc_name_hint="shape_func")
    )
    names = [tir.Var(f"s{i if i else ''}", "int64") for i in range(info.ndim)]
    bb.match_cast(bb.emit(tensor_to_shape(shape)), ShapeStructInfo(names))

    def compute(x: Any, b: Any, e: Any, s: Any, sizes: Any) -> Any:
        return te.compute(
            sizes,
            lambda *i: x(*[_dynamic_at(x, b, s, a, index) for a, index in enumerate(i)]),
            name="T_dynamic_strided_slice",
            tag="injective",
        )

    return bb.call_te(
        compute, data, begin, end, strides, list(names), primfunc_name_hint="dynamic_strided_slice"
    )


def _dynamic_at(x: Any, begin: Any, stride: Any, axis: int, index: Any) -> Any:
    first = _canonical(begin(axis), x.shape[axis], stride(axis), False)
    return index * stride(axis) + first


def _slice_shape(x: Any, begin: Any, end: Any, strides: Any) -> Any:
    def size(i: Any) -> Any:
        result: Any = tir.IntImm("int64", 0)
        for axis in range(len(x.shape)):
            b, e, s = begin(axis), end(axis), strides(axis)
            length = slice_length(b, e, s, _wide(x.shape[axis]), False)
            result = tir.if_then_else(i == axis, length, result)
        return result

    return te.compute((len(x.shape),), size, name="T_shape_func_strided_slice_dynamic")


@operator(
    "relax.dynamic_strided_slice", infer=_infer_dynamic_slice, FLegalize=_legalize_dynamic_slice,
    FDataDependent=True,
)  # fmt: skip
def dynamic_strided_slice(x: Expr, begin: Expr, end: Expr, strides: Expr) -> Expr:
    """Every so many elements along all axes, by tensors.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    begin, end, strides : relax.Expr
        The first index of each axis, the bound and the distance, tensors of int64.
    """
