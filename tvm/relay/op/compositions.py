"""Operators told by others, of which their gradients are made.

Their kernels are their own: a composition is for `relay.transform.gradient` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from string import ascii_letters

import numpy as np

from tvm import topi
from tvm.error import OpNotImplemented
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TupleType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Tuple, const, fields_of

from .known_shapes import known_shape, sliced
from .registry import ops
from .shaping import in_order

Types = Sequence[Type]


def _lrn(call: Call, arg_types: Types) -> RelayExpr:
    data, attrs = call.args[0], call.attrs
    shape, dtype = known_shape(data, "nn.lrn"), infer_type_of(data).dtype
    axis, reach = attrs.axis % len(shape), ((attrs.size - 1) // 2, attrs.size // 2)
    widths = tuple([reach if a == axis else (0, 0) for a in range(len(shape))])
    squares = ops.nn.pad(ops.multiply(data, data), const(0.0, dtype), pad_width=widths)
    infer_type_of(squares)
    windows = [sliced(squares, axis, k, k + shape[axis]) for k in range(attrs.size)]
    share = ops.multiply(reduce(ops.add, windows), const(attrs.alpha / attrs.size, dtype))
    base = ops.add(share, const(attrs.bias, dtype))
    return ops.divide(data, ops.power(base, const(attrs.beta, dtype)))


def _channels_first(
    compose: Callable[[Call, RelayExpr], RelayExpr],
) -> Callable[[Call, Types], RelayExpr]:
    """A composition of data with channels first, for every layout of whole axes."""

    def composed(call: Call, arg_types: Types) -> RelayExpr:
        layout = call.attrs.layout
        out_layout = call.attrs.out_layout or layout
        if not (layout + out_layout).isupper():
            raise OpNotImplemented(
                f"the gradient of {call.op.name} requires layouts of whole axes, got {layout} and "
                f"{out_layout}"
            )
        plain = "NC" + "".join([axis for axis in layout if axis not in "NC"])
        data = in_order(call.args[0], layout, plain)
        infer_type_of(data)
        found = compose(call, data)
        return in_order(found, plain, out_layout)

    return composed


def _pooled_rows(call: Call, data: RelayExpr, which: Sequence[int]) -> RelayExpr:
    """The greatest elements along two of the spatial axes; the last two are pooled."""
    attrs = call.attrs
    rank = len(attrs.pool_size)

    def of(values: Sequence[int], other: int) -> tuple[int, ...]:
        return tuple([values[k] if k >= 0 else other for k in which])

    before, after = of(attrs.padding[:rank], 0), of(attrs.padding[rank:], 0)
    found = ops.nn.max_pool2d(
        data, pool_size=of(attrs.pool_size, 1), strides=of(attrs.strides, 1),
        padding=(*before, *after), dilation=of(attrs.dilation, 1), ceil_mode=attrs.ceil_mode,
    )  # fmt: skip
    infer_type_of(found)
    return found


def _max_pool1d(call: Call, data: RelayExpr) -> RelayExpr:
    n, c, w = known_shape(data, "nn.max_pool1d")
    found = _pooled_rows(call, ops.reshape(data, newshape=(n, c, 1, w)), (-1, 0))
    return ops.reshape(found, newshape=(n, c, -1))


def _max_pool3d(call: Call, data: RelayExpr) -> RelayExpr:
    """Over height and width, then over depth."""
    n, c, depth, h, w = known_shape(data, "nn.max_pool3d")
    planes = _pooled_rows(call, ops.reshape(data, newshape=(n, c * depth, h, w)), (1, 2))
    _, _, rows, columns = known_shape(planes, "nn.max_pool3d")
    lines = ops.reshape(planes, newshape=(n, c, depth, rows * columns))
    found = _pooled_rows(call, lines, (0, -1))
    return ops.reshape(found, newshape=(n, c, -1, rows, columns))


def _global_max_pool2d(call: Call, data: RelayExpr) -> RelayExpr:
    return ops.max(data, axis=(2, 3), keepdims=True)


def _adaptive_max_pool(call: Call, data: RelayExpr) -> RelayExpr:
    sizes = call.attrs.output_size
    rank = len(known_shape(data, call.op.name)) - 2
    for k in range(rank if sizes is not None else 0):
        have = known_shape(data, call.op.name)[2 + k]
        want = sizes[k] if len(sizes) > 1 else sizes[0]
        bins = [
            ops.max(sliced(data, 2 + k, i * have // want, -(-(i + 1) * have // want)), axis=(2 + k,), keepdims=True)
            for i in range(want)
        ]  # fmt: skip
        data = ops.concatenate(Tuple(bins), axis=2 + k)
        infer_type_of(data)
    return data


def _affine_grid(call: Call, arg_types: Types) -> RelayExpr:
    maps = call.args[0]
    batch, dtype = known_shape(maps, "image.affine_grid")[0], infer_type_of(maps).dtype
    height, width = call.attrs.target_shape
    y, x = [np.linspace(-1, 1, n) if n > 1 else np.array([-1.0]) for n in (height, width)]
    places = [(u, v, 1.0) for v, u in product(y, x)]
    rows = ops.reshape(maps, newshape=(batch * 2, 3))
    return ops.reshape(
        ops.nn.dense(rows, const(np.array(places), dtype)), newshape=(batch, 2, height, width)
    )


def _einsum_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Of each factor: the sum of products of the gradient and of the other factors."""
    ty = infer_type_of(call.args[0])
    assert isinstance(ty, TupleType)
    factors = fields_of(call.args[0], len(ty.fields))
    shapes = [known_shape(f, "einsum") for f in factors]
    terms, output = topi.einsum_letters(call.attrs.equation, [len(s) for s in shapes])
    extents = topi.einsum_extents(terms, shapes, call.attrs.equation)
    free = [c for c in ascii_letters if c not in "".join(terms)]
    found = []
    for k, term in enumerate(terms):
        names = [grad, *factors[:k], *factors[k + 1 :]]
        given = [output, *terms[:k], *terms[k + 1 :]]
        wanted = ""
        for letter in term:
            own = letter
            if letter in wanted:  # a diagonal
                own = free[len(wanted)]
                names.append(const(np.eye(extents[letter]), ty.fields[k].dtype))  # type: ignore[attr-defined]
                given.append(letter + own)
            elif letter not in "".join(given):
                names.append(const(np.ones(extents[letter]), ty.fields[k].dtype))  # type: ignore[attr-defined]
                given.append(letter)
            wanted += own
        whole_sum = ops.einsum(Tuple(names), equation=f"{','.join(given)}->{wanted}")
        # axes of extent 1 are broadcast
        found.append(ops.collapse_sum_like(whole_sum, factors[k]))
    return [Tuple(found)]


def _as(op: Op) -> Callable[[Call, Types], RelayExpr]:
    """As an operator that is more exact."""
    return lambda call, arg_types: op(*call.args)


ops.einsum.set_facets(gradient=_einsum_gradient)
for _op, _composition in (
    (ops.nn.adaptive_max_pool1d, _channels_first(_adaptive_max_pool)),
    (ops.nn.adaptive_max_pool2d, _channels_first(_adaptive_max_pool)),
    (ops.nn.adaptive_max_pool3d, _channels_first(_adaptive_max_pool)),
    (ops.image.affine_grid, _affine_grid),
    (ops.fast_erf, _as(ops.erf)),
    (ops.fast_exp, _as(ops.exp)),
    (ops.fast_tanh, _as(ops.tanh)),
    (ops.nn.global_max_pool2d, _channels_first(_global_max_pool2d)),
    (ops.nn.lrn, _lrn),
    (ops.nn.max_pool1d, _channels_first(_max_pool1d)),
    (ops.nn.max_pool3d, _channels_first(_max_pool3d)),
):
    _op.set_facets(composition=_composition)
