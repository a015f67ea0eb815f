"""Joining tensors and splitting them."""

from __future__ import annotations

from typing import Any

from tvm import tir, topi
from tvm.relax.expr import Call, Tuple
from tvm.relax.struct_info import TupleStructInfo
from tvm.tir import IntImm

from .infer import (
    axis_of,
    check_count,
    common_dtype,
    common_vdevice,
    dims_of,
    fail,
    is_number,
    items_of,
    known_dims,
    made,
    prove_equal,
    simplified,
    simplified_size,
    tensors,
    tuple_of_tensors,
)
from .operator import Attr, Expr, Tensors, as_int, operator


def _infer_concat(call: Any, bb: Any) -> Any:
    """A tensor of the operands' dtype and shape; along the axis it has the sum of their extents."""
    check_count(call, 1)
    infos = tuple_of_tensors(call, 0)
    if not infos:
        raise fail(call, "requires at least one tensor, got none")
    device, axis = common_vdevice(call, infos), call.attrs.axis
    kinds = {i.dtype for i in infos if not i.dtype.is_void}
    if len(kinds) > 1:
        raise fail(call, f"requires tensors of one dtype, got {sorted(kinds)}")
    kind = common_dtype(call, infos)
    ndims = {i.ndim for i in infos if i.ndim >= 0}
    if len(ndims) > 1:
        raise fail(call, f"requires tensors of one rank, got {sorted(ndims)}")
    if axis is None:
        if ndims and ndims != {1}:
            raise fail(call, "requires an axis for tensors of more than one dimension")
        ndims, axis = {1}, 0
    if not ndims:
        return made(None, kind, device)
    ndim = ndims.pop()
    axis = axis_of(call, axis, ndim)
    dims = [known_dims(i) for i in infos]
    _check_joined(call, [d for d in dims if d is not None], axis)
    if any([d is None for d in dims]):
        same_var = infos[0].shape is not None and len(infos) == 1
        return infos[0] if same_var else made(None, kind, device, ndim)
    if not _agree(dims, axis):
        return made(None, kind, device, ndim)
    new = list(dims[0])  # type: ignore[arg-type]
    total = dims[0][axis]  # type: ignore[index]
    for other in dims[1:]:
        total = total + other[axis]  # type: ignore[index]
    new[axis] = total
    return made(new, kind, device)


def _check_joined(call: Any, dims: Any, axis: int) -> None:
    for other in dims[1:]:
        for i, (a, b) in enumerate(zip(dims[0], other, strict=True)):
            if i != axis and is_number(a) and is_number(b) and a.value != b.value:
                raise fail(call, f"requires shapes that agree but for axis {axis}")


def _agree(dims: Any, axis: int) -> bool:
    return all(
        [
            i == axis or prove_equal(a, b)
            for other in dims[1:]
            for i, (a, b) in enumerate(zip(dims[0], other, strict=True))
        ]
    )


def _legalize_concat(bb: Any, call: Call) -> Any:
    value = call.args[0]
    fields = items_of(value)
    axis = 0 if call.attrs.axis is None else call.attrs.axis
    return bb.call_te(topi.concatenate, fields, axis)


@operator("relax.concat", "ConcatAttrs", infer=_infer_concat, FLegalize=_legalize_concat)
def concat(tensors: Tensors, axis: int | None = 0) -> Expr:
    """Tensors joined along an axis.

    Parameters
    ----------
    tensors : list of Expr, or Expr
        The tensors.
    axis : int, optional
        The axis; None flattens.
    """


def _infer_split(call: Any, bb: Any) -> Any:
    """A tuple of tensors of the dtype of `x`, which differ from its shape along the axis alone."""
    info = tensors(call, 1)[0]
    parts, axis = call.attrs.indices_or_sections, call.attrs.axis
    dims = dims_of(info)
    count = parts if isinstance(parts, int) else len(parts) + 1
    if dims is None:
        if info.ndim >= 0:
            axis_of(call, axis, info.ndim)
        return TupleStructInfo([made(None, info.dtype, info.vdevice, info.ndim)] * count)
    axis = axis_of(call, axis, info.ndim)
    return TupleStructInfo(
        [
            made([*dims[:axis], d, *dims[axis + 1 :]], info.dtype, info.vdevice)
            for d in _split_dims(dims[axis], parts)
        ]
    )


def _split_dims(dim: Any, parts: Any) -> list[Any]:
    zero = IntImm("int64", 0)
    if isinstance(parts, int):
        if parts == 1:
            return [dim]
        each = simplified(tir.ceildiv(dim, parts))
        last = simplified(dim - each * (parts - 1))
        return [*[each] * (parts - 1), last]
    ends = [*[IntImm("int64", int(p)) for p in parts], dim]
    starts = [zero, *ends[:-1]]
    found = []
    for start, end in zip(starts, ends, strict=True):
        low, high = [tir.max(tir.min(e, dim), 0) for e in (start, end)]
        found.append(simplified_size(tir.max(high - low, 0)))
    return found


def _legalize_split(bb: Any, call: Call) -> Any:
    parts = call.attrs.indices_or_sections
    if isinstance(parts, int):
        info = call.args[0].struct_info
        extent = info.dimensions[axis_of(call, call.attrs.axis, info.ndim)]
        if parts == 1:
            return Tuple([call.args[0]])
        if isinstance(extent, IntImm):
            return bb.call_te(topi.split, call.args[0], parts, call.attrs.axis)
        step = tir.ceildiv(extent, parts)
        parts = [simplified(step * k) for k in range(1, parts)]
    if not parts:
        return Tuple([call.args[0]])
    return bb.call_te(topi.split, call.args[0], list(parts), call.attrs.axis)


def _parts(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple([as_int(v) for v in value])
    return as_int(value)


@operator("relax.split", "SplitAttrs", infer=_infer_split, FLegalize=_legalize_split)
def split(x: Expr, indices_or_sections: Attr, axis: int = 0) -> Expr:
    """Parts of a tensor along an axis.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    indices_or_sections : int or tuple of int
        The number of parts, or where all but the first begin.
    axis : int
        The axis.
    """
    parts = _parts(indices_or_sections)
    if isinstance(parts, int) and parts < 1:
        raise ValueError(f"split requires a positive number of sections, got {parts}")
    return {"indices_or_sections": parts}


def _infer_stack(call: Any, bb: Any) -> Any:
    """A tensor of the operands' dtype and shape, with an axis more: their number."""
    check_count(call, 1)
    infos = tuple_of_tensors(call, 0)
    if not infos:
        raise fail(call, "requires at least one tensor, got none")
    kind, device = common_dtype(call, infos), common_vdevice(call, infos)
    ndims = {i.ndim for i in infos if i.ndim >= 0}
    if len(ndims) > 1:
        raise fail(call, f"requires tensors of one rank, got {sorted(ndims)}")
    if not ndims:
        return made(None, kind, device)
    ndim = ndims.pop() + 1
    axis = axis_of(call, call.attrs.axis, ndim)
    known = [dims for i in infos if (dims := known_dims(i)) is not None]
    if known:
        _check_joined(call, known, -1)
    if len(known) < len(infos) or not _agree(known, -1):
        return made(None, kind, device, ndim)
    new = [*known[0][:axis], IntImm("int64", len(infos)), *known[0][axis:]]
    return made(new, kind, device)


@operator(
    "relax.stack", "StackAttrs", infer=_infer_stack,
    FLegalize=lambda bb, call: bb.call_te(topi.stack, items_of(call.args[0]), call.attrs.axis),
)  # fmt: skip
def stack(tensors: Tensors, axis: int = 0) -> Expr:
    """Tensors of one shape joined along a new axis.

    Parameters
    ----------
    tensors : list of Expr, or Expr
        The tensors.
    axis : int
        Where the new axis is in the result.
    """


def _infer_meshgrid(call: Any, bb: Any) -> Any:
    """A tuple of tensors of the vectors' dtype, whose extents are those of all vectors."""
    check_count(call, 1)
    infos = tuple_of_tensors(call, 0)
    if not infos:
        raise fail(call, "requires at least one vector, got none")
    if call.attrs.indexing not in ("ij", "xy"):
        raise fail(call, f"requires an indexing of ij or xy, got {call.attrs.indexing!r}")
    kind, device = common_dtype(call, infos), common_vdevice(call, infos)
    extents: list[Any] = []
    for info in infos:
        if info.ndim not in (-1, 0, 1):
            raise fail(call, f"requires vectors, got {info}")
        dims = dims_of(info)
        extents.append(None if dims is None else (dims or (IntImm("int64", 1),))[0])
    if call.attrs.indexing == "xy":
        extents[:2] = extents[:2][::-1]
    if any([extent is None for extent in extents]):
        return TupleStructInfo([made(None, kind, device, len(infos))] * len(infos))
    return TupleStructInfo([made(extents, kind, device)] * len(infos))


@operator(
    "relax.meshgrid", "MeshgridAttrs", infer=_infer_meshgrid,
    FLegalize=lambda bb, call: bb.call_te(
        topi.meshgrid, items_of(call.args[0]), call.attrs.indexing
    ),
)  # fmt: skip
def meshgrid(tensors: Tensors, indexing: str = "ij") -> Expr:
    """The coordinates of all points of a grid, from those along its axes.

    Parameters
    ----------
    tensors : list of Expr, or Expr
        The coordinates along each axis, vectors.
    indexing : str
        ``"ij"``: the first vector runs along the first axis; ``"xy"``: along the second.
    """
