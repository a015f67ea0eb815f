"""What cuDNN takes: softmax, convolutions, and convolutions with a bias and an activation."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.dataflow_pattern import DFPattern, is_constant, is_op, wildcard

from .offload import Params, dtype_of, have_dtypes, nearest_call, op_pattern, partition_for, rank_of
from .register import register_pattern_table

FLOATS = ("float16", "float32", "float64")


def partition_for_cudnn(mod: IRModule, params: Params | None = None) -> IRModule:
    """The module with what cuDNN takes in functions for it; `params` are values of parameters of `main`."""
    return partition_for("cudnn", pattern_table(), mod, params, is_merged=False)


@register_pattern_table("cudnn")
def pattern_table() -> list[Any]:
    """The composite functions, longest first."""
    return [
        ("cudnn.softmax", op_pattern("nn.softmax"), _softmax),
        ("cudnn.log_softmax", op_pattern("nn.log_softmax"), _log_softmax),
        ("cudnn.conv2d_bias_act", _conv2d_bias_act(), _conv2d),
        ("cudnn.conv2d", op_pattern("nn.conv2d", arity=2), _conv2d),
    ]


def _conv2d_bias_act() -> DFPattern:
    biased = is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), is_constant())
    return biased.optional(is_op("nn.relu"))


def _softmax(found: RelayExpr) -> bool:
    return have_dtypes(nearest_call(found, "nn.softmax"), *FLOATS)


def _log_softmax(found: RelayExpr) -> bool:
    """Of the last of two axes: that is what the library's function computes."""
    call = nearest_call(found, "nn.log_softmax")
    return have_dtypes(call, *FLOATS) and rank_of(call) == 2 and int(call.attrs.axis) % 2 == 1


def _conv2d(found: RelayExpr) -> bool:
    call = nearest_call(found, "nn.conv2d")
    data, kernel = call.args
    layout = str(call.attrs.data_layout), str(call.attrs.kernel_layout)
    padding = [int(p) for p in call.attrs.padding]
    is_symmetric = len(padding) < 4 or padding[:2] == padding[2:]
    return (
        dtype_of(data) == dtype_of(kernel)
        and dtype_of(data) in (*FLOATS, "int8")
        and layout in (("NCHW", "OIHW"), ("NHWC", "OHWI"))
        and is_symmetric
    )
