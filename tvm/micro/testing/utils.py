"""Models to try programs in C with."""

from __future__ import annotations

from tvm import relay
from tvm.ir.module import IRModule
from tvm.relay.op.nn.conv import conv2d
from tvm.relay.transform import InferType


def get_conv2d_relay_module() -> IRModule:
    """A convolution of int8 data."""
    data = relay.var("data", shape=(1, 3, 64, 64), dtype="int8")
    weight = relay.var("weight", shape=(8, 3, 5, 5), dtype="int8")
    conv = conv2d(data, weight, padding=(2, 2), kernel_size=(5, 5), channels=8, out_dtype="int32")
    mod: IRModule = InferType()(IRModule.from_expr(relay.Function([data, weight], conv)))
    return mod
