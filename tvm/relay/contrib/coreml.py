"""What Core ML takes: operators one by one, in functions of `coremlcompiler`."""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.relay.expr import Call

from .offload import Params, have_dtypes, partition_for, shape_of, take

NAME = "coremlcompiler"


def partition_for_coreml(mod: IRModule, params: Params | None = None) -> IRModule:
    """The module with what Core ML takes in functions for it; `params` are values of parameters of `main`."""
    return partition_for(NAME, (), mod, params)


def _is_float(call: Call) -> bool:
    return have_dtypes(call, "float32") and shape_of(call) is not None


def _is_convolution(call: Call) -> bool:
    layouts = str(call.attrs.data_layout), str(call.attrs.kernel_layout)
    return _is_float(call) and layouts == ("NCHW", "OIHW")


def _is_product(call: Call) -> bool:
    return _is_float(call) and not bool(call.attrs.transpose_a) and bool(call.attrs.transpose_b)


take(NAME, "add multiply clip expand_dims nn.relu nn.batch_flatten nn.bias_add", _is_float)
take(NAME, "nn.dense nn.softmax nn.global_avg_pool2d", _is_float)
take(NAME, "nn.conv2d", _is_convolution)
take(NAME, "nn.batch_matmul", _is_product)
