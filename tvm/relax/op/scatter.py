"""Writing elements to positions given by indices."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.relax.expr import Call
from tvm.relax.struct_info import PrimStructInfo, TensorStructInfo

from .gather import as_number, picked_shape
from .index import slice_length
from .infer import (
    axis_of,
    check_count,
    dims_of,
    fail,
    is_number,
    is_one,
    items_of,
    known_dims,
    made,
    prove_unequal,
    tensor,
    tensors,
    tuple_of_tensors,
)
from .operator import Expr, Tensors, operator


def _infer_scatter_elements(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of `data`."""
    data, indices, updates = tensors(call, 3)
    ndims = [i.ndim for i in (data, indices, updates)]
    known = {n for n in ndims if n >= 0}
    if len(known) > 1:
        raise fail(call, f"requires tensors of one rank, got {ndims}")
    if data.ndim >= 0:
        axis_of(call, call.attrs.axis, data.ndim)
    if not data.dtype.is_void and not updates.dtype.is_void and data.dtype != updates.dtype:
        raise fail(call, f"requires updates of {data.dtype}, got {updates.dtype}")
    if not indices.dtype.is_void and not indices.dtype.is_int:
        raise fail(call, f"requires indices of an integer dtype, got {indices.dtype}")
    a, b = dims_of(indices), dims_of(updates)
    if a is not None and b is not None:
        for x, y in zip(a, b, strict=True):
            if is_number(x) and is_number(y) and x.value != y.value:
                raise fail(call, "requires indices and updates of one shape")
    if dims_of(data) is not None:
        return made(data.shape, data.dtype, data.vdevice)
    return made(None, data.dtype, data.vdevice, data.ndim)


def _legalize_scatter(bb: Any, call: Any) -> Any:
    return bb.call_te(topi.scatter_elements, *call.args, call.attrs.axis, call.attrs.reduction)


@operator(
    "relax.scatter_elements",
    "ScatterElementsAttrs",
    infer=_infer_scatter_elements,
    FLegalize=_legalize_scatter,
)
def scatter_elements(
    data: Expr, indices: Expr, updates: Expr, axis: int = 0, reduction: str = "update"
) -> Expr:
    """A tensor with some elements along an axis replaced or combined.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    indices : relax.Expr
        Where along the axis.
    updates : relax.Expr
        The new elements.
    axis : int
        The axis.
    reduction : str
        ``"update"``, ``"add"``, ``"mul"``, ``"mean"``, ``"max"`` or ``"min"``.
    """


def _infer_scatter_nd(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of `data`."""
    data, indices, updates = tensors(call, 3)
    if not data.dtype.is_void and not updates.dtype.is_void and data.dtype != updates.dtype:
        raise fail(call, f"requires updates of {data.dtype}, got {updates.dtype}")
    if not indices.dtype.is_void and not indices.dtype.is_int:
        raise fail(call, f"requires indices of an integer dtype, got {indices.dtype}")
    if data.shape is not None:
        return made(data.shape, data.dtype, data.vdevice)
    return made(None, data.dtype, data.vdevice, data.ndim)


def _legalize_scatter_nd(bb: Any, call: Any) -> Any:
    def compute(data: Any, indices: Any, updates: Any, mode: str) -> Any:
        last = len(indices.shape) - 1
        moved = topi.transpose(indices, axes=[last, *range(last)])
        return topi.scatter_nd(data, moved, updates, mode)

    return bb.call_te(compute, *call.args, call.attrs.reduction, primfunc_name_hint="scatter_nd")


@operator(
    "relax.scatter_nd", "ScatterNDAttrs", infer=_infer_scatter_nd, FLegalize=_legalize_scatter_nd
)
def scatter_nd(data: Expr, indices: Expr, updates: Expr, reduction: str = "update") -> Expr:
    """A tensor with slices replaced or combined.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    indices : relax.Expr
        Of the slices, along the last axis.
    updates : relax.Expr
        The new slices.
    reduction : str
        ``"update"``, ``"add"``, ``"mul"``, ``"max"`` or ``"min"``.
    """


def _require_dtype(call: Call, data: TensorStructInfo, new: TensorStructInfo) -> None:
    if not data.dtype.is_void and not new.dtype.is_void and data.dtype != new.dtype:
        raise fail(call, f"requires new elements of {data.dtype}, got {new.dtype}")


def _infer_index_put(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of `data`."""
    check_count(call, 3)
    data, values = tensor(call, 0), tensor(call, 2)
    _require_dtype(call, data, values)
    picked = picked_shape(call, data, tuple_of_tensors(call, 1) or [])
    if picked.ndim >= 0 and values.ndim > picked.ndim:
        raise fail(call, f"requires values that broadcast to {picked}, got {values}")
    wanted, given = known_dims(picked), known_dims(values)
    for a, b in zip((wanted or ())[::-1], (given or ())[::-1], strict=False):
        if not is_one(b) and prove_unequal(a, b):
            raise fail(call, f"requires values that broadcast to {picked}, got {values}")
    return data


@operator(
    "relax.index_put", "IndexPutAttrs", infer=_infer_index_put,
    FLegalize=lambda bb, call: bb.call_te(
        topi.index_put, call.args[0], items_of(call.args[1]), call.args[2], call.attrs.accumulate,
    ),
)  # fmt: skip
def index_put(data: Expr, indices: Tensors, values: Expr, accumulate: bool = False) -> Expr:
    """A tensor with new values where one tensor of indices for each of the leading axes says.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    indices : list of Expr, or Expr
        The indices, which broadcast; negative ones count from the end.
    values : relax.Expr
        What broadcasts to the indices' shape, followed by the axes without indices.
    accumulate : bool
        Whether values are added, rather than put in the place of elements.
    """


def _infer_slice_scatter(call: Any, bb: Any) -> Any:
    """A tensor of the shape and dtype of `input_tensor`."""
    check_count(call, 5)
    data, src = tensor(call, 0), tensor(call, 1)
    _require_dtype(call, data, src)
    for arg in call.args[2:]:
        info = arg.struct_info
        if not isinstance(info, PrimStructInfo) or not info.dtype.is_int:
            raise fail(call, f"requires integers as start, end and step, got {info}")
    step = call.args[4].struct_info.value
    if is_number(step) and step.value < 1:
        raise fail(call, f"requires a positive step, got {step}")
    if -1 not in (data.ndim, src.ndim) and data.ndim != src.ndim:
        raise fail(call, f"requires tensors of one rank, got {data.ndim} and {src.ndim}")
    if data.ndim < 0:
        return data
    axis = axis_of(call, call.attrs.axis, data.ndim)
    dims, given = known_dims(data), known_dims(src)
    start, end, step = [arg.struct_info.value for arg in call.args[2:]]
    if dims is None or given is None or any([v is None for v in (start, end, step)]):
        return data
    wanted = [*dims]
    wanted[axis] = slice_length(start, end, step, dims[axis], is_inbound=False)
    if any([prove_unequal(a, b) for a, b in zip(wanted, given, strict=True)]):
        expected = made(wanted, data.dtype, data.vdevice)
        raise fail(call, f"requires the new elements {expected}, got {src}")
    return data


def _legalize_slice_scatter(bb: Any, call: Call) -> Any:
    bounds = [arg.struct_info.value for arg in call.args[2:]]
    if any([bound is None for bound in bounds]):
        return call
    return bb.call_te(topi.slice_scatter, *call.args[:2], *bounds, call.attrs.axis)


@operator(
    "relax.slice_scatter", "SliceScatterAttrs", infer=_infer_slice_scatter,
    FLegalize=_legalize_slice_scatter,
)  # fmt: skip
def slice_scatter(
    input_tensor: Expr, src: Expr, start: Expr, end: Expr, step: Expr = 1, axis: int = 0
) -> Expr:
    """A tensor with a strided slice along one axis replaced.

    Parameters
    ----------
    input_tensor : relax.Expr
        The tensor.
    src : relax.Expr
        The new elements of the slice.
    start, end, step : int, PrimExpr or PrimValue
        The slice; negative bounds count from the end.
    axis : int
        The axis.
    """
    bounds = {"start": start, "end": end, "step": step}
    return {name: as_number(value) for name, value in bounds.items()}
