"""Matrix products: dense layers, plain and with packed weights, and batched products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, Constant, const
from tvm.target import Target

from ..layout_shapes import axes_extents
from ..operator import Expr, OptionalStr, operator
from ..plain_results import of_plain_result
from ..registry import OpPattern, Precision, ops
from ..schedules import alterations, default_schedules
from ..types import (
    Dim,
    Tensor3,
    are_known,
    broadcast_shapes,
    expect,
    expect_dim,
    expect_same_dtype,
    expect_tensor,
    is_known,
    may_equal,
    shape_of_type,
    show,
    tensor,
)
from ..unary import converted
from .argument_types import of_dense, of_matmul
from .packed_weight import packed_weight
from .product_gradient import dense_gradient, product_gradient

_Dtypes: TypeAlias = tuple[str, str]


def _swapped(shape: Sequence[Dim], swap: bool) -> tuple[Dim, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if swap else tuple(shape)


def _product_type(
    who: str, arg_types: Sequence[Type], transpose_a: bool, transpose_b: bool, attrs: Attrs
) -> Type:
    lhs = expect_tensor(arg_types[0], who, "tensor_a")
    rhs = expect_tensor(arg_types[1], who, "tensor_b", rank=2)
    dtype = attrs.out_dtype or expect_same_dtype((lhs, rhs), who)
    expect(len(lhs.shape) >= 1, f"{who} requires at least one dimension for tensor_a")
    left = shape_of_type(lhs)
    left = _swapped(left, transpose_a) if len(left) > 1 else left
    right = _swapped(shape_of_type(rhs), transpose_b)
    expect(
        may_equal(left[-1], right[0]),
        f"{who} requires equal inner dimensions, got {show(shape_of_type(lhs))} and "
        f"{show(shape_of_type(rhs))}",
    )
    if attrs.units is not None:
        expect_dim(right[1], attrs.units, who, "the weight's units")
    units = right[1] if attrs.units is None else attrs.units
    return tensor((*left[:-1], units), dtype)


def _matmul_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor of the first operand's shape whose last dimension is the second's number of columns;
    of dtype `out_dtype`, or that of the operands."""
    return _product_type("nn.matmul", arg_types, attrs.transpose_a, attrs.transpose_b, attrs)


def _dense_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor of the shape of `data` whose last dimension is the number of units; of dtype
    `out_dtype`, or that of the operands."""
    return _product_type("nn.dense", arg_types, False, True, attrs)


def _numpy_product(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    wide = np.promote_types(a.dtype, dtype)
    return np.asarray(np.matmul(a.astype(wide), b.astype(wide)).astype(dtype))


def _fold_matmul(
    attrs: Any, arrays: Sequence[np.ndarray], out_type: TensorType
) -> list[np.ndarray]:
    a = arrays[0].T if attrs.transpose_a else arrays[0]
    b = arrays[1].T if attrs.transpose_b else arrays[1]
    return [_numpy_product(a, b, out_type.dtype)]


def _dense_on_cpu(
    attrs: Attrs,
    inputs: Sequence[RelayExpr],
    arg_types: Sequence[TensorType],
    out_type: TensorType,
    target: Target,
) -> RelayExpr | None:
    """The weight in blocks of the micro-kernel's columns."""
    if not {"cblas", "mkl", "dnnl"}.isdisjoint(target.libs):
        return None  # a library takes weights as they are
    call = Call(ops.nn.dense, inputs, attrs)
    data, shape = [shape_of_type(t) for t in arg_types]
    if len(data) == 2 and (plain := _before_transpose(call.args[1])) is not None:
        return ops.nn.matmul(call.args[0], plain, out_dtype=call.attrs.out_dtype)
    if not are_known(shape) or len(data) < 2:
        return None
    rows = data[-2] if is_known(data[-2]) else 128
    units, inner = shape
    dtype = out_type.dtype
    own = arg_types[0].dtype, arg_types[1].dtype
    factors = topi.x86.conv2d.narrow_dtypes(*own, dtype, target) or own
    dtypes = own[1], factors[1]  # of the weight
    if topi.x86.conv2d.dot_group(*factors, target) > 1:
        call, inner = _in_groups(call, len(data), own, factors, inner, target)
    out, weight = shape_of_type(out_type), call.args[1]
    # rows of zeros fill the last vectors of a constant weight, and the output is cut; C text is for
    # small memories
    step = 64 if units >= 64 else next(size for size in (4, 8, 16) if size >= min(units, 16))
    wide = -(-units // step) * step
    can_pad = isinstance(weight, Constant) and target.kind.name == "llvm"
    lanes = topi.cpu.common.lanes_of(dtype, topi.cpu.common.processor(target))
    # half a vector will do for a single row, which streams the weight, and for few units
    has_halves = units % (lanes // 2) == 0 and (rows == 1 or units < 64)
    is_whole = units % min(lanes, step) == 0 or has_halves
    if rows <= topi.x86.dense.FEW_ROWS and not isinstance(weight, Constant) and len(data) == 2:
        return None  # its lines serve too few rows to be packed while the program runs
    if is_whole or not can_pad:
        layout = _weight_layout(rows, units, inner, factors, dtype, target) if is_whole else None
        return None if layout is None else _packed(call, weight, layout, dtypes, call.attrs.units)
    layout = _weight_layout(rows, wide, inner, factors, dtype, target)
    if layout is None:
        return None
    zero = const(0, dtype=own[1])
    padded = ops.nn.pad(weight, zero, pad_width=((0, wide - units), (0, 0)))
    product = _packed(call, padded, layout, dtypes, wide)
    if are_known(out):
        return ops.strided_slice(product, begin=(0,) * len(out), end=out)
    return ops.strided_slice(product, begin=(0,), end=(units,), axes=(len(out) - 1,))


def _in_groups(
    call: Call, rank: int, own: _Dtypes, factors: _Dtypes, inner: int, target: Target
) -> tuple[Call, int]:
    """The data in the dtype of the processor's dot products, zeros filling the last group of both."""
    data, weight = call.args
    data = converted(data, factors[0]) if own[0] != factors[0] else data
    if missing := -inner % topi.x86.conv2d.dot_group(*factors, target):
        widths = ((0, 0),) * (rank - 1) + ((0, missing),)
        data = ops.nn.pad(data, const(0, factors[0]), pad_width=widths)
        weight = _padded_weight(weight, ((0, 0), (0, missing)), own[1])
    return call.replace(args=(data, weight)), inner + missing


def _padded_weight(weight: RelayExpr, widths: Sequence[Sequence[int]], dtype: str) -> RelayExpr:
    if isinstance(weight, Constant):
        return const(np.pad(weight.data.numpy(), widths))
    return ops.nn.pad(weight, const(0, dtype), pad_width=tuple(widths))


def _before_transpose(weight: RelayExpr) -> RelayExpr | None:
    """The matrix that a program transposes while it runs; kernels take it as it is."""
    if (
        isinstance(weight, Call)
        and weight.op is ops.transpose
        and weight.attrs.axes in (None, (1, 0))
    ):
        return weight.args[0]
    return None


def _weight_layout(
    rows: int, units: int, inner: int, factors: _Dtypes, dtype: str, target: Target
) -> str | None:
    """The weight in blocks, and in groups where the processor has dot products for the factors."""
    if topi.x86.conv2d.dot_group(*factors, target) > 1:
        found = topi.x86.dense.dense_dot_block(rows, units, inner, *factors, target)
        return None if found is None else f"NC{found[0]}n{found[1]}c"
    block = topi.x86.dense.packed_columns(rows, units, inner, dtype, target)
    return None if block is None else f"NC{block}n"


def _packed(
    call: Call, weight: RelayExpr, layout: str, dtypes: _Dtypes, units: int | None
) -> RelayExpr:
    packed = packed_weight(weight, "NC", layout, *dtypes)
    return ops.nn.contrib_dense_pack(
        call.args[0], packed, units=units, out_dtype=call.attrs.out_dtype, weight_layout=layout
    )


def _product(attrs: Attrs, inputs: Sequence[te.Tensor], out_type: TensorType) -> list[te.Tensor]:
    """On processors, large matrices are packed while the kernel runs."""
    matmul = topi.x86.matmul_pack if topi.utils.is_target("cpu") else topi.nn.matmul
    transpose_a, transpose_b = (
        (attrs.transpose_a, attrs.transpose_b) if "transpose_a" in attrs else (False, True)
    )
    a, b = inputs
    return [matmul(a, b, None, out_type.dtype, transpose_a, transpose_b)]


def _mac_count(call: Call) -> int:
    """Output elements times the length of one dot product."""
    inner = -2 if getattr(call.attrs, "transpose_a", False) else -1
    out, rows = [tensor_type_of(x).concrete_shape for x in (call, call.args[0])]
    return math.prod(out) * rows[inner]


@operator(
    "nn.dense",
    support_level=1,
    infer_type=_dense_type,
    argument_types=of_dense,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=_product,
    schedules=default_schedules(topi.x86.schedule_matmul_pack),
    fold=lambda attrs, arrays, out_type: [_numpy_product(arrays[0], arrays[1].T, out_type.dtype)],
    gradient=of_plain_result(dense_gradient),
    alter_layout=alterations(cpu=_dense_on_cpu),
    precision=Precision.ALWAYS,
    mac_count=_mac_count,
)
def dense(
    data: Expr, weight: Expr, units: int | None = None, out_dtype: OptionalStr = ""
) -> RelayExpr:
    """A dense layer: `data @ weight.T`.

    Parameters
    ----------
    data, weight : relay.Expr
        The rows, and the weight of shape (units, inner).
    units : int, optional
        The number of output columns, checked if given.
    out_dtype : str
        The dtype of the sums, the data's by default.
    """


@operator(
    "nn.matmul",
    support_level=1,
    infer_type=_matmul_type,
    argument_types=of_matmul,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=_product,
    schedules=default_schedules(topi.x86.schedule_matmul_pack),
    fold=_fold_matmul,
    precision=Precision.ALWAYS,
    gradient=of_plain_result(product_gradient(lambda a, b: ops.nn.matmul(a, b))),
    mac_count=_mac_count,
)
def matmul(
    tensor_a: Expr,
    tensor_b: Expr,
    units: int | None = None,
    out_dtype: OptionalStr = "",
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> RelayExpr:
    """A matrix product.

    Parameters
    ----------
    tensor_a, tensor_b : relay.Expr
        The matrices.
    units : int, optional
        The number of output columns, checked if given.
    out_dtype : str
        The dtype of the sums, the operands' by default.
    transpose_a, transpose_b : bool
        Whether an operand comes transposed.
    """


def _dense_pack_type(attrs: Any, data: TensorType, weight: TensorType) -> Type:
    """A tensor of the shape of `data` whose last dimension is the number of columns of the packed
    weight; of dtype `out_dtype`, or that of `data`."""
    who = "nn.contrib_dense_pack"
    have = axes_extents(shape_of_type(weight), attrs.weight_layout, f"{who}'s weight")
    shape = shape_of_type(data)
    expect(len(shape) >= 2, f"{who} requires at least two dimensions, got {show(shape)}")
    expect_dim(have["C"], shape[-1], who, "the weight's inner dimension")
    if attrs.units is not None:
        expect_dim(have["N"], attrs.units, who, "the weight's units")
    return tensor((*shape[:-1], have["N"]), attrs.out_dtype or data.dtype)


def _has_groups(attrs: Any) -> bool:
    """Whether the weight's inner dimension comes in groups, as in NC64n4c."""
    return "c" in attrs.weight_layout


@operator(
    "nn.contrib_dense_pack",
    "DensePackAttrs",
    support_level=1,
    infer_type=_dense_pack_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=lambda attrs, inputs, out_type: [
        (topi.nn.dense_dot if _has_groups(attrs) else topi.nn.dense_pack)(
            inputs[0], inputs[1], None, out_type.dtype
        )
    ],
    schedules={
        **default_schedules(),
        "cpu": lambda attrs, outs, target: (
            topi.x86.schedule_dense_dot if _has_groups(attrs) else topi.x86.schedule_dense_pack
        )(outs),
    },
    precision=Precision.ALWAYS,
)
def contrib_dense_pack(
    data: Expr,
    weight: Expr,
    weight_layout: str = "NC",
    units: int | None = None,
    out_dtype: OptionalStr = "",
) -> RelayExpr:
    """A dense layer with a packed weight.

    Parameters
    ----------
    data, weight : relay.Expr
        The rows, and the weight in `weight_layout`, such as (units // 16, inner, 16) for NC16n.
    weight_layout : str
        The weight's layout.
    units, out_dtype : optional
        As in `dense`.
    """


def _batch_matmul_type(attrs: Any, tensor_a: Tensor3, tensor_b: Tensor3) -> Type:
    """A tensor of shape (batch, rows of the first, columns of the second); of dtype `out_dtype`, or
    that of the operands. Batches of 1 are broadcast."""
    who = "nn.batch_matmul"
    dtype = tensor_a.dtype if attrs.out_dtype else expect_same_dtype((tensor_a, tensor_b), who)
    a = _swapped(shape_of_type(tensor_a), attrs.transpose_a)
    b = _swapped(shape_of_type(tensor_b), attrs.transpose_b)
    text = f"{show(shape_of_type(tensor_a))} and {show(shape_of_type(tensor_b))}"
    is_known_to_differ = all(isinstance(d, int) and d != 1 for d in (a[0], b[0])) and a[0] != b[0]
    expect(not is_known_to_differ, f"{who} requires equal batches, got {text}")
    expect(may_equal(a[2], b[1]), f"{who} requires equal inner dimensions, got {text}")
    return tensor((*broadcast_shapes(a[:1], b[:1], who), a[1], b[2]), attrs.out_dtype or dtype)


def _fold_batch_matmul(
    attrs: Any, arrays: Sequence[np.ndarray], out_type: TensorType
) -> list[np.ndarray]:
    a = arrays[0].swapaxes(1, 2) if attrs.transpose_a else arrays[0]
    b = arrays[1].swapaxes(1, 2) if attrs.transpose_b else arrays[1]
    return [_numpy_product(a, b, out_type.dtype)]


def _batch_product(
    attrs: Any, inputs: Sequence[te.Tensor], out_type: TensorType
) -> list[te.Tensor]:
    """Narrow numbers by the processor's dot products, where it has them."""
    a, b = inputs
    flags = (attrs.transpose_a, attrs.transpose_b)
    dot = topi.x86.find_batch_dot(a, b, out_type.dtype)
    if dot is not None:
        return [topi.x86.batch_matmul_dot(a, b, dot, *flags)]
    product = topi.x86.batch_matmul if topi.utils.is_target("cpu") else topi.nn.batch_matmul
    return [product(a, b, None, out_type.dtype, *flags)]


@operator(
    "nn.batch_matmul",
    defaults={"transpose_b": False},
    infer_type=_batch_matmul_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=_batch_product,
    schedules=default_schedules(topi.x86.schedule_batch_matmul),
    fold=_fold_batch_matmul,
    precision=Precision.ALWAYS,
    gradient=of_plain_result(
        product_gradient(lambda a, b: ops.nn.batch_matmul(a, b, transpose_b=False))
    ),
    mac_count=_mac_count,
)
def batch_matmul(
    tensor_a: Expr,
    tensor_b: Expr,
    out_dtype: OptionalStr = "",
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> RelayExpr:
    """A batch of matrix products.

    Parameters
    ----------
    tensor_a, tensor_b : relay.Expr
        Tensors of three dimensions; a batch of 1 is broadcast.
    out_dtype : str
        The dtype of the sums, the operands' by default.
    transpose_a, transpose_b : bool
        Whether the matrices come transposed.
    """
