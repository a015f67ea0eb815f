"""A program that names no optimisation level gets the kernels of the highest one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import testing
from tvm.relay.pipeline import fusion, optimization

RNG = np.random.default_rng(0)


def weight(*shape: int, dtype: str = "float32") -> relay.Constant:
    return relay.const((RNG.normal(size=shape) * 4).astype(dtype))


def convolutions() -> tvm.IRModule:
    """Batch norm, residual sums, depthwise and pointwise convolutions."""
    x = relay.var("x", shape=(1, 16, 14, 14))
    y = relay.nn.conv2d(x, weight(32, 16, 3, 3), padding=1, channels=32, kernel_size=3)
    norm = [weight(32), weight(32), weight(32), relay.abs(weight(32)) + relay.const(1.0)]
    y = relay.nn.relu(relay.nn.batch_norm(y, *norm)[0])
    y = relay.nn.conv2d(
        y, weight(32, 1, 3, 3), padding=1, groups=32, channels=32, kernel_size=3
    ) + relay.nn.conv2d(y, weight(32, 32, 1, 1), channels=32, kernel_size=1)
    return tvm.IRModule.from_expr(relay.nn.global_avg_pool2d(y))


def attention() -> tvm.IRModule:
    x = relay.var("x", shape=(8, 32))
    q, k, v = [relay.nn.bias_add(relay.nn.dense(x, weight(32, 32)), weight(32)) for _ in range(3)]
    scores = relay.nn.softmax(relay.nn.dense(q, k))
    return tvm.IRModule.from_expr(relay.nn.dense(scores, relay.transpose(v)) + x)


def quantised() -> tvm.IRModule:
    x = relay.var("x", shape=(1, 16, 8, 8), dtype="uint8")
    zero, scale = relay.const(3), relay.const(0.5)
    w = weight(16, 16, 3, 3, dtype="int8")
    y = relay.qnn.op.conv2d(
        x, w, zero, relay.const(0), scale, scale, kernel_size=(3, 3), channels=16, padding=(1, 1)
    )
    return tvm.IRModule.from_expr(
        relay.qnn.op.requantize(
            y, relay.const(0.25), relay.const(0), scale, zero, out_dtype="uint8"
        )
    )


def recurrent() -> tvm.IRModule:
    mod, params = testing.lstm.get_workload(2, 16)
    return tvm.IRModule.from_expr(relay.build_module.bind_params_by_name(mod["main"], params))


def tied() -> tvm.IRModule:
    """An embedding whose table is the weight of the last layer, of the size that is shared."""
    table = RNG.normal(size=(2048, 256)).astype("float32")
    rows = relay.take(relay.const(table), relay.var("i", shape=(8,), dtype="int64"), axis=0)
    return tvm.IRModule.from_expr(relay.nn.dense(relay.tanh(rows), relay.const(table)))


def fused(mod: tvm.IRModule) -> tvm.IRModule:
    """What the graph and AOT executors' kernels are made from."""
    with tvm.target.Target("llvm"):
        return fusion()(optimization()(mod))


def for_vm(mod: tvm.IRModule) -> tvm.IRModule:
    return relay.vm.VMCompiler().optimize(mod, "llvm")[0]


@pytest.mark.parametrize("optimise", [fused, for_vm])
@pytest.mark.parametrize("model", [convolutions, attention, quantised, recurrent, tied])
def test_kernels_are_those_of_level_three(
    model: Callable[[], tvm.IRModule], optimise: Callable[[tvm.IRModule], tvm.IRModule]
) -> None:
    mod = model()
    default = optimise(mod)
    with tvm.transform.PassContext(opt_level=3):
        tvm.ir.assert_structural_equal(optimise(mod), default)


def test_blocked_layouts_are_used_by_default() -> None:
    optimised = relay.optimize(convolutions(), "llvm")[0]
    names = relay.analysis.list_op_freqs(optimised)
    assert "nn.contrib_conv2d_NCHWc" in names and "nn.conv2d" not in names


@pytest.mark.parametrize("level", [0, 1])
def test_plain_levels_leave_layouts(level: int) -> None:
    with tvm.transform.PassContext(opt_level=level):
        optimised = relay.optimize(convolutions(), "llvm")[0]
    assert relay.analysis.list_op_freqs(optimised)["nn.conv2d"] == 3
