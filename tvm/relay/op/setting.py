"""Operators that write or name places: strided sets, dense forms, permutations, advanced indices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relay.expr import Tuple, const

from .attributes import as_ints, as_list, is_run_time
from .registry import OpPattern, define_op, ops
from .types import (
    broadcast_shapes,
    expect,
    expect_dim,
    expect_same_dtype,
    expect_tensor,
    expect_tuple,
    shape_of_type,
    tensor,
)


class SparseToDenseAttrs(Attrs, key="relay.attrs.SparseToDenseAttrs"):
    """The dense shape."""

    output_shape: tuple[int, ...]


class EinsumAttrs(Attrs, key="relay.attrs.EinsumAttrs"):
    """The sum of products in Einstein's notation."""

    equation: str


def _strided_set_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    who = "strided_set"
    data, values = [
        expect_tensor(ty, who, n) for ty, n in zip(arg_types, ("data", "v"), strict=False)
    ]
    expect_same_dtype((data, values), who)
    for ty, name in zip(arg_types[2:], ("begin", "end", "strides"), strict=True):
        count = shape_of_type(expect_tensor(ty, who, name, 1))[0]
        expect(
            not isinstance(count, int) or count <= len(data.shape),
            f"{who} requires at most {len(data.shape)} numbers for {name}, got {count}",
        )
    return data


def _sparse_to_dense_type(attrs: SparseToDenseAttrs, arg_types: Sequence[Type]) -> Type:
    who = "sparse_to_dense"
    indices = expect_tensor(arg_types[0], who, "sparse_indices")
    values = expect_tensor(arg_types[1], who, "sparse_values")
    default = expect_tensor(arg_types[2], who, "default_value", 0)
    expect_same_dtype((values, default), who)
    rank, depth = len(indices.shape), len(attrs.output_shape)
    expect(rank <= 2, f"{who} requires indices of rank 2 or less, got {indices}")
    expect(rank == 2 or depth == 1, f"{who} requires indices of rank 2 for {depth} dimensions")
    if rank == 2:
        expect_dim(shape_of_type(indices)[1], depth, who, "the length of an index")
    if rank and values.shape:
        count = shape_of_type(indices)[0]
        expect_dim(shape_of_type(values)[0], count, who, "the number of values")
    return tensor(attrs.output_shape, values.dtype)


def _permutation_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    return expect_tensor(arg_types[0], "invert_permutation", rank=1)


def _adv_index_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    who = "adv_index"
    fields = expect_tuple(arg_types[0], who, "inputs")
    expect(len(fields) > 0, f"{who} requires data and at least one index, got an empty tuple")
    data, *indices = fields
    expect(
        0 < len(indices) <= len(data.shape),
        f"{who} requires 1 to {len(data.shape)} indices, got {len(indices)}",
    )
    shapes = [shape_of_type(ty) for ty in indices]
    picked = reduce(lambda a, b: broadcast_shapes(a, b, who), shapes)
    return tensor((*picked, *shape_of_type(data)[len(indices) :]), data.dtype)


def _unravel_type(attrs: Attrs, arg_types: Sequence[Type]) -> Type:
    indices = expect_tensor(arg_types[0], "unravel_index", "indices")
    shape = expect_tensor(arg_types[1], "unravel_index", "shape", 1)
    return tensor((*shape_of_type(shape), *shape_of_type(indices)), indices.dtype)


def _einsum_type(attrs: EinsumAttrs, arg_types: Sequence[Type]) -> Type:
    factors = expect_tuple(arg_types[0], "einsum")
    dtype = expect_same_dtype(factors, "einsum")
    shapes = [shape_of_type(ty) for ty in factors]
    try:
        terms, output = topi.einsum_letters(attrs.equation, [len(s) for s in shapes])
        extents = topi.einsum_extents(terms, shapes, attrs.equation)
    except ValueError as error:
        expect(False, str(error))
    return tensor([extents[c] for c in output], dtype)


def _extern(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.generic.schedule_extern(outs)


def _schedule_einsum(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    has_sum = any([op.reduce_axis for op in topi.utils.operations_above(outs[0].op)])
    return (topi.x86.schedule_conv2d if has_sum else topi.x86.schedule_injective)(outs)


_EXTERN = {"generic": _extern, "cpu": _extern}

define_op(
    "strided_set",
    inputs=("data", "v", "begin", "end", "strides"),
    infer_type=_strided_set_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [topi.strided_set(*inputs)],
)
define_op(
    "sparse_to_dense",
    SparseToDenseAttrs,
    inputs=("sparse_indices", "sparse_values", "default_value"),
    infer_type=_sparse_to_dense_type,
    compute=lambda attrs, inputs, out_type: [
        topi.sparse_to_dense(inputs[0], attrs.output_shape, *inputs[1:])
    ],
    schedules=_EXTERN,
)
define_op(
    "invert_permutation",
    inputs=("data",),
    infer_type=_permutation_type,
    compute=lambda attrs, inputs, out_type: [topi.invert_permutation(inputs[0])],
    schedules=_EXTERN,
)
define_op(
    "adv_index",
    inputs=("inputs",),
    infer_type=_adv_index_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [topi.adv_index(inputs[0], inputs[1:])],
)
define_op(
    "unravel_index",
    inputs=("indices", "shape"),
    infer_type=_unravel_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [topi.unravel_index(*inputs)],
    fold=lambda attrs, arrays, out_type: [
        np.array(np.unravel_index(arrays[0], arrays[1])).astype(arrays[0].dtype)
    ],
)
define_op(
    "einsum",
    EinsumAttrs,
    inputs=("data",),
    infer_type=_einsum_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=lambda attrs, inputs, out_type: [topi.einsum(attrs.equation, *inputs)],
    schedules={
        "generic": lambda attrs, outs, target: topi.generic.default_schedule(outs, True),
        "cpu": _schedule_einsum,
    },
)


def strided_set(
    data: RelayExpr,
    v: RelayExpr,
    begin: RelayExpr | Sequence[int],
    end: RelayExpr | Sequence[int],
    strides: RelayExpr | Sequence[int] | None = None,
) -> RelayExpr:
    """Replace a strided slice: data[begin:end:strides] = v

    Parameters
    ----------
    data, v : relay.Expr
        The tensor, and the slice's new elements.
    begin, end, strides : relay.Expr or sequence of int
        One number for each of the leading axes; negative ones count from the end.
    """
    if strides is None:
        strides = const([1], dtype="int32") if isinstance(begin, RelayExpr) else [1] * len(begin)
    return ops.strided_set(data, v, *[_vector(values) for values in (begin, end, strides)])


def _vector(values: RelayExpr | Sequence[int]) -> RelayExpr:
    return values if isinstance(values, RelayExpr) else const(list(as_ints(values)), dtype="int32")


def sparse_to_dense(
    sparse_indices: RelayExpr,
    output_shape: Sequence[int],
    sparse_values: RelayExpr,
    default_value: RelayExpr | float = 0,
) -> RelayExpr:
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
    is_number = not isinstance(default_value, RelayExpr)
    default = ops.cast_like(const(default_value), sparse_values) if is_number else default_value
    if is_run_time(output_shape):
        return Op.get("dyn.sparse_to_dense")(
            sparse_indices, output_shape, sparse_values, default, output_shape=()
        )
    return ops.sparse_to_dense(
        sparse_indices, sparse_values, default, output_shape=as_ints(output_shape)
    )


def invert_permutation(data: RelayExpr) -> RelayExpr:
    """The permutation that undoes another: out[data[i]] = i

    Parameters
    ----------
    data : relay.Expr
        A permutation of 0 to n - 1.
    """
    return ops.invert_permutation(data)


def adv_index(inputs: Sequence[RelayExpr]) -> RelayExpr:
    """Pick elements by an index tensor for each of the leading axes; the indices broadcast.

    Parameters
    ----------
    inputs : sequence of relay.Expr
        The data, then the indices.
    """
    return ops.adv_index(
        inputs if isinstance(inputs, RelayExpr) else Tuple(as_list(inputs, "tensors"))
    )


def unravel_index(indices: RelayExpr, shape: RelayExpr | Sequence[int]) -> RelayExpr:
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
    return ops.unravel_index(indices, _vector(shape))


def einsum(data: Sequence[RelayExpr] | RelayExpr, equation: str) -> RelayExpr:
    """The sum of products that numpy's notation describes.

    Parameters
    ----------
    data : sequence of relay.Expr
        The factors.
    equation : str
        Such as "bij,bjk->bik"; "..." stands for axes that broadcast.
    """
    factors = data if isinstance(data, RelayExpr) else Tuple(as_list(data, "tensors"))
    return ops.einsum(factors, equation=str(equation))
