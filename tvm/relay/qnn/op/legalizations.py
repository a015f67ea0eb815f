"""Replacing quantised operators by what a target does better; for users' operators and targets.

qnn.conv2d(%int8, %int8, z, w, ..)    ->    qnn.conv2d(%int8 + 128, %int8, z + 128, w, ..)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm.error import OpAttributeInvalid
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import const
from tvm.relay.op.nn.conv import conv2d
from tvm.relay.op.nn.conv_transpose import conv2d_transpose
from tvm.relay.op.nn.dense import dense
from tvm.relay.op.registry import ops
from tvm.target import Target
from tvm.target.codegen import target_has_features
from tvm.target.generic_func import generic_func

from . import convolutions, products
from .aligned_channels import aligned_conv2d, aligned_dense
from .common import along_axis, scalar_value
from .lookup import hardswish_of_arrays, legalize_with
from .op import register_qnn_legalize


def register_qnn_unary_op_legalize(
    op_name: str, floating_point_func: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Let an operator (x, scale, zero_point, output_scale, output_zero_point) become a table.

    Parameters
    ----------
    op_name : str
        The operator.
    floating_point_func : callable
        The function, from an array of float32 to one.
    """
    register_qnn_legalize(op_name, legalize_with(floating_point_func), level=11)


def hardswish_func(x: np.ndarray) -> np.ndarray:
    """x * clip(x + 3, 0, 6) / 6"""
    return hardswish_of_arrays(x)


def get_scalar_from_constant(expr: RelayExpr) -> float:
    """The value of a constant scalar."""
    value = scalar_value(expr)
    if value is None:
        raise OpAttributeInvalid(f"a constant scalar is required, got {type(expr).__name__}")
    return value


def helper_align_up(value: int, aligner: int) -> int:
    """The least multiple of `aligner` that is not below `value`."""
    return -(-value // aligner) * aligner


def is_fast_int8_on_intel() -> bool:
    """Whether the current target multiplies uint8 by int8 numbers in groups."""
    return _promises("sse4.2")


def is_fast_int8_on_arm() -> bool:
    """Whether the current target multiplies int8 numbers in groups of four."""
    return _promises("dotprod")


def _promises(feature: str) -> bool:
    """Whether the current target's own options say that its processor has a feature."""
    target = Target.current()
    if target is None or not (target.attrs.get("mcpu") or target.attrs.get("mattr")):
        return False
    return target_has_features(feature, target)


def helper_no_fast_int8_hw_legalization(
    attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type], relay_op: Callable[..., Any]
) -> RelayExpr:
    """The product in int16, zero points taken off, by an operator such as `relay.nn.conv2d`."""
    axis = _output_axis(attrs)
    factors = []
    for value, zero, along in ((inputs[0], inputs[2], None), (inputs[1], inputs[3], axis)):
        point = zero if along is None else along_axis(zero, len(tensor_type_of(value).shape), along)
        factors.append(ops.subtract(ops.cast(value, dtype="int16"), ops.cast(point, dtype="int16")))
    expr: RelayExpr = relay_op(*factors, **_options(attrs))
    return expr


def helper_change_dtypes_to_uint8_int8(
    attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type], relay_op: Callable[..., Any]
) -> RelayExpr | None:
    """The product with data of uint8 and a kernel of int8; None if it has them."""
    return _with_dtypes(attrs, inputs, relay_op, "uint8", "int8")


def helper_change_dtypes_to_int8(
    attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type], relay_op: Callable[..., Any]
) -> RelayExpr | None:
    """The product of two int8 tensors; None if it has them."""
    return _with_dtypes(attrs, inputs, relay_op, "int8", "int8")


def helper_change_dtypes_to_uint8(
    attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type], relay_op: Callable[..., Any]
) -> RelayExpr | None:
    """The product of two uint8 tensors; None if it has them."""
    return _with_dtypes(attrs, inputs, relay_op, "uint8", "uint8")


def helper_change_dtypes_to_be_same(
    attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type], relay_op: Callable[..., Any]
) -> RelayExpr | None:
    """The product with a kernel of the data's dtype; None if it has that."""
    dtype = str(tensor_type_of(inputs[0]).dtype)
    return _with_dtypes(attrs, inputs, relay_op, dtype, dtype)


def _with_dtypes(
    attrs: Attrs, inputs: Sequence[RelayExpr], relay_op: Callable[..., Any], *wanted: str
) -> RelayExpr | None:
    """The quantised product whose factors stand for the same numbers in other dtypes."""
    values, zeros = list(inputs[:2]), list(inputs[2:4])
    have = [str(tensor_type_of(value).dtype) for value in values]
    if have == list(wanted) or not {*have} <= {"int8", "uint8"}:
        return None
    for i, (before, after) in enumerate(zip(have, wanted, strict=True)):
        if before != after:
            move = 128 if after == "uint8" else -128
            wide = ops.add(ops.cast(values[i], dtype="int16"), const(move, "int16"))
            values[i] = ops.cast(wide, dtype=after)
            zeros[i] = ops.add(zeros[i], const(move, "int32"))
    found: RelayExpr | None = relay_op(*values, *zeros, *inputs[4:], **_options(attrs))
    return found


def _options(attrs: Attrs) -> dict[str, Any]:
    return {str(key): value for key, value in attrs.items()}


def _output_axis(attrs: Attrs) -> int:
    layout = getattr(attrs, "kernel_layout", "")
    return int(layout.index("O")) if layout else 0


def _on_cpu(
    quantized: Callable[..., Any], plain: Callable[..., Any]
) -> Callable[[Attrs, Sequence[RelayExpr], Sequence[Type]], RelayExpr | None]:
    def legalize(
        attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
    ) -> RelayExpr | None:
        """The product in dtypes that the current target multiplies."""
        if is_fast_int8_on_intel():
            return helper_change_dtypes_to_uint8_int8(attrs, inputs, types, quantized)
        return helper_no_fast_int8_hw_legalization(attrs, inputs, types, plain)

    return legalize


def _on_arm(
    quantized: Callable[..., Any], plain: Callable[..., Any]
) -> Callable[[Attrs, Sequence[RelayExpr], Sequence[Type]], RelayExpr | None]:
    def legalize(
        attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
    ) -> RelayExpr | None:
        """The product of factors of one dtype, whose widening products every ARM processor has."""
        is_depthwise = getattr(attrs, "groups", 1) != 1
        is_int8 = getattr(attrs, "data_layout", "") == "NHWC" and not is_depthwise
        if is_int8 or is_fast_int8_on_arm():
            return helper_change_dtypes_to_be_same(attrs, inputs, types, quantized)
        return helper_no_fast_int8_hw_legalization(attrs, inputs, types, plain)

    return legalize


def _on_gpu(
    quantized: Callable[..., Any],
) -> Callable[[Attrs, Sequence[RelayExpr], Sequence[Type]], RelayExpr | None]:
    def legalize(
        attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type]
    ) -> RelayExpr | None:
        """The product of two int8 tensors, which GPUs sum in groups of four."""
        return helper_change_dtypes_to_int8(attrs, inputs, types, quantized)

    return legalize


def _by_target(name: str, quantized: Callable[..., Any], plain: Callable[..., Any]) -> Any:
    """How a product is rewritten, by the keys of the target; users may register more."""

    def legalize(attrs: Attrs, inputs: Sequence[RelayExpr], types: Sequence[Type]) -> None:
        """From attributes, arguments and types (the result's last) to a product or None."""

    legalize.__name__ = legalize.__qualname__ = name
    generic = generic_func(legalize)
    generic.register("cpu")(_on_cpu(quantized, plain))
    generic.register("arm_cpu")(_on_arm(quantized, plain))
    generic.register(["cuda", "gpu"])(_on_gpu(quantized))
    return generic


qnn_conv2d_legalize = legalize_qnn_conv2d = _by_target(
    "qnn_conv2d_legalize", convolutions.conv2d, conv2d
)
qnn_conv2d_transpose_legalize = legalize_qnn_conv2d_transpose = _by_target(
    "qnn_conv2d_transpose_legalize", convolutions.conv2d_transpose, conv2d_transpose
)
qnn_dense_legalize = legalize_qnn_dense = _by_target("qnn_dense_legalize", products.dense, dense)
qnn_conv2d_legalize.register("hexagon")(aligned_conv2d)
qnn_dense_legalize.register("hexagon")(aligned_dense)

# what the public pass does to products; a build keeps them, its kernels choose their instructions
PRODUCT_LEGALIZATIONS: Mapping[Op, Callable[..., RelayExpr | None]] = {
    ops.qnn.conv2d: qnn_conv2d_legalize,
    ops.qnn.conv2d_transpose: qnn_conv2d_transpose_legalize,
    ops.qnn.dense: qnn_dense_legalize,
}
