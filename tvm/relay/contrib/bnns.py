"""What Apple's BNNS takes: convolutions and dense layers with their ends, and batched products."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.dataflow_pattern import DFPattern, is_constant, is_op, wildcard
from tvm.relay.expr import Call
from tvm.relay.transform import (
    DynamicToStatic,
    FoldConstant,
    FoldScaleAxis,
    SimplifyInference,
)

from .offload import (
    Params,
    has_gelu_numbers,
    have_dtypes,
    make_gelu_pattern,
    nearest_call,
    partition_for,
    rank_of,
    shape_of,
    take,
)
from .register import register_pattern_table


def partition_for_bnns(mod: IRModule, params: Params | None = None) -> IRModule:
    """The module with what BNNS takes in functions for it; `params` are values of parameters of `main`."""
    prepare = [
        SimplifyInference(),
        FoldConstant(),
        FoldScaleAxis(),
        DynamicToStatic(),
        FoldConstant(),
    ]
    return partition_for("bnns", pattern_table(), mod, params, prepare=prepare, is_merged=False)


def make_conv_pattern(with_bias: bool = True, activation: str | None = None) -> DFPattern:
    """A convolution of a constant weight, with a bias and an activation after it."""
    found: DFPattern = is_op("nn.conv2d")(wildcard(), is_constant())
    if with_bias:
        found = is_op("add")(found, is_constant()) | is_op("nn.bias_add")(found, is_constant())
    return found if activation is None else is_op(activation)(found)


def make_dense_pattern(with_bias: bool = True, with_gelu: bool = False) -> DFPattern:
    """A dense layer of a constant weight, with a bias and the Gaussian error's unit after it."""
    found: DFPattern = is_op("nn.dense")(wildcard(), is_constant())
    if with_bias:
        found = is_op("add")(found, is_constant()) | is_op("nn.bias_add")(found, is_constant())
    return make_gelu_pattern(found, "float32") if with_gelu else found


@register_pattern_table("bnns")
def pattern_table() -> list[Any]:
    """The composite functions, longest first."""
    table: list[Any] = [
        (f"bnns.conv2d{'_bias' if with_bias else ''}_{activation.removeprefix('nn.')}",
         make_conv_pattern(with_bias, activation), check_conv)
        for activation in ("nn.relu", "sigmoid") for with_bias in (True, False)
    ]  # fmt: skip
    return [
        *table,
        ("bnns.conv2d_bias", make_conv_pattern(), check_conv),
        ("bnns.dense_bias_gelu", make_dense_pattern(with_gelu=True), _check_dense_gelu),
        ("bnns.dense_bias", make_dense_pattern(), check_dense),
    ]


def check_conv(found: RelayExpr) -> bool:
    """Whether the convolution of a match is one of BNNS."""
    return _is_convolution(nearest_call(found, "nn.conv2d"))


def check_dense(found: RelayExpr) -> bool:
    """Whether the dense layer of a match is of float32."""
    return have_dtypes(nearest_call(found, "nn.dense"), "float32")


def _check_dense_gelu(found: RelayExpr) -> bool:
    return has_gelu_numbers(found, nearest_call(found, "nn.dense")) and check_dense(found)


def _is_convolution(call: Call) -> bool:
    attrs = call.attrs
    return (
        rank_of(call.args[0]) == 4
        and shape_of(call.args[0]) is not None
        and str(attrs.data_layout) == "NCHW"
        and str(attrs.kernel_layout) == "OIHW"
        and have_dtypes(call, "float32")
    )


def _is_product(call: Call) -> bool:
    is_second_given_transposed = not bool(call.attrs.transpose_a) and bool(call.attrs.transpose_b)
    return is_second_given_transposed and have_dtypes(call, "float32")


take("bnns", "nn.conv2d", _is_convolution)
take("bnns", "nn.dense", lambda call: have_dtypes(call, "float32"))
take("bnns", "nn.batch_matmul", _is_product)
