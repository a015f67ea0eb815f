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

from .algorithm import ARGSORT, SEARCHSORTED, SORT, TOPK
from .binary import ADD, LESS, MULTIPLY
from .compositions import sliced
from .creation import NDARRAY_SIZE, ZEROS
from .gradients import filled_gradient, known_shape
from .indexing import GATHER, GATHER_ND, STRIDED_SLICE, TRILU, WHERE
from .joining import CONCATENATE, MESHGRID
from .nn.special import FIFO_BUFFER
from .reduce import ALL, ANY, ARGMAX, ARGMIN, PROD, SUM, reduced_axes
from .scan import CUMPROD
from .scatter import SCATTER_ELEMENTS, SCATTER_ND
from .sequence import MATRIX_SET_DIAG, REVERSE_SEQUENCE, SLIDING_WINDOW
from .setting import ADV_INDEX, INVERT_PERMUTATION, STRIDED_SET, UNRAVEL_INDEX
from .shaping import EXPAND_DIMS, RESHAPE, REVERSE, TRANSPOSE
from .signal import DFT
from .unary import (
    BITWISE_NOT,
    CAST_LIKE,
    ISFINITE,
    ISINF,
    ISNAN,
    LOGICAL_NOT,
    ONES_LIKE,
    ZEROS_LIKE,
)

Gradients = list[RelayExpr]


def _numbers(shape: tuple[int, ...]) -> RelayExpr:
    """The elements' places in row-major order."""
    return const(np.arange(int(np.prod(shape)), dtype="int64").reshape(shape))


def _flat(expr: RelayExpr) -> RelayExpr:
    return RESHAPE(expr, newshape=(-1,))


def _added(grad: RelayExpr, places: RelayExpr, count: int) -> RelayExpr:
    """`count` sums of the elements of a gradient that stand for each place."""
    dtype = infer_type_of(grad).dtype
    none = ZEROS(shape=(count,), dtype=dtype)
    return SCATTER_ELEMENTS(none, _flat(places), _flat(grad), axis=0, reduction="add")


def _sort(call: Call, grad: RelayExpr) -> Gradients:
    data, attrs = call.args[0], call.attrs
    order = ARGSORT(data, axis=attrs.axis, is_ascend=attrs.is_ascend, dtype="int64")
    return [SCATTER_ELEMENTS(ZEROS_LIKE(data), order, grad, axis=attrs.axis, reduction="add")]


def _topk(call: Call, grad: RelayExpr) -> Gradients:
    data, attrs = call.args[0], call.attrs
    if attrs.ret_type == "indices":
        return [ZEROS_LIKE(data)]
    order = Call(TOPK, (data,), attrs.replace(ret_type="indices", dtype="int64"))
    if attrs.ret_type == "both":
        grad = field_of(grad, 0)
    return [SCATTER_ELEMENTS(ZEROS_LIKE(data), order, grad, axis=attrs.axis, reduction="add")]


def _adv_index(call: Call, grad: RelayExpr) -> Gradients:
    whole = call.args[0]
    ty = infer_type_of(whole)
    assert isinstance(ty, TupleType)
    fields = fields_of(whole, len(ty.fields))
    shape = known_shape(fields[0], "adv_index")
    places = ADV_INDEX(Tuple([_numbers(shape), *fields[1:]]))
    total = _added(grad, places, int(np.prod(shape)))
    return [
        Tuple(
            [RESHAPE(total, newshape=shape, allowzero=True), *[ZEROS_LIKE(f) for f in fields[1:]]]
        )
    ]


def _sliding_window(call: Call, grad: RelayExpr) -> Gradients:
    shape = known_shape(call.args[0], "sliding_window")
    places = Call(SLIDING_WINDOW, (_numbers(shape),), call.attrs)
    return [RESHAPE(_added(grad, places, int(np.prod(shape))), newshape=shape, allowzero=True)]


def _set(call: Call, grad: RelayExpr) -> Gradients:
    to_data, to_values = _replaced(call, grad, call.args[1])
    return [to_data, to_values, *[ZEROS_LIKE(argument) for argument in call.args[2:]]]


def _replaced(call: Call, grad: RelayExpr, values: RelayExpr) -> tuple[RelayExpr, RelayExpr]:
    """Of data of which a part is replaced: what stands there belongs to the values."""
    shape, given = [known_shape(x, call.op.name) for x in (call.args[0], values)]
    count = int(np.prod(given))
    own = const(np.full(shape, -1, "int64"))
    rest = [_numbers(given) if arg is values else arg for arg in call.args[1:]]
    places = Call(call.op, (own, *rest), call.attrs)
    is_own = LESS(places, const(0, "int64"))
    # the elements of the data are added behind those of the values
    total = _added(grad, WHERE(is_own, const(count, "int64"), places), count + 1)
    to_values = STRIDED_SLICE(total, begin=(0,), end=(count,))
    return (
        WHERE(is_own, grad, ZEROS_LIKE(grad)),
        RESHAPE(to_values, newshape=given, allowzero=True),
    )


def _gather_nd(call: Call, grad: RelayExpr) -> Gradients:
    data, indices = call.args
    shape = known_shape(data, "gather_nd")
    if call.attrs.batch_dims == 0:
        return [SCATTER_ND(ZEROS_LIKE(data), indices, grad, mode="add"), ZEROS_LIKE(indices)]
    places = Call(GATHER_ND, (_numbers(shape), indices), call.attrs)
    total = _added(grad, places, int(np.prod(shape)))
    return [RESHAPE(total, newshape=shape, allowzero=True), ZEROS_LIKE(indices)]


def _scatter_elements(call: Call, grad: RelayExpr) -> Gradients:
    data, indices, updates = call.args
    if call.attrs.reduction == "update":
        to_data, to_updates = _replaced(call, grad, updates)
        return [to_data, ZEROS_LIKE(indices), to_updates]
    _check_added(call, "reduction")
    axis = call.attrs.axis
    dtype, extent = infer_type_of(indices).dtype, known_shape(data, "scatter_elements")[axis]
    from_front = WHERE(
        LESS(indices, const(0, dtype)), ADD(indices, const(extent, dtype)), indices
    )  # fmt: skip
    return [grad, ZEROS_LIKE(indices), GATHER(grad, from_front, axis=axis)]


def _scatter_nd(call: Call, grad: RelayExpr) -> Gradients:
    indices = call.args[1]
    if call.attrs.mode == "update":
        to_data, to_updates = _replaced(call, grad, call.args[2])
        return [to_data, ZEROS_LIKE(indices), to_updates]
    _check_added(call, "mode")
    return [grad, ZEROS_LIKE(indices), GATHER_ND(grad, indices)]


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
        SUM(field, axis=tuple([a for a in range(count) if a != order[i]]))
        for i, field in enumerate(fields_of(grad, count))
    ]
    source = infer_type_of(call.args[0])
    assert isinstance(source, TupleType)
    return [
        Tuple([RESHAPE(s, newshape=t.concrete_shape) for s, t in zip(sums, source.fields, strict=True)])  # type: ignore[attr-defined]
    ]  # fmt: skip


def _reverse_sequence(call: Call, grad: RelayExpr) -> Gradients:
    lengths = call.args[1]
    return [Call(REVERSE_SEQUENCE, (grad, lengths), call.attrs), ZEROS_LIKE(lengths)]


def _prod(call: Call, grad: RelayExpr) -> Gradients:
    """Each element's slope is the product of those before it and those behind it."""
    data = call.args[0]
    shape = known_shape(data, "prod")
    over = reduced_axes(call.attrs, len(shape))
    kept = tuple([a for a in range(len(shape)) if a not in over])
    order = (*kept, *over)
    rest = tuple([shape[a] for a in kept])
    count = int(np.prod([shape[a] for a in over]))
    rows = RESHAPE(TRANSPOSE(data, axes=order) if order else data, newshape=(*rest, count))
    axis = len(rest)
    before = CUMPROD(rows, axis=axis, exclusive=True)
    behind = REVERSE(CUMPROD(REVERSE(rows, axis=axis), axis=axis, exclusive=True), axis=axis)
    slope = MULTIPLY(MULTIPLY(before, behind), RESHAPE(grad, newshape=(*rest, 1)))
    found = RESHAPE(slope, newshape=tuple([shape[a] for a in order]))
    back = tuple([order.index(a) for a in range(len(shape))])
    return [TRANSPOSE(found, axes=back) if back else found]


def _cumprod(call: Call, grad: RelayExpr) -> Gradients:
    """The slope of product i by element k is that of the other elements, zeros among them or not."""
    data, attrs = call.args[0], call.attrs
    shape = known_shape(data, "cumprod")
    lines = shape if attrs.axis is not None else (int(np.prod(shape)),)
    axis = 0 if attrs.axis is None else attrs.axis % len(lines)
    rank, extent = len(lines), lines[axis]
    order = (*[a for a in range(rank) if a != axis], axis)
    rows = TRANSPOSE(RESHAPE(data, newshape=lines), axes=order)
    given = TRANSPOSE(RESHAPE(CAST_LIKE(grad, data), newshape=lines), axes=order)
    spread = EXPAND_DIMS(rows, axis=rank - 1, num_newaxis=1)
    others = WHERE(const(np.eye(extent, dtype=bool)), ONES_LIKE(spread), spread)
    slopes = CUMPROD(others, axis=rank, exclusive=attrs.exclusive)
    behind = TRILU(slopes, const(1 if attrs.exclusive else 0, "int32"), upper=True)
    total = SUM(MULTIPLY(behind, EXPAND_DIMS(given, axis=rank - 1, num_newaxis=1)), axis=(rank,))
    back = tuple([order.index(a) for a in range(rank)])
    return [RESHAPE(TRANSPOSE(total, axes=back), newshape=shape, allowzero=True)]


def _dft(call: Call, grad: RelayExpr) -> Gradients:
    """The adjoint of a transform is the other one, but for the factor of the inverse."""
    count = known_shape(call.args[0], "dft")[-1]
    is_inverse = call.attrs.inverse
    back = Call(DFT, tuple(fields_of(grad, 2)), call.attrs.replace(inverse=not is_inverse))
    factor = const(1 / max(count, 1) if is_inverse else count, infer_type_of(call.args[0]).dtype)
    return [MULTIPLY(TupleGetItem(back, i), factor) for i in range(2)]


def _fifo_buffer(call: Call, grad: RelayExpr) -> Gradients:
    """The data stands at the end; before it, what of the buffer is left."""
    data, buffer = call.args
    shape, held = [known_shape(x, "nn.fifo_buffer") for x in (data, buffer)]
    axis = call.attrs.axis % len(shape)
    kept = max(held[axis] - shape[axis], 0)
    to_data = sliced(grad, axis, kept, held[axis])
    rest = tuple([held[axis] - kept if a == axis else n for a, n in enumerate(held)])
    none = ZEROS(shape=rest, dtype=infer_type_of(grad).dtype)
    to_buffer = CONCATENATE(Tuple([none, sliced(grad, axis, 0, kept)]), axis=axis)
    return [to_data, to_buffer]


for _op, _gradient in (
    (ADV_INDEX, _adv_index),
    (CUMPROD, _cumprod),
    (DFT, _dft),
    (FIFO_BUFFER, _fifo_buffer),
    (GATHER_ND, _gather_nd),
    (MATRIX_SET_DIAG, _set),
    (MESHGRID, _meshgrid),
    (PROD, _prod),
    (REVERSE_SEQUENCE, _reverse_sequence),
    (SCATTER_ELEMENTS, _scatter_elements),
    (SCATTER_ND, _scatter_nd),
    (SLIDING_WINDOW, _sliding_window),
    (SORT, _sort),
    (STRIDED_SET, _set),
    (TOPK, _topk),
):
    _op.set_facets(gradient=_gradient)

# what these give does not depend on the elements continuously
_STEPS: tuple[Op, ...] = (
    ALL, ANY, ARGMAX, ARGMIN, ARGSORT, BITWISE_NOT, INVERT_PERMUTATION, ISFINITE, ISINF, ISNAN,
    LOGICAL_NOT, NDARRAY_SIZE, SEARCHSORTED, UNRAVEL_INDEX,
)  # fmt: skip
for _op in _STEPS:
    _op.set_facets(gradient=filled_gradient)
