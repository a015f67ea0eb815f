"""What CUTLASS takes: dense layers, batched products and convolutions with their ends.

gelu(nn.bias_add(nn.dense(%x, w), b))   ->   fn (.., Composite="cutlass.dense_bias_gelu_fp16")
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.dataflow_pattern import DFPattern, is_constant, is_op, wildcard
from tvm.relay.expr import Call

from .offload import (
    Params,
    dtype_of,
    has_gelu_numbers,
    is_depthwise,
    make_gelu_pattern,
    nearest_call,
    numbers,
    partition_for,
    shape_of,
)
from .register import register_pattern_table

CONVOLUTION = "nn.conv2d"
TRANSPOSED = "nn.conv2d_transpose"
GRADIENT = "nn.conv2d_backward_weight"


def partition_for_cutlass(mod: IRModule, params: Params | None = None) -> IRModule:
    """The module with what CUTLASS takes in functions for it; constants are their arguments."""
    return partition_for(
        "cutlass",
        pattern_table(),
        mod,
        params,
        is_merged=False,
        takes_data=False,
        binds_constants=False,
    )


def _biased(value: DFPattern) -> DFPattern:
    bias = wildcard()
    return is_op("add")(value, bias) | is_op("nn.bias_add")(value, bias)


def make_gemm_pattern(
    with_bias: bool = True, with_act: str | None = None, out_dtype: str = "float16"
) -> DFPattern:
    """A dense layer, with a bias and `relu` or `gelu` after it."""
    found: DFPattern = is_op("nn.dense")(wildcard(), wildcard())
    found = _biased(found) if with_bias else found
    if with_act is None:
        return found
    return is_op("nn.relu")(found) if with_act == "relu" else make_gelu_pattern(found, out_dtype)


def make_batch_matmul_pattern() -> DFPattern:
    """A batched product."""
    return is_op("nn.batch_matmul")(wildcard(), wildcard())


def make_conv2d_pattern(with_bias: bool = False, with_act: str | None = None) -> DFPattern:
    """A convolution, with a bias and `relu`, `sigmoid`, `silu` or `hardswish` after it."""
    found: DFPattern = is_op(CONVOLUTION)(wildcard(), wildcard())
    found = _biased(found) if with_bias else found
    if with_act is None:
        return found
    if with_act in ("relu", "sigmoid"):
        return is_op({"relu": "nn.relu"}.get(with_act, with_act))(found)
    if with_act == "silu":
        return is_op("multiply")(found, is_op("sigmoid")(found))
    if with_act == "hardswish":
        clipped = is_op("clip")(is_op("add")(found, is_constant()))
        return is_op("multiply")(is_op("divide")(clipped, is_constant()), found)
    raise ValueError(
        f"a convolution for CUTLASS ends in relu, sigmoid, silu or hardswish, got {with_act!r}"
    )


def make_conv2d_transpose_pattern() -> DFPattern:
    """A transposed convolution."""
    return is_op(TRANSPOSED)(wildcard(), wildcard())


def make_conv2d_backward_weight_pattern() -> DFPattern:
    """The gradient of a convolution's weight."""
    return is_op(GRADIENT)(wildcard(), wildcard())


def make_residual_block_pattern(
    tensor_op_out: DFPattern, binary_op: str = "add", with_act: str | None = "relu"
) -> DFPattern:
    """A convolution and another tensor, combined, with an activation after it."""
    residual = wildcard()
    summed = is_op(binary_op)(tensor_op_out, residual) | is_op(binary_op)(residual, tensor_op_out)
    return summed if with_act is None else is_op(f"nn.{with_act}")(summed)


@register_pattern_table("cutlass")
def pattern_table() -> list[Any]:
    """The composite functions, longest first."""
    gemms: list[Any] = [
        ("cutlass.dense_bias_gelu_fp16", make_gemm_pattern(True, "gelu"), _check_gelu),
        ("cutlass.dense_bias_gelu_fp32", make_gemm_pattern(True, "gelu", "float32"), _check_gelu),
        ("cutlass.dense_bias_relu", make_gemm_pattern(True, "relu"), check_gemm),
        ("cutlass.dense_bias", make_gemm_pattern(True), check_gemm),
        ("cutlass.dense", make_gemm_pattern(False), check_gemm),
        ("cutlass.batch_matmul", make_batch_matmul_pattern(), check_batch_matmul),
    ]
    activations = ("hardswish", "silu", "relu", "sigmoid")
    convolutions: list[Any] = [
        (f"cutlass.conv2d_bias_{act}", make_conv2d_pattern(True, act), check_conv2d)
        for act in activations
    ]
    convolutions += [
        ("cutlass.conv2d_bias", make_conv2d_pattern(True), check_conv2d),
        ("cutlass.conv2d", make_conv2d_pattern(), check_conv2d),
    ]
    # a residual block holds the ends of convolutions, but for those that are products themselves
    products = [entry for entry in convolutions if entry[0].endswith(("hardswish", "silu"))]
    starts = [(name, pattern) for name, pattern, _ in convolutions if "_bias" in name]
    residuals: list[Any] = [
        (
            f"{name}_residual_{op}" + (f"_{act}" if act else ""),
            make_residual_block_pattern(pattern, op, act),
            _check_residual,
        )
        for act in ("relu", None)
        for op in ("add", "multiply")
        for name, pattern in starts
    ]
    others: list[Any] = [
        ("cutlass.conv2d_transpose", make_conv2d_transpose_pattern(), check_conv2d_transpose),
        (
            "cutlass.conv2d_backward_weight",
            make_conv2d_backward_weight_pattern(),
            check_conv2d_backward_weight,
        ),
    ]
    return products + residuals + gemms + convolutions[len(products) :] + others


def check_dtype(lhs: RelayExpr, rhs: RelayExpr) -> bool:
    """Whether there are kernels of these operands: float16, float32, and integers of 8 bits."""
    kinds = dtype_of(lhs), dtype_of(rhs)
    integers = {"int8", "uint8"}
    return kinds in (("float16", "float16"), ("float32", "float32")) or set(kinds) <= integers


def check_gemm(found: RelayExpr) -> bool:
    """Whether the dense layer of a match is one of CUTLASS."""
    call = nearest_call(found, "nn.dense")
    return check_dtype(*call.args)


def _check_gelu(found: RelayExpr) -> bool:
    """The numbers of the activation, besides."""
    return has_gelu_numbers(found, nearest_call(found, "nn.dense")) and check_gemm(found)


def check_batch_matmul(found: RelayExpr) -> bool:
    """Whether a batched product has its second operand transposed, and batches of one size."""
    call = nearest_call(found, "nn.batch_matmul")
    shapes = [shape_of(arg) for arg in call.args]
    if None in shapes or bool(call.attrs.transpose_a) or not bool(call.attrs.transpose_b):
        return False
    batches = {shape[0] for shape in shapes if shape is not None}
    return check_dtype(*call.args) and len(batches) == 1


def _is_convolution(call: Call, kernel_layout: str = "OHWI") -> bool:
    attrs = call.attrs
    layouts = str(attrs.data_layout), str(attrs.kernel_layout)
    return layouts == ("NHWC", kernel_layout) and check_dtype(*call.args)


def check_conv2d(found: RelayExpr) -> bool:
    """Whether the convolution of a match is one of CUTLASS: NHWC, OHWI, one group."""
    call = nearest_call(found, CONVOLUTION)
    return _is_convolution(call) and not is_depthwise(call) and int(call.attrs.groups) == 1


def _check_residual(found: RelayExpr) -> bool:
    """The other tensor has the result's shape, besides."""
    combined = found
    if isinstance(combined, Call) and len(combined.args) == 1:
        (combined,) = combined.args
    if not isinstance(combined, Call):
        return False
    shapes = [shape_of(arg) for arg in combined.args]
    return None not in shapes and shapes[0] == shapes[1] and check_conv2d(found)


def check_conv2d_transpose(found: RelayExpr) -> bool:
    """Whether a transposed convolution is one of CUTLASS."""
    call = nearest_call(found, TRANSPOSED)
    return _is_convolution(call, "IHWO") and int(call.attrs.groups) == 1


def check_conv2d_backward_weight(found: RelayExpr) -> bool:
    """Whether the gradient of a weight is one of CUTLASS."""
    call = nearest_call(found, GRADIENT)
    attrs = call.attrs
    return (
        str(attrs.grad_layout) == "NHWC"
        and str(attrs.data_layout) == "NHWC"
        and str(attrs.kernel_layout) == "OHWI"
        and check_dtype(*call.args)
        and set(numbers(attrs.dilation)) == {1}
    )
