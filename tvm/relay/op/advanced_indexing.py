"""Operators that write or name positions: strided sets, dense forms, permutations, advanced indices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from string import ascii_letters
from typing import Annotated, Any

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Tuple, const, fields_of

from .attributes import as_ints
from .computes import computed_by
from .known_shapes import known_shape
from .operator import Expr, Ints, Operand, Tensors, operator
from .registry import OpPattern, ops, zero_gradient
from .run_time import RunTime
from .scatter_gradient import added_elements, element_numbers, replaced_gradient
from .schedules import EXTERN_SCHEDULES
from .types import (
    Tensor0,
    Tensor1,
    TensorTypes,
    broadcast_shapes,
    expect,
    expect_dim,
    expect_same_dtype,
    expect_tuple,
    shape_of_type,
    tensor,
)


def _vector(values: RelayExpr | Sequence[int]) -> RelayExpr:
    return values if isinstance(values, RelayExpr) else const(list(as_ints(values)), dtype="int32")


# integers, whether the caller wrote an expression or a sequence
Vector = Annotated[Any, Operand(_vector)]


def _strided_set_type(
    attrs: Attrs, data: TensorType, v: TensorType, begin: Tensor1, end: Tensor1, strides: Tensor1
) -> Type:
    """A tensor of the shape and dtype of `data`."""
    who = "strided_set"
    expect_same_dtype((data, v), who)
    for ty, name in ((begin, "begin"), (end, "end"), (strides, "strides")):
        count = shape_of_type(ty)[0]
        expect(
            not isinstance(count, int) or count <= len(data.shape),
            f"{who} requires at most {len(data.shape)} numbers for {name}, got {count}",
        )
    return data


@operator(
    "strided_set",
    support_level=4,
    infer_type=_strided_set_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.strided_set),
    gradient=replaced_gradient,
)
def strided_set(
    data: Expr, v: Expr, begin: Vector, end: Vector, strides: Vector = None
) -> RelayExpr | None:
    """Replace a strided slice: data[begin:end:strides] = v

    Parameters
    ----------
    data : relay.Expr
        The tensor, and the slice's new elements.
    begin, end, strides : relay.Expr or sequence of int
        One number for each of the leading axes; negative ones count from the end.
    """
    if strides is not None:
        return None
    ones = const([1], dtype="int32") if isinstance(begin, RelayExpr) else [1] * len(begin)
    return strided_set(data, v, begin, end, ones)


def _sparse_to_dense_type(
    attrs: Any, sparse_indices: TensorType, sparse_values: TensorType, default_value: Tensor0
) -> Type:
    """A tensor of shape `output_shape` and the dtype of the values."""
    who = "sparse_to_dense"
    expect_same_dtype((sparse_values, default_value), who)
    rank, depth = len(sparse_indices.shape), len(attrs.output_shape)
    expect(rank <= 2, f"{who} requires indices of rank 2 or less, got {sparse_indices}")
    expect(rank == 2 or depth == 1, f"{who} requires indices of rank 2 for {depth} dimensions")
    if rank == 2:
        expect_dim(shape_of_type(sparse_indices)[1], depth, who, "the length of an index")
    if rank and sparse_values.shape:
        count = shape_of_type(sparse_indices)[0]
        expect_dim(shape_of_type(sparse_values)[0], count, who, "the number of values")
    return tensor(attrs.output_shape, sparse_values.dtype)


@operator(
    "sparse_to_dense",
    support_level=3,
    infer_type=_sparse_to_dense_type,
    compute=lambda attrs, inputs, out_type: [
        topi.sparse_to_dense(inputs[0], out_type.shape, *inputs[1:])
    ],
    schedules=EXTERN_SCHEDULES,
    run_time=RunTime({"output_shape": ()}),
)
def sparse_to_dense(
    sparse_indices: Expr,
    output_shape: Ints,
    sparse_values: Expr,
    default_value: Annotated[Any, Operand()] = 0,
) -> RelayExpr | None:
    """The dense form of a tensor given by its elements.

    Parameters
    ----------
    sparse_indices : relay.Expr
        An index, (elements,) of them, or (elements, rank).
    output_shape : sequence of int
        The dense shape.
    sparse_values : relay.Expr
        One value, or (elements,).
    default_value : relay.Expr or float
        What stands elsewhere.
    """
    if isinstance(default_value, RelayExpr):
        return None
    default = ops.cast_like(const(default_value), sparse_values)
    return sparse_to_dense(sparse_indices, output_shape, sparse_values, default)


def _permutation_type(attrs: Attrs, data: Tensor1) -> Type:
    """A tensor of the shape and dtype of `data`."""
    return data


@operator(
    "invert_permutation",
    infer_type=_permutation_type,
    compute=computed_by(topi.invert_permutation),
    schedules=EXTERN_SCHEDULES,
    gradient=zero_gradient,
)
def invert_permutation(data: Expr) -> RelayExpr:
    """The permutation that undoes another: out[data[i]] = i

    Parameters
    ----------
    data : relay.Expr
        A permutation of 0 to n - 1.
    """


def _adv_index_type(attrs: Attrs, inputs: TensorTypes) -> Type:
    """A tensor of the dtype of the first input: its shape is the one that the indices broadcast to,
    and behind it the dimensions that have no index."""
    who = "adv_index"
    expect(len(inputs) > 0, f"{who} requires data and at least one index, got an empty tuple")
    data, *indices = inputs
    expect(
        0 < len(indices) <= len(data.shape),
        f"{who} requires 1 to {len(data.shape)} indices, got {len(indices)}",
    )
    shapes = [shape_of_type(ty) for ty in indices]
    picked = reduce(lambda a, b: broadcast_shapes(a, b, who), shapes)
    return tensor((*picked, *shape_of_type(data)[len(indices) :]), data.dtype)


def _adv_index_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    whole = call.args[0]
    ty = infer_type_of(whole)
    assert isinstance(ty, TupleType)
    data, *indices = fields_of(whole, len(ty.fields))
    shape = known_shape(data, "adv_index")
    positions = ops.adv_index(Tuple([element_numbers(shape), *indices]))
    return [Tuple([added_elements(grad, positions, shape), *[ops.zeros_like(i) for i in indices]])]


@operator(
    "adv_index",
    infer_type=_adv_index_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [topi.adv_index(inputs[0], inputs[1:])],
    gradient=_adv_index_gradient,
)
def adv_index(inputs: Tensors) -> RelayExpr:
    """Pick elements by an index tensor for each of the leading axes; the indices broadcast.

    Parameters
    ----------
    inputs : sequence of relay.Expr
        The data, then the indices.
    """


def _unravel_type(attrs: Attrs, indices: TensorType, shape: Tensor1) -> Type:
    return tensor((*shape_of_type(shape), *shape_of_type(indices)), indices.dtype)


@operator(
    "unravel_index",
    support_level=3,
    infer_type=_unravel_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.unravel_index),
    fold=lambda attrs, arrays, out_type: [
        np.array(np.unravel_index(arrays[0], arrays[1])).astype(arrays[0].dtype)
    ],
    gradient=zero_gradient,
)
def unravel_index(indices: Expr, shape: Vector) -> RelayExpr:
    """The index in each dimension of row-major positions.

    Parameters
    ----------
    indices : relay.Expr
        The positions.
    shape : relay.Expr or sequence of int
        The shape in which they count.

    Returns
    -------
    relay.Expr
        A row for each dimension.
    """


def _einsum_type(attrs: Any, data: TensorTypes) -> Type:
    """A tensor of the operands' dtype, with an axis for each letter of the equation's result."""
    dtype = expect_same_dtype(data, "einsum")
    shapes = [shape_of_type(ty) for ty in data]
    try:
        terms, output = topi.einsum_letters(attrs.equation, [len(s) for s in shapes])
        extents = topi.einsum_extents(terms, shapes, attrs.equation)
    except ValueError as error:
        expect(False, str(error))
    return tensor([extents[c] for c in output], dtype)


def _schedule_einsum(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    has_sum = any([op.reduce_axis for op in topi.utils.operations_above(outs[0].op)])
    return (topi.x86.schedule_conv2d if has_sum else topi.x86.schedule_injective)(outs)


def _einsum_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Of each factor: the sum of products of the gradient and of the other factors."""
    types = expect_tuple(infer_type_of(call.args[0]), "einsum")
    factors = fields_of(call.args[0], len(types))
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
                names.append(const(np.eye(extents[letter]), types[k].dtype))
                given.append(letter + own)
            elif letter not in "".join(given):
                names.append(const(np.ones(extents[letter]), types[k].dtype))
                given.append(letter)
            wanted += own
        whole_sum = ops.einsum(Tuple(names), equation=f"{','.join(given)}->{wanted}")
        # axes of extent 1 are broadcast
        found.append(ops.collapse_sum_like(whole_sum, factors[k]))
    return [Tuple(found)]


@operator(
    "einsum",
    support_level=1,
    infer_type=_einsum_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=lambda attrs, inputs, out_type: [topi.einsum(attrs.equation, *inputs)],
    schedules={
        "generic": lambda attrs, outs, target: topi.generic.default_schedule(outs, True),
        "cpu": _schedule_einsum,
    },
    gradient=_einsum_gradient,
)
def einsum(data: Tensors, equation: str) -> RelayExpr:
    """The sum of products that numpy's notation describes.

    Parameters
    ----------
    data : sequence of relay.Expr
        The factors.
    equation : str
        Such as "bij,bjk->bik"; "..." stands for axes that broadcast.
    """
