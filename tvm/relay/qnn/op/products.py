"""Matrix products of quantised tensors, in 32 bits.

With zero points z and w, the sum of (x - z) * (y - w) is the sum of x * (y - w) less z times the
sum of (y - w), which does not depend on the data. So 8-bit data meets the weight as it is, and
what is subtracted is a constant of each output channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, Constant
from tvm.relay.op.operator import Attribute, Expr, operator
from tvm.relay.op.parameters import more_parameters
from tvm.relay.op.registry import ops
from tvm.relay.op.shaping import layout_transform

from .common import cast, is_zero
from .convolutions import PLAIN_CONVOLUTIONS, TRANSPOSED_CONVOLUTIONS
from .sums import product_type, shifted, sums_of


def _canonicalize_dense(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr:
    data, weight, zero, weight_zero = inputs[:4]
    weight = shifted(weight, weight_zero, 0)
    return _less_zero(Call(ops.nn.dense, [data, weight], attrs), weight, 1, zero, attrs.out_dtype)


def _less_zero(
    product: RelayExpr, weight: RelayExpr, axis: int, zero: RelayExpr, dtype: str
) -> RelayExpr:
    """The product less `zero` times the sums of the weight along its inner axis."""
    if is_zero(zero):
        return product
    sums = sums_of(weight, (axis,), dtype)
    return ops.subtract(product, ops.multiply(sums, cast(zero, dtype)))


@operator(
    "qnn.dense",
    ops.nn.dense.attrs_type,
    infer_type=product_type(ops.nn.dense, "qnn.dense"),
    qnn_canonicalize=_canonicalize_dense,
)
def dense(
    data: Expr,
    weight: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    units: int | None,
    out_dtype: str = "int32",
) -> RelayExpr:
    """A dense layer of quantised tensors; the result has the scale input_scale * kernel_scale.

    Parameters
    ----------
    data, weight : relay.Expr
        Integers of 8 bits; the weight has the shape (units, inner).
    input_zero_point, kernel_zero_point, input_scale, kernel_scale : relay.Expr
        Scalars; the weight's may be vectors over the units.
    units : int
        The number of output columns.
    out_dtype : str
        The dtype of the sums.
    """


def _canonicalize_dense_pack(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr:
    data, packed, zero, weight_zero = inputs[:4]
    if len(tensor_type_of(weight_zero).shape) == 0:
        packed = shifted(packed, weight_zero)
        product = Call(ops.nn.contrib_dense_pack, [data, packed], attrs)
        if is_zero(zero):
            return product
        return _less_zero(
            product, layout_transform(packed, attrs.weight_layout, "NC"), 1, zero, attrs.out_dtype
        )
    weight = shifted(layout_transform(packed, attrs.weight_layout, "NC"), weight_zero, 0)
    product = ops.nn.dense(data, weight, units=attrs.units, out_dtype=attrs.out_dtype)
    return _less_zero(product, weight, 1, zero, attrs.out_dtype)


@operator(
    "qnn.contrib_dense_pack",
    ops.nn.contrib_dense_pack.attrs_type,
    infer_type=product_type(ops.nn.contrib_dense_pack, "qnn.contrib_dense_pack"),
    qnn_canonicalize=_canonicalize_dense_pack,
)
@more_parameters(dense)
def contrib_dense_pack(
    kernel_scale: Expr,
    kernel_layout: Annotated[str, Attribute("str", str, "weight_layout")] = "NC",
    units: int | None = None,
) -> None:
    """A dense layer with a packed weight; parameters as in `dense`.

    Parameters
    ----------
    kernel_layout : str
        The weight's layout, such as "NC16n".
    """


def _canonicalize_batch_matmul(
    attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Type]
) -> RelayExpr:
    """Neither operand is constant as a rule, so their zero points are subtracted before the sums."""
    x, y, x_zero, y_zero = inputs[:4]
    y = shifted(y, y_zero)
    if is_zero(x_zero) or not isinstance(inputs[1], Constant):
        return Call(ops.nn.batch_matmul, [shifted(x, x_zero), y], attrs)
    inner = 2 if attrs.transpose_b else 1
    columns = ops.expand_dims(sums_of(y, (inner,), attrs.out_dtype), axis=1, num_newaxis=1)
    excess = ops.multiply(columns, cast(x_zero, attrs.out_dtype))
    return ops.subtract(Call(ops.nn.batch_matmul, [x, y], attrs), excess)


@operator(
    "qnn.batch_matmul",
    ops.nn.batch_matmul.attrs_type,
    infer_type=product_type(ops.nn.batch_matmul, "qnn.batch_matmul"),
    qnn_canonicalize=_canonicalize_batch_matmul,
)
def batch_matmul(
    x: Expr,
    y: Expr,
    x_zero_point: Expr,
    y_zero_point: Expr,
    x_scale: Expr,
    y_scale: Expr,
    out_dtype: str = "int32",
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> RelayExpr:
    """A batch of matrix products, x @ y.T by default; the result has the scale x_scale * y_scale.

    Parameters
    ----------
    x, y : relay.Expr
        Integers of three dimensions.
    x_zero_point, y_zero_point, x_scale, y_scale : relay.Expr
        Scalars.
    out_dtype : str
        The dtype of the sums.
    transpose_a, transpose_b : bool
        Whether the matrices come transposed.
    """


# those whose sums are of 32 bits
PRODUCTS = (
    *PLAIN_CONVOLUTIONS, *TRANSPOSED_CONVOLUTIONS, ops.qnn.dense, ops.qnn.contrib_dense_pack,
    ops.qnn.batch_matmul,
)  # fmt: skip
