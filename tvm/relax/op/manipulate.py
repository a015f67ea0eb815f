"""Shapes, layouts and parts of tensors."""

from __future__ import annotations

from typing import Any

from tvm import te, tir, topi
from tvm.error import TypeCheckError
from tvm.ir.expr import RelayExpr
from tvm.relax.expr import Call, PrimValue, ShapeExpr, Var
from tvm.relax.struct_info import (
    TensorStructInfo,
)
from tvm.support.later import names_from_above
from tvm.tir import IntImm
from tvm.tir.index_map import IndexMap

from .infer import (
    axes_of,
    check_count,
    dims_of,
    fail,
    is_number,
    is_one,
    known_dims,
    made,
    product,
    shape_argument,
    simplified,
    tensor,
    tensors,
)
from .legalize import topi_call
from .operator import Attr, Expr, Ints, Shape, operator

# ---- broadcasting


def _infer_broadcast_to(call: Any, bb: Any) -> Any:
    """A tensor of the given shape and the dtype of `x`."""
    check_count(call, 2)
    info, shape = tensor(call, 0), shape_argument(call, 1)
    if shape.ndim >= 0 and info.ndim > shape.ndim:
        raise fail(call, f"requires a shape of {info.ndim} dimensions or more, got {shape}")
    old, new = known_dims(info), shape.values
    if old is not None and new is not None:
        for a, b in zip(old[::-1], new[::-1], strict=False):
            if is_number(a) and is_number(b) and not is_one(a) and a.value != b.value:
                raise fail(call, f"requires a shape that {info} broadcasts to, got {shape}")
    return TensorStructInfo(call.args[1], info.dtype, info.vdevice)


@operator("relax.broadcast_to", infer=_infer_broadcast_to, FLegalize=topi_call(topi.broadcast_to))
def broadcast_to(x: Expr, shape: Shape) -> Expr:
    """A tensor repeated along axes of one element.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    shape : tuple of PrimExpr, or Expr
        The shape of the result.
    """


def _collapsed(call: Any, info: Any, dims: Any) -> None:
    """Reject a shape that a tensor does not collapse to."""
    old = known_dims(info)
    if dims is not None and 0 <= info.ndim < len(dims):
        raise fail(call, f"requires a shape of at most {info.ndim} dimensions")
    if old is None or dims is None:
        return
    for a, b in zip(old[::-1], dims[::-1], strict=False):
        if is_number(a) and is_number(b) and not is_one(b) and a.value != b.value:
            raise fail(call, f"requires a shape that broadcasts to {info}")


def _infer_collapse_sum_like(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `data` and the second operand's shape."""
    info, target = tensors(call, 2)
    _collapsed(call, info, known_dims(target))
    if target.shape is not None:
        return made(target.shape, info.dtype, info.vdevice)
    return made(None, info.dtype, info.vdevice, target.ndim)


@operator(
    "relax.collapse_sum_like",
    infer=_infer_collapse_sum_like,
    FLegalize=lambda bb, call: bb.call_te(
        topi.collapse_sum,
        call.args[0],
        call.args[1].struct_info.shape,
        primfunc_name_hint="collapse_sum_like",
    ),
)
def collapse_sum_like(data: Expr, collapse_target: Expr) -> Expr:
    """Sums along the axes that a tensor would be broadcast along.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    collapse_target : relax.Expr
        The tensor whose shape the result has.
    """


def _infer_collapse_sum_to(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `data` and the given shape."""
    check_count(call, 2)
    info, shape = tensor(call, 0), shape_argument(call, 1)
    _collapsed(call, info, shape.values)
    return TensorStructInfo(call.args[1], info.dtype, info.vdevice)


@operator(
    "relax.collapse_sum_to",
    infer=_infer_collapse_sum_to,
    FLegalize=topi_call(topi.collapse_sum, "collapse_sum"),
)
def collapse_sum_to(data: Expr, shape: Shape) -> Expr:
    """Sums along the axes that a shape would be broadcast along.

    Parameters
    ----------
    data : relax.Expr
        The tensor.
    shape : tuple of PrimExpr, or Expr
        The shape of the result.
    """


# ---- axes


def _infer_expand_dims(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `x`, with dimensions of extent 1 more."""
    info = tensors(call, 1)[0]
    axes = call.attrs.axis
    if not axes:
        return info
    if info.ndim < 0:
        return made(None, info.dtype, info.vdevice)
    ndim = info.ndim + len(axes)
    found = axes_of(call, axes, ndim)
    dims = dims_of(info)
    if dims is None:
        return made(None, info.dtype, info.vdevice, ndim)
    rest = iter(dims)
    new = [IntImm("int64", 1) if i in found else next(rest) for i in range(ndim)]
    return made(new, info.dtype, info.vdevice)


def _legalize_expand_dims(bb: Any, call: Call) -> Any:
    axes = [a % call.struct_info.ndim for a in call.attrs.axis]

    def expand(x: Any, axis: Any) -> Any:
        for a in sorted(axis):
            x = topi.expand_dims(x, a)
        return x

    return bb.call_te(expand, call.args[0], axes, primfunc_name_hint="expand_dims")


@operator(
    "relax.expand_dims",
    "ExpandDimsAttrs",
    infer=_infer_expand_dims,
    FLegalize=_legalize_expand_dims,
)
def expand_dims(x: Expr, axis: Ints) -> Expr:
    """New axes of one element.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    axis : int or list of int
        Where they are in the result.
    """


def _infer_flatten(call: Any, bb: Any) -> Any:
    """A vector of the dtype of `x`, with as many elements."""
    info = tensors(call, 1)[0]
    if info.ndim == 0:
        return made((1,), info.dtype, info.vdevice)
    if info.ndim == 1:
        return info
    dims = dims_of(info)
    if dims is None:
        return made(None, info.dtype, info.vdevice, 1)
    return made((simplified(product(dims)),), info.dtype, info.vdevice)


def _legalize_reshape(bb: Any, call: Call) -> Any:
    shape: Any = call.struct_info.shape
    return bb.call_te(topi.reshape, call.args[0], shape, primfunc_name_hint="reshape")


@operator("relax.flatten", infer=_infer_flatten, FLegalize=_legalize_reshape)
def flatten(x: Expr) -> Expr:
    """All elements along one axis.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    """


def _infer_permute(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `x`, its dimensions in the order of `axes`; without axes the other
    way round."""
    info = tensors(call, 1)[0]
    axes = call.attrs.axes
    if axes is None:
        if info.ndim in (0, 1):
            return info
        order = list(range(info.ndim))[::-1] if info.ndim >= 0 else None
    else:
        if info.ndim >= 0 and len(axes) != info.ndim:
            raise fail(call, f"requires {info.ndim} axes, got {list(axes)}")
        order = axes_of(call, axes, info.ndim if info.ndim >= 0 else len(axes))
        if order == sorted(order):
            return info
    dims = dims_of(info)
    if dims is None or order is None:
        ndim = info.ndim if axes is None else len(axes)
        return made(None, info.dtype, info.vdevice, ndim)
    return made([dims[i] for i in order], info.dtype, info.vdevice)


@operator(
    "relax.permute_dims",
    "PermuteDimsAttrs",
    infer=_infer_permute,
    FLegalize=topi_call(topi.transpose, "transpose", "axes"),
)
def permute_dims(x: Expr, axes: Ints = None) -> Expr:
    """The axes in another order.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    axes : list of int, optional
        The axes in their new order; by default reversed.
    """


def _infer_squeeze(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `x` without the dimensions that are left out."""
    info = tensors(call, 1)[0]
    axes = call.attrs.axis
    if info.ndim < 0:
        return made(None, info.dtype, info.vdevice)
    dims = known_dims(info)
    if axes is None:
        if dims is None:
            return made(None, info.dtype, info.vdevice)
        gone = [i for i, d in enumerate(dims) if is_one(d)]
    else:
        gone = axes_of(call, axes, info.ndim)
        for i in gone:
            if dims is not None and is_number(dims[i]) and not is_one(dims[i]):
                raise fail(call, f"requires axes of one element, axis {i} of {info} is not")
    if not gone and info.shape is not None:
        return info
    if dims is None:
        return made(None, info.dtype, info.vdevice, info.ndim - len(gone))
    return made([d for i, d in enumerate(dims) if i not in gone], info.dtype, info.vdevice)


@operator(
    "relax.squeeze",
    "SqueezeAttrs",
    infer=_infer_squeeze,
    FLegalize=topi_call(topi.squeeze, "squeeze", "axis"),
)
def squeeze(x: Expr, axis: Ints = None) -> Expr:
    """A tensor without axes of one element.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    axis : int or list of int, optional
        The axes; by default all that have one element.
    """


def _infer_reshape(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `x` and the given shape."""
    check_count(call, 2)
    info, shape = tensor(call, 0), shape_argument(call, 1)
    old, new = known_dims(info), shape.values
    if old is not None and new is not None:
        before, after = simplified(product(old)), simplified(product(new))
        if is_number(before) and is_number(after) and before.value != after.value:
            raise fail(call, f"requires a shape of {before.value} elements, got {shape}")
    given = call.args[1]
    bound = bb.lookup_binding(given) if isinstance(given, Var) else None
    target = bound if isinstance(bound, ShapeExpr) else given
    return TensorStructInfo(target, info.dtype, info.vdevice)


def _completed(x: RelayExpr, shape: Any) -> Any:
    """A shape in which -1 is what is left of the elements, and 0 the dimension of the tensor."""
    if not isinstance(shape, (list, tuple, ShapeExpr)):
        return shape
    items = list(shape)
    values = [getattr(i, "value", i) if isinstance(i, IntImm) else i for i in items]
    if not any([isinstance(v, int) and v <= 0 for v in values]):
        return ShapeExpr(items)
    info = x.struct_info_
    dims = dims_of(info) if isinstance(info, TensorStructInfo) else None
    new: list[Any] = []
    rest = None
    for i, v in enumerate(values):
        if isinstance(v, int) and v == -1:
            if rest is not None:
                raise TypeCheckError("reshape requires at most one dimension of -1")
            rest = i
            new.append(IntImm("int64", 1))
        elif isinstance(v, int) and v == 0:
            if dims is None or i >= len(dims):
                raise TypeCheckError(
                    "reshape requires a known dimension where the new shape says 0"
                )
            new.append(dims[i])
        elif isinstance(v, int) and v < -1:
            raise TypeCheckError(f"reshape requires dimensions of -1 or more, got {v}")
        else:
            new.append(v if isinstance(v, tir.PrimExpr) else IntImm("int64", v))
    if rest is not None:
        if dims is None:
            raise TypeCheckError("reshape requires a tensor of known shape where a dimension is -1")
        total, known = simplified(product(dims)), simplified(product(new))
        left = simplified(tir.floordiv(total, known))
        if is_number(total) and is_number(known) and total.value % max(known.value, 1):
            raise TypeCheckError(f"reshape requires a divisor of {total}, got {known}")
        new[rest] = left
    return ShapeExpr(new)


@operator("relax.reshape", infer=_infer_reshape, FLegalize=_legalize_reshape)
def reshape(x: Expr, shape: Shape) -> Expr:
    """The elements in another shape.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    shape : tuple of PrimExpr, or Expr
        The shape; -1 is what is left, 0 the dimension of the tensor.
    """
    return {"shape": _completed(x, shape)}


# ---- layouts


def _infer_layout(call: Any, bb: Any) -> Any:
    """A tensor of the dtype of `x` and the shape that the index map gives."""
    info = tensors(call, 1)[0]
    index_map, pad = call.attrs.index_map, call.attrs.pad_value
    if pad is not None and not info.dtype.is_void and pad.value.dtype != info.dtype:
        raise fail(call, f"requires a pad_value of {info.dtype}, got {pad.value.dtype}")
    rank = len(index_map.initial_indices)
    if 0 <= info.ndim != rank:
        raise fail(call, f"requires a tensor of {rank} dimensions, got {info}")
    dims = dims_of(info)
    if dims is None:
        return made(None, info.dtype, info.vdevice, len(index_map.final_indices))
    return made(index_map.map_shape(list(dims)), info.dtype, info.vdevice)


def _legalize_layout(bb: Any, call: Call) -> Any:
    index_map, pad = call.attrs.index_map, call.attrs.pad_value

    def compute(x: Any) -> Any:
        inverse, is_padding = index_map.non_surjective_inverse(x.shape)

        def element(*indices: Any) -> Any:
            found = x(*inverse.map_indices(indices))
            if isinstance(is_padding, IntImm):
                return found
            fill = tir.const(0, x.dtype) if pad is None else pad.value
            variables = dict(zip(inverse.initial_indices, indices, strict=True))
            return tir.if_then_else(tir.stmt_functor.substitute(is_padding, variables), fill, found)

        return te.compute(index_map.map_shape(x.shape), element, name="te_layout_transform")

    return bb.call_te(compute, call.args[0], primfunc_name_hint="te_layout_transform")


@operator(
    "relax.layout_transform",
    "LayoutTransformAttrs",
    infer=_infer_layout,
    FLegalize=_legalize_layout,
)
def layout_transform(
    x: Expr,
    index_map: Attr,
    pad_value: Attr = None,
    axis_separators: Attr = None,
    input_axis_separators: Attr = None,
) -> Expr:
    """The elements in another layout.

    Parameters
    ----------
    x : relax.Expr
        The tensor.
    index_map : callable or IndexMap
        From indices to new ones.
    pad_value : number, optional
        What fills elements that the tensor does not have.
    axis_separators, input_axis_separators : list of int, optional
        Where axes of the memory begin.
    """
    if callable(index_map) and not isinstance(index_map, IndexMap):
        index_map = IndexMap.from_func(index_map, index_dtype="int64")
    info = x.struct_info_
    if pad_value is not None and not isinstance(pad_value, PrimValue):
        kind = getattr(info, "dtype", None)
        value = pad_value
        if isinstance(value, (int, float)) and kind is not None and not kind.is_void:
            value = tir.const(value, kind)
        pad_value = PrimValue(value)
    return {
        "index_map": index_map,
        "pad_value": pad_value,
        "axis_separators": tuple(axis_separators or ()),
        "input_axis_separators": tuple(input_axis_separators or ()),
    }


__getattr__ = names_from_above(__name__)
