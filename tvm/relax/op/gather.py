"""Elements at positions that tensors of indices say."""

from __future__ import annotations

from typing import Any

from tvm import tir, topi
from tvm.relax.expr import Call, PrimValue
from tvm.relax.struct_info import PrimStructInfo, TensorStructInfo

from .infer import (
    axis_of,
    broadcast_shape,
    check_count,
    common_vdevice,
    dims_of,
    fail,
    items_of,
    known_dims,
    made,
    prove_unequal,
    tensor,
    tensors,
    tuple_of_tensors,
)
from .operator import Expr, Tensors, operator


def require_indices(call: Call, info: TensorStructInfo) -> None:
    """Reject a tensor that is known not to be of integers."""
    if not info.dtype.is_void and not (info.dtype.is_int or info.dtype.is_uint):
        raise fail(call, f"requires indices of an integer dtype, got {info.dtype}")


def picked_shape(
    call: Call, data: TensorStructInfo, indices: list[TensorStructInfo]
) -> TensorStructInfo:
    """What one tensor of indices for each of the leading axes picks: their shape, then other axes."""
    for info in indices:
        require_indices(call, info)
    if not indices:
        raise fail(call, "requires at least one tensor of indices, got none")
    if 0 <= data.ndim < len(indices):
        raise fail(call, f"requires at most {data.ndim} tensors of indices, got {len(indices)}")
    device = common_vdevice(call, [data, *indices])
    where: Any = broadcast_shape(call, indices, "int64", device)
    if data.ndim < 0 or where.ndim < 0:
        return made(None, data.dtype, device)
    dims, places = known_dims(data), dims_of(where)
    if dims is None or places is None:
        return made(None, data.dtype, device, where.ndim + data.ndim - len(indices))
    return made([*places, *dims[len(indices) :]], data.dtype, device)


def _infer_gather_elements(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `data` and the shape of `indices`."""
    data, indices = infos = tensors(call, 2)
    require_indices(call, indices)
    device = common_vdevice(call, infos)
    if data.ndim >= 0:
        axis_of(call, call.attrs.axis, data.ndim)
    if -1 not in (data.ndim, indices.ndim) and data.ndim != indices.ndim:
        raise fail(call, f"requires tensors of one rank, got {data.ndim} and {indices.ndim}")
    if indices.shape is not None:
        return made(indices.shape, data.dtype, device)
    return made(None, data.dtype, device, max(data.ndim, indices.ndim))


@operator(
    "relax.gather_elements", "GatherElementsAttrs", infer=_infer_gather_elements,
    FLegalize=lambda bb, call: bb.call_te(
        topi.gather, call.args[0], call.attrs.axis, call.args[1],
        primfunc_name_hint="gather_elements",
    ),
)  # fmt: skip
def gather_elements(data: Expr, indices: Expr, axis: int = 0) -> Expr:
    """One element for each index along an axis.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    indices : relax.Expr
        The indices, of as many dimensions as the tensor.
    axis : int
        The axis.
    """


def _infer_gather_nd(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `data`, whose shape is that of `indices` without its last axis, then
    the axes of `data` that are not indexed."""
    data, indices = infos = tensors(call, 2)
    require_indices(call, indices)
    device, batch = common_vdevice(call, infos), call.attrs.batch_dims
    if batch < 0 or batch >= data.ndim >= 0 or batch >= indices.ndim >= 0:
        raise fail(
            call,
            f"requires batch_dims below the ranks of both tensors, {data.ndim} and {indices.ndim}, "
            f"got {batch}",
        )
    dims, places = known_dims(data), dims_of(indices)
    if data.ndim < 0 or places is None or not isinstance(places[-1], tir.IntImm):
        return made(None, data.dtype, device)
    depth = places[-1].value
    if depth > data.ndim - batch:
        raise fail(call, f"requires at most {data.ndim - batch} indices for a slice, got {depth}")
    if dims is None:
        return made(None, data.dtype, device, len(places) - 1 + data.ndim - batch - depth)
    for a, b in zip(dims[:batch], places[:batch], strict=True):
        if prove_unequal(a, b):
            raise fail(call, f"requires {batch} leading axes that agree, got {a} and {b}")
    return made([*places[:-1], *dims[batch + depth :]], data.dtype, device)


def _legalize_gather_nd(bb: Any, call: Call) -> Any:
    def compute(data: Any, indices: Any, batch_dims: int) -> Any:
        last = len(indices.shape) - 1
        moved = topi.transpose(indices, axes=[last, *range(last)])
        return topi.gather_nd(data, moved, batch_dims)

    return bb.call_te(compute, *call.args, call.attrs.batch_dims, primfunc_name_hint="gather_nd")


@operator("relax.gather_nd", "GatherNDAttrs", infer=_infer_gather_nd, FLegalize=_legalize_gather_nd)
def gather_nd(data: Expr, indices: Expr, batch_dims: int = 0) -> Expr:
    """The slices at index tuples.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    indices : relax.Expr
        The index tuples, along the last axis.
    batch_dims : int
        How many leading axes the tensor and the indices share.
    """


def _infer_index_tensor(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `data`: the shape that the indices broadcast to, then the axes of
    `data` that are not indexed."""
    check_count(call, 2)
    return picked_shape(call, tensor(call, 0), tuple_of_tensors(call, 1) or [])


@operator(
    "relax.index_tensor", infer=_infer_index_tensor,
    FLegalize=lambda bb, call: bb.call_te(
        topi.adv_index, call.args[0], items_of(call.args[1]), primfunc_name_hint="index_tensor"
    ),
)  # fmt: skip
def index_tensor(data: Expr, indices: Tensors) -> Expr:
    """The elements at one tensor of indices for each of the leading axes, as numpy has them.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    indices : list of Expr, or Expr
        The indices, which broadcast; negative ones count from the end.
    """


def _infer_one_hot(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `on_value`, which has an axis of `depth` elements more than
    `indices`."""
    check_count(call, 3)
    info, attrs = tensor(call, 0), call.attrs
    require_indices(call, info)
    kinds = []
    for value in call.args[1:]:
        number = value.struct_info
        if not isinstance(number, PrimStructInfo):
            raise fail(call, f"requires numbers as on_value and off_value, got {number}")
        kinds.append(number.dtype)
    if kinds[0] != kinds[1]:
        raise fail(call, f"requires values of one dtype, got {kinds[0]} and {kinds[1]}")
    if attrs.depth < 1:
        raise fail(call, f"requires a positive depth, got {attrs.depth}")
    dims = known_dims(info)
    if dims is None:
        return made(None, kinds[0], info.vdevice, info.ndim + 1 if info.ndim >= 0 else -1)
    axis = axis_of(call, attrs.axis, len(dims) + 1)
    new = [*dims[:axis], tir.IntImm("int64", attrs.depth), *dims[axis:]]
    return made(new, kinds[0], info.vdevice)


def _legalize_one_hot(bb: Any, call: Call) -> Any:
    values = [arg.struct_info.value for arg in call.args[1:]]
    if any([value is None for value in values]):
        return call
    return bb.call_te(
        topi.one_hot, call.args[0], *values, call.attrs.depth,
        axis_of(call, call.attrs.axis, call.struct_info.ndim), str(values[0].dtype),
        primfunc_name_hint="one_hot",
    )  # fmt: skip


def as_number(value: Any) -> Any:
    """A number as an expression, floats of 32 bits; others as they are."""
    if isinstance(value, float):
        return PrimValue(tir.const(value, "float32"))
    return PrimValue(value) if isinstance(value, (bool, int, tir.PrimExpr)) else value


@operator("relax.one_hot", "OneHotAttrs", infer=_infer_one_hot, FLegalize=_legalize_one_hot)
def one_hot(indices: Expr, on_value: Expr, off_value: Expr, depth: int, axis: int = -1) -> Expr:
    """Vectors with one value at each index, and another one elsewhere.

    Parameters
    ----------
    indices : relax.Expr
        The indices.
    on_value, off_value : PrimValue or number
        The values, of one data type.
    depth : int
        The length of the vectors.
    axis : int
        Where their axis is in the result.
    """
    return {"on_value": as_number(on_value), "off_value": as_number(off_value)}
