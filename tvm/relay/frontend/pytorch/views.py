"""Writing through views: what an in-place operator on a view changes in the tensor behind it.

y = x[:, 1:]            y1 = relu(strided_slice(x))
y.relu_()       ->      x1 = concatenate(x[:, :1], y1)
return x                return x1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape

from .dynamic_shapes import (
    cut,
    index_from_front,
    is_dynamic,
    size_of,
    sizes_of,
    slice_bounds,
    with_known,
)
from .registry import CONVERTERS, as_ints, as_number, is_tensor

# from the tensor behind a view, the view's new value and the view's arguments: the new tensor
Put = Callable[..., RelayExpr]


@dataclass(frozen=True)
class View:
    """A value that shares memory with another."""

    base: str
    node: Any
    put: Put | None  # None if writing through it is not supported
    piece: int | None = None  # which one of the results of the node


@dataclass(frozen=True)
class Stale:
    """A value that was written to through a view that is not supported."""

    kind: str


def views_of(node: Any) -> dict[str, View]:
    """How outputs of a node share memory with its first input, by their names."""
    kind = node.kind().removeprefix("aten::")
    inputs = list(node.inputs())
    if kind == "prim::ListUnpack" and inputs[0].node().kind().removeprefix("aten::") in _LISTS:
        split = inputs[0].node()
        base, kind = next(iter(split.inputs())).debugName(), split.kind().removeprefix("aten::")
        return {
            value.debugName(): View(base, split, _put_of_piece(kind, i), i)
            for i, value in enumerate(node.outputs())
        }
    if not inputs or inputs[0].type().kind() != "TensorType" or node.outputsSize() != 1:
        return {}
    view = View(inputs[0].debugName(), node, _put_of(kind, node, inputs[0]))
    shares = view.put is not None or kind in _WITHOUT_PUT
    return {node.output().debugName(): view} if shares else {}


def _put_of(kind: str, node: Any, base: Any) -> Put | None:
    if kind.endswith("_") and not kind.endswith("__"):
        return put_same
    if kind in _COPIES_IF_STRIDED and not is_contiguous(base):
        return None
    if kind in _SAME_IF_TYPE and _scalar(base) != _scalar(node.output()):
        return None
    return _PUTS.get(kind)


def as_written(old: Any, new: RelayExpr) -> RelayExpr:
    """The value of an in-place operator: the element type and the shape stay."""
    if not isinstance(old, RelayExpr):
        return new
    if infer_dtype(new) != infer_dtype(old):
        new = _op.cast(new, infer_dtype(old))
    if is_dynamic(old) or is_dynamic(new):
        return _op.broadcast_to_like(new, old)
    shape = infer_shape(old)
    return new if infer_shape(new) == shape else _op.broadcast_to(new, shape)


def is_contiguous(value: Any) -> bool:
    """Whether the trace says nothing else than that elements lie in order."""
    kind = value.type()
    strides = kind.strides() if kind.kind() == "TensorType" else None
    sizes = kind.sizes() if strides is not None else None
    if strides is None or sizes is None:
        return _is_made_in_order(value)
    expected = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _is_made_in_order(value: Any) -> bool:
    """Whether elements lie in order, going by the operators that made a value."""
    node = value.node()
    kind = node.kind().removeprefix("aten::")
    if kind in _REORDER:
        return False
    inputs = list(node.inputs())
    if kind in ("slice", "select", "narrow") and inputs[1].toIValue() != 0:
        return False
    if kind == "slice" and inputs[4].toIValue() != 1:
        return False
    is_view = kind in _PUTS or (kind.endswith("_") and not kind.endswith("__"))
    return not is_view or kind in _COPIES_IF_STRIDED or _is_made_in_order(inputs[0])


def _scalar(value: Any) -> Any:
    kind = value.type()
    return kind.scalarType() if kind.kind() == "TensorType" else None


def put_same(base: RelayExpr, value: RelayExpr, *_: Any) -> RelayExpr:
    """The very same memory."""
    return value


def _put_reshaped(base: RelayExpr, value: RelayExpr, *_: Any) -> RelayExpr:
    return _op.reshape(value, infer_shape(base))


def _put_turned(kind: str) -> Put:
    """Through a view that is its own inverse."""
    return lambda base, value, *args: CONVERTERS[f"aten::{kind}"](value, *args)


def _put_permuted(base: RelayExpr, value: RelayExpr, dims: Any) -> RelayExpr:
    rank = len(infer_shape(base))
    order = [axis % rank for axis in as_ints(dims)]
    return _op.transpose(value, np.argsort(order).tolist())


def put_slice(
    base: RelayExpr, value: RelayExpr, dim: Any = 0, start: Any = None, end: Any = None,
    step: Any = 1,
) -> RelayExpr:  # fmt: skip
    """``base`` with a value in a slice of an axis."""
    shape = infer_shape(base)
    axis = as_number(dim) % len(shape)
    bounds = slice(as_number(start), as_number(end), as_number(step))
    if is_dynamic(base) or is_tensor(bounds.start) or is_tensor(bounds.stop):
        return _put_dynamic_slice(base, value, axis, bounds)
    return put_at(base, value, axis, range(shape[axis])[bounds])


def _put_narrow(base: RelayExpr, value: RelayExpr, dim: int, start: Any, size: Any) -> RelayExpr:
    first = as_number(start) % max(infer_shape(base)[dim], 1)
    return put_slice(base, value, dim, first, first + as_number(size))


def put_selected(base: RelayExpr, value: RelayExpr, dim: Any, index: Any) -> RelayExpr:
    """``base`` with a value at one index of an axis."""
    shape = infer_shape(base)
    axis = as_number(dim) % len(shape)
    position, value = as_number(index), _op.expand_dims(value, axis)
    if is_dynamic(base) or is_tensor(position):
        size = size_of(base, axis)
        chosen = _op.equal(_numbers_below(size), index_from_front(position, size))
        return _op.where(_op.reshape(chosen, (-1, *[1] * (len(shape) - axis - 1))), value, base)
    position %= shape[axis]
    return put_at(base, value, axis, range(position, position + 1))


def _numbers_below(size: Any) -> RelayExpr:
    if not is_tensor(size):
        return constant(np.arange(size), "int64")
    return _op.arange(constant(0, "int64"), size, constant(1, "int64"), "int64")


def _put_dynamic_slice(base: RelayExpr, value: RelayExpr, axis: int, bounds: slice) -> RelayExpr:
    """Joined of what is before, the value, and what is behind."""
    if bounds.step not in (None, 1):
        raise TVMError(
            f"writing to every {bounds.step}th element requires sizes known at import",
            hint="write the model without in-place operators there",
        )
    first, last = slice_bounds(base, axis, bounds.start, bounds.stop)
    parts = [cut(base, axis, 0, first, 1), value, cut(base, axis, last, None, 1)]
    return with_known(_op.concatenate(parts, axis), sizes_of(base))


def put_at(base: RelayExpr, value: RelayExpr, axis: int, positions: range) -> RelayExpr:
    """``base`` with ``value`` at some positions along an axis."""
    shape = infer_shape(base)
    if len(positions) in (0, shape[axis]):
        return value if len(positions) and positions.step > 0 else base
    if positions.step == 1:
        parts = [
            _cut(base, axis, 0, positions.start),
            value,
            _cut(base, axis, positions.stop, None),
        ]
        return _op.concatenate([part for part in parts if part is not None], axis)
    source = np.arange(shape[axis])
    source[list(positions)] = shape[axis] + np.arange(len(positions))
    return _op.take(_op.concatenate([base, value], axis), constant(source), axis)


def _cut(x: RelayExpr, axis: int, start: int, stop: int | None) -> RelayExpr | None:
    shape = infer_shape(x)
    begin, end = [0] * len(shape), list(shape)
    begin[axis], end[axis] = start, shape[axis] if stop is None else stop
    if begin[axis] >= end[axis]:
        return None
    return _op.strided_slice(x, begin, end, [1] * len(shape))


def _put_of_piece(kind: str, index: int) -> Put | None:
    """How writing to one piece of a tensor that was split changes the tensor."""

    def put(base: RelayExpr, value: RelayExpr, sizes: Any = 0, dim: Any = 0) -> RelayExpr:
        if kind == "unbind":
            return put_selected(base, value, sizes, index)
        axis = as_number(dim) % len(infer_shape(base))
        if isinstance(sizes, (list, tuple)):
            first = sum(as_ints(sizes[:index]))
        elif kind == "chunk":
            first = index * -(-infer_shape(base)[axis] // as_number(sizes))
        else:
            first = index * as_number(sizes)
        return put_slice(base, value, axis, first, first + infer_shape(value)[axis])

    return None if kind == "tensor_split" else put


_PUTS: dict[str, Put] = {
    **dict.fromkeys(("alias", "detach", "dropout", "contiguous", "to", "type_as"), put_same),
    **dict.fromkeys(("feature_dropout", "alpha_dropout", "positive"), put_same),
    **dict.fromkeys(("view", "reshape", "view_as", "reshape_as", "flatten"), _put_reshaped),
    **dict.fromkeys(("unflatten", "squeeze", "unsqueeze"), _put_reshaped),
    **{kind: _put_turned(kind) for kind in ("transpose", "swapaxes", "swapdims", "t", "numpy_T")},
    "permute": _put_permuted,
    "slice": put_slice, "narrow": _put_narrow, "select": put_selected,
}  # fmt: skip
_REORDER = {
    "transpose", "swapaxes", "swapdims", "t", "numpy_T", "permute", "movedim", "moveaxis", "expand",
    "expand_as", "broadcast_to", "unfold", "diagonal", "as_strided",
}  # fmt: skip
_COPIES_IF_STRIDED = {"reshape", "reshape_as", "flatten", "contiguous"}
_SAME_IF_TYPE = {"to", "type_as"}
_WITHOUT_PUT = {
    "expand", "expand_as", "broadcast_to", "movedim", "diagonal", "as_strided", "unfold",
}  # fmt: skip
_LISTS = {"chunk", "split", "split_with_sizes", "tensor_split", "unbind"}
