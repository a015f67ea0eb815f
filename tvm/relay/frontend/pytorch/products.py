"""PyTorch's matrix products, dense layers, and distances of all pairs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like
from tvm.relay.frontend.einsum import einsum
from tvm.relay.frontend.matmul import matmul
from tvm.relay.frontend.normalization import p_norm

from .dynamic_shapes import is_dynamic, reshaped, size_of, sizes_of
from .registry import (
    as_dtype,
    as_ints,
    as_number,
    promoted,
    torch_dtype,
    torch_op,
    torch_ops,
)


@torch_op("matmul", "mm", "bmm", "mv", "dot")
def matrix_product(a: RelayExpr, b: RelayExpr, *_: Any) -> RelayExpr:
    """The product of vectors, matrices or batches of them."""
    if len(infer_shape(a)) == len(infer_shape(b)) == 1:
        return _op.sum(a * b)
    left, right = promoted(a, b)
    if is_dynamic(left) or is_dynamic(right):
        return _dynamic_matmul(left, right)
    return matmul(left, right)


def _dynamic_matmul(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    """A product of matrices; batches have to be the same, as broadcasting would depend on data."""
    a_rank, b_rank = len(infer_shape(a)), len(infer_shape(b))
    if min(a_rank, b_rank) == 1 or (b_rank > 2 and a_rank != b_rank):
        raise OpAttributeUnImplemented(
            f"products of tensors of ranks {a_rank} and {b_rank} require sizes known at import"
        )
    if b_rank == 2:
        return linear(a, _op.transpose(b, (1, 0)))
    if a_rank == 3:
        return _op.nn.batch_matmul(a, b, transpose_b=False)
    left, right = [reshaped(x, [-1, *sizes_of(x)[-2:]]) for x in (a, b)]
    product = _op.nn.batch_matmul(left, right, transpose_b=False)
    return reshaped(product, [*sizes_of(a)[:-1], size_of(b, -1)])


@torch_op("linear")
def linear(x: RelayExpr, weight: RelayExpr, bias: Any = None) -> RelayExpr:
    """Rows times a weight (units, inputs), with a bias."""
    if len(infer_shape(weight)) == 1:
        product = matrix_product(x, weight)
        return product if bias is None else product + bias
    if bias is not None and len(infer_shape(bias)) != 1:
        biased: RelayExpr = linear(x, weight) + bias
        return biased
    shape, units = infer_shape(x), infer_shape(weight)[0]
    flat = x if len(shape) == 2 else _op.reshape(x, (-1, infer_shape(weight)[1]))
    result = _op.nn.dense(flat, weight)
    result = result if bias is None else _op.nn.bias_add(result, bias, axis=-1)
    if is_dynamic(x) and len(shape) > 2:
        return _op.reshape_like(result, x, 0, 1, 0, len(shape) - 1)
    return result if len(shape) == 2 else _op.reshape(result, (*shape[:-1], units))


@torch_op("outer", "ger")
def _outer(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    left, right = promoted(a, b)
    return _op.expand_dims(left, 1) * right


def _weighed_sum(x: RelayExpr, product: RelayExpr, beta: Any = 1, alpha: Any = 1) -> RelayExpr:
    """``beta * x + alpha * product``; with a beta of 0, NaN in ``x`` does not count."""
    if as_number(alpha) != 1:
        product = product * scalar_like(as_number(alpha), product)
    if as_number(beta) == 0:
        return product
    x = x if as_number(beta) == 1 else x * scalar_like(as_number(beta), x)
    is_bias = len(infer_shape(x)) == 1 and infer_shape(x) == infer_shape(product)[1:]
    return _op.nn.bias_add(product, x) if is_bias else product + x


@torch_op("_trilinear")
def _trilinear(
    a: RelayExpr, b: RelayExpr, c: RelayExpr, spread_a: Any, spread_b: Any, spread_c: Any,
    summed: Any, *_: Any,
) -> RelayExpr:  # fmt: skip
    operands = []
    for x, axes in ((a, spread_a), (b, spread_b), (c, spread_c)):
        for axis in as_ints(axes):
            x = _op.expand_dims(x, axis)
        operands.append(x)
    product = operands[0] * operands[1] * operands[2]
    return _op.sum(product, axis=as_ints(summed))


@torch_op("pdist", "_pdist_forward")
def _pdist(x: RelayExpr, p: Any = 2.0) -> RelayExpr:
    rows, columns = np.triu_indices(infer_shape(x)[0], 1)
    left, right = [_op.take(x, constant(i, "int64"), 0) for i in (rows, columns)]
    return p_norm(left - right, float(as_number(p)), [-1])


@torch_op("_grouped_mm", "transformers::grouped_mm_fallback")
def _grouped_mm(
    x: RelayExpr, weights: RelayExpr, ends: Any = None, bias: Any = None, dtype: Any = None
) -> RelayExpr:
    """Rows times the matrix of their group; groups follow each other and end at ``ends``."""
    if ends is None or len(infer_shape(x)) != 2 or len(infer_shape(weights)) != 3:
        raise OpAttributeUnImplemented("_grouped_mm is supported for rows in groups of matrices")
    rows, groups = infer_shape(x)[0], infer_shape(weights)[0]
    every = matrix_product(
        _op.broadcast_to(_op.expand_dims(x, 0), (groups, *infer_shape(x))), weights
    )
    positions = constant(np.arange(rows), "int64")
    owner = _op.searchsorted(_op.cast(ends, "int64"), positions, True, "int64")
    # rows behind the last group belong to none; what they hold is not defined
    owner = _op.minimum(owner, constant(groups - 1, "int64"))
    result = _op.gather_nd(every, _op.stack([owner, positions], 0))
    result = result if bias is None else result + _op.take(bias, owner, 0)
    return as_dtype(result, torch_dtype(dtype, infer_dtype(x)))


torch_ops({
    "addmm baddbmm": lambda x, a, b, *factors: _weighed_sum(x, matrix_product(a, b), *factors),
    "addmv": lambda x, matrix, vector, *factors: _weighed_sum(
        x, matrix_product(matrix, vector), *factors
    ),
    "addr": lambda x, a, b, *factors: _weighed_sum(x, _outer(a, b), *factors),
    "addbmm": lambda x, a, b, *factors: _weighed_sum(
        x, _op.sum(matrix_product(a, b), axis=[0]), *factors
    ),
    "einsum": lambda equation, operands, *_: einsum(equation, promoted(*operands)),
    "_int_mm": lambda a, b: _op.nn.matmul(a, b, out_dtype="int32"),
    # real numbers times weights of 8 bits, each row of its own scale
    "_weight_int8pack_mm": lambda x, weight, scales: (
        matrix_product(x, _op.transpose(as_dtype(weight, infer_dtype(x)), [1, 0]))
        * as_dtype(scales, infer_dtype(x))
    ),
    "cdist _cdist_forward": lambda a, b, p=2.0, *_: p_norm(
        _op.expand_dims(a, len(infer_shape(a)) - 1) - _op.expand_dims(b, len(infer_shape(b)) - 2),
        float(as_number(p)),
        [-1],
    ),
})  # fmt: skip
