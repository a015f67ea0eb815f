"""Gradients of operators that move elements, and of products, whose other factors count.

Where an operator moves elements to places that its own call on their numbers tells, the gradient
goes back to these places.
"""

from __future__ import annotations

import numpy as np

from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TupleType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Tuple, TupleGetItem, const, field_of, fields_of

from .gradients import filled_gradient
from .known_shapes import known_shape
from .reduce import reduced_axes
from .registry import ops

Gradients = list[RelayExpr]


def _numbers(shape: tuple[int, ...]) -> RelayExpr:
    """The elements' places in row-major order."""
    return const(np.arange(int(np.prod(shape)), dtype="int64").reshape(shape))


def _flat(expr: RelayExpr) -> RelayExpr:
    return ops.reshape(expr, newshape=(-1,))


def _added(grad: RelayExpr, places: RelayExpr, count: int) -> RelayExpr:
    """`count` sums of the elements of a gradient that stand for each place."""
    dtype = infer_type_of(grad).dtype
    none = ops.zeros(shape=(count,), dtype=dtype)
    return ops.scatter_elements(none, _flat(places), _flat(grad), axis=0, reduction="add")


def _sort(call: Call, grad: RelayExpr) -> Gradients:
    data, attrs = call.args[0], call.attrs
    order = ops.argsort(data, axis=attrs.axis, is_ascend=attrs.is_ascend, dtype="int64")
    return [
        ops.scatter_elements(ops.zeros_like(data), order, grad, axis=attrs.axis, reduction="add")
    ]


def _topk(call: Call, grad: RelayExpr) -> Gradients:
    data, attrs = call.args[0], call.attrs
    if attrs.ret_type == "indices":
        return [ops.zeros_like(data)]
    order = Call(ops.topk, (data,), attrs.replace(ret_type="indices", dtype="int64"))
    if attrs.ret_type == "both":
        grad = field_of(grad, 0)
    return [
        ops.scatter_elements(ops.zeros_like(data), order, grad, axis=attrs.axis, reduction="add")
    ]


def _adv_index(call: Call, grad: RelayExpr) -> Gradients:
    whole = call.args[0]
    ty = infer_type_of(whole)
    assert isinstance(ty, TupleType)
    fields = fields_of(whole, len(ty.fields))
    shape = known_shape(fields[0], "adv_index")
    places = ops.adv_index(Tuple([_numbers(shape), *fields[1:]]))
    total = _added(grad, places, int(np.prod(shape)))
    return [
        Tuple(
            [
                ops.reshape(total, newshape=shape, allowzero=True),
                *[ops.zeros_like(f) for f in fields[1:]],
            ]
        )
    ]


def _sliding_window(call: Call, grad: RelayExpr) -> Gradients:
    shape = known_shape(call.args[0], "sliding_window")
    places = Call(ops.sliding_window, (_numbers(shape),), call.attrs)
    return [ops.reshape(_added(grad, places, int(np.prod(shape))), newshape=shape, allowzero=True)]


def _set(call: Call, grad: RelayExpr) -> Gradients:
    to_data, to_values = _replaced(call, grad, call.args[1])
    return [to_data, to_values, *[ops.zeros_like(argument) for argument in call.args[2:]]]


def _replaced(call: Call, grad: RelayExpr, values: RelayExpr) -> tuple[RelayExpr, RelayExpr]:
    """Of data of which a part is replaced: what stands there belongs to the values."""
    shape, given = [known_shape(x, call.op.name) for x in (call.args[0], values)]
    count = int(np.prod(given))
    own = const(np.full(shape, -1, "int64"))
    rest = [_numbers(given) if arg is values else arg for arg in call.args[1:]]
    places = Call(call.op, (own, *rest), call.attrs)
    is_own = ops.less(places, const(0, "int64"))
    # the elements of the data are added behind those of the values
    total = _added(grad, ops.where(is_own, const(count, "int64"), places), count + 1)
    to_values = ops.strided_slice(total, begin=(0,), end=(count,))
    return (
        ops.where(is_own, grad, ops.zeros_like(grad)),
        ops.reshape(to_values, newshape=given, allowzero=True),
    )


def _gather_nd(call: Call, grad: RelayExpr) -> Gradients:
    data, indices = call.args
    shape = known_shape(data, "gather_nd")
    if call.attrs.batch_dims == 0:
        return [
            ops.scatter_nd(ops.zeros_like(data), indices, grad, mode="add"),
            ops.zeros_like(indices),
        ]
    places = Call(ops.gather_nd, (_numbers(shape), indices), call.attrs)
    total = _added(grad, places, int(np.prod(shape)))
    return [ops.reshape(total, newshape=shape, allowzero=True), ops.zeros_like(indices)]


def _scatter_elements(call: Call, grad: RelayExpr) -> Gradients:
    data, indices, updates = call.args
    if call.attrs.reduction == "update":
        to_data, to_updates = _replaced(call, grad, updates)
        return [to_data, ops.zeros_like(indices), to_updates]
    _check_added(call, "reduction")
    axis = call.attrs.axis
    dtype, extent = infer_type_of(indices).dtype, known_shape(data, "scatter_elements")[axis]
    from_front = ops.where(
        ops.less(indices, const(0, dtype)), ops.add(indices, const(extent, dtype)), indices
    )  # fmt: skip
    return [grad, ops.zeros_like(indices), ops.gather(grad, from_front, axis=axis)]


def _scatter_nd(call: Call, grad: RelayExpr) -> Gradients:
    indices = call.args[1]
    if call.attrs.mode == "update":
        to_data, to_updates = _replaced(call, grad, call.args[2])
        return [to_data, ops.zeros_like(indices), to_updates]
    _check_added(call, "mode")
    return [grad, ops.zeros_like(indices), ops.gather_nd(grad, indices)]


def _check_added(call: Call, name: str) -> None:
    mode = getattr(call.attrs, name)
    if mode != "add":
        raise OpNotImplemented(
            f"the gradient of {call.op.name} requires the {name} add or update, got {mode!r}"
        )


def _meshgrid(call: Call, grad: RelayExpr) -> Gradients:
    ty = infer_type_of(call)
    assert isinstance(ty, TupleType)
    count = len(ty.fields)
    order = list(range(count))
    if call.attrs.indexing == "xy" and count > 1:
        order[:2] = 1, 0
    sums = [
        ops.sum(field, axis=tuple([a for a in range(count) if a != order[i]]))
        for i, field in enumerate(fields_of(grad, count))
    ]
    source = infer_type_of(call.args[0])
    assert isinstance(source, TupleType)
    return [
        Tuple([ops.reshape(s, newshape=t.concrete_shape) for s, t in zip(sums, source.fields, strict=True)])  # type: ignore[attr-defined]
    ]  # fmt: skip


def _reverse_sequence(call: Call, grad: RelayExpr) -> Gradients:
    lengths = call.args[1]
    return [Call(ops.reverse_sequence, (grad, lengths), call.attrs), ops.zeros_like(lengths)]


def _prod(call: Call, grad: RelayExpr) -> Gradients:
    """Each element's slope is the product of those before it and those behind it."""
    data = call.args[0]
    shape = known_shape(data, "prod")
    over = reduced_axes(call.attrs, len(shape))
    kept = tuple([a for a in range(len(shape)) if a not in over])
    order = (*kept, *over)
    rest = tuple([shape[a] for a in kept])
    count = int(np.prod([shape[a] for a in over]))
    rows = ops.reshape(ops.transpose(data, axes=order) if order else data, newshape=(*rest, count))
    axis = len(rest)
    before = ops.cumprod(rows, axis=axis, exclusive=True)
    behind = ops.reverse(
        ops.cumprod(ops.reverse(rows, axis=axis), axis=axis, exclusive=True), axis=axis
    )
    slope = ops.multiply(ops.multiply(before, behind), ops.reshape(grad, newshape=(*rest, 1)))
    found = ops.reshape(slope, newshape=tuple([shape[a] for a in order]))
    back = tuple([order.index(a) for a in range(len(shape))])
    return [ops.transpose(found, axes=back) if back else found]


def _cumprod(call: Call, grad: RelayExpr) -> Gradients:
    """The slope of product i by element k is that of the other elements, zeros among them or not."""
    data, attrs = call.args[0], call.attrs
    shape = known_shape(data, "cumprod")
    lines = shape if attrs.axis is not None else (int(np.prod(shape)),)
    axis = 0 if attrs.axis is None else attrs.axis % len(lines)
    rank, extent = len(lines), lines[axis]
    order = (*[a for a in range(rank) if a != axis], axis)
    rows = ops.transpose(ops.reshape(data, newshape=lines), axes=order)
    given = ops.transpose(ops.reshape(ops.cast_like(grad, data), newshape=lines), axes=order)
    spread = ops.expand_dims(rows, axis=rank - 1, num_newaxis=1)
    others = ops.where(const(np.eye(extent, dtype=bool)), ops.ones_like(spread), spread)
    slopes = ops.cumprod(others, axis=rank, exclusive=attrs.exclusive)
    behind = ops.trilu(slopes, const(1 if attrs.exclusive else 0, "int32"), upper=True)
    total = ops.sum(
        ops.multiply(behind, ops.expand_dims(given, axis=rank - 1, num_newaxis=1)), axis=(rank,)
    )
    back = tuple([order.index(a) for a in range(rank)])
    return [ops.reshape(ops.transpose(total, axes=back), newshape=shape, allowzero=True)]


def _dft(call: Call, grad: RelayExpr) -> Gradients:
    """The adjoint of a transform is the other one, but for the factor of the inverse."""
    count = known_shape(call.args[0], "dft")[-1]
    is_inverse = call.attrs.inverse
    back = Call(ops.dft, tuple(fields_of(grad, 2)), call.attrs.replace(inverse=not is_inverse))
    factor = const(1 / max(count, 1) if is_inverse else count, infer_type_of(call.args[0]).dtype)
    return [ops.multiply(TupleGetItem(back, i), factor) for i in range(2)]


for _op, _gradient in (
    (ops.adv_index, _adv_index),
    (ops.cumprod, _cumprod),
    (ops.dft, _dft),
    (ops.gather_nd, _gather_nd),
    (ops.matrix_set_diag, _set),
    (ops.meshgrid, _meshgrid),
    (ops.prod, _prod),
    (ops.reverse_sequence, _reverse_sequence),
    (ops.scatter_elements, _scatter_elements),
    (ops.scatter_nd, _scatter_nd),
    (ops.sliding_window, _sliding_window),
    (ops.sort, _sort),
    (ops.strided_set, _set),
    (ops.topk, _topk),
):
    _op.set_facets(gradient=_gradient)

# what these give does not depend on the elements continuously
_STEPS: tuple[Op, ...] = (
    ops.all, ops.any, ops.argmax, ops.argmin, ops.argsort, ops.bitwise_not, ops.invert_permutation, ops.isfinite, ops.isinf, ops.isnan,
    ops.logical_not, ops.ndarray_size, ops.searchsorted, ops.unravel_index,
)  # fmt: skip
for _op in _STEPS:
    _op.set_facets(gradient=filled_gradient)
