"""Convolutions of each channel by itself in a plain layout: numbers, registers, and who keeps the layout."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tvm
from tests.topi.common import check
from tests.topi.nn.test_assembly import _inner_loops
from tvm import relay, te, topi
from tvm.topi.nn.conv2d.compute import conv
from tvm.topi.nn.conv2d.rows_cpu import is_by_channel

# data, multiplier, window, strides, padding (before, then behind), dilations
CASES = [
    ((1, 3, 9, 33), 1, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1)),
    ((2, 5, 13, 17), 1, (5, 3), (1, 1), (0, 2, 3, 0), (1, 1)),
    ((1, 4, 7, 14), 2, (3, 3), (2, 1), (1, 1, 0, 1), (1, 1)),
    ((1, 6, 31, 63), 1, (3, 3), (2, 2), (0, 1, 0, 1), (1, 1)),
    ((1, 2, 12, 50), 1, (3, 5), (1, 1), (2, 4, 2, 4), (2, 2)),
    ((1, 3, 16, 32), 1, (9, 9), (1, 1), (4, 4, 4, 4), (1, 1)),
    ((2, 7, 100), 1, (31,), (1,), (15, 15), (1,)),
    ((1, 2, 5, 6, 24), 1, (3, 3, 3), (1, 1, 1), (1, 1, 1, 1, 1, 1), (1, 1, 1)),
]


def _reference(data, weight, strides, padding, dilations):  # type: ignore[no-untyped-def]
    rank = len(strides)
    before, behind = padding[:rank], padding[rank:]
    padded = np.pad(data, [(0, 0), (0, 0), *zip(before, behind, strict=True)])
    padded = np.repeat(padded, weight.shape[0] // data.shape[1], axis=1)
    window = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilations, strict=True)]
    axes = tuple(range(2, 2 + rank))
    views = np.lib.stride_tricks.sliding_window_view(padded, window, axis=axes)
    views = views[(slice(None), slice(None), *[slice(None, None, s) for s in strides])]
    views = views[(..., *[slice(None, None, d) for d in dilations])]
    kernel = weight.reshape(1, weight.shape[0], *[1] * rank, *weight.shape[2:])
    return np.maximum((views * kernel).sum(tuple(range(-rank, 0))), 0)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=core-avx2"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_of_channels_agree_with_numpy(case: tuple, target: str) -> None:
    shape, multiplier, window, *steps = case
    data = te.placeholder(shape, name="data")
    weight = te.placeholder((shape[1] * multiplier, 1, *window), name="weight")
    layout = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[len(window)]
    out = topi.nn.relu(conv(data, weight, *steps, shape[1], layout))
    for threads in (1, 2):
        tvm.get_global_func("runtime.config_threadpool")(1, threads)
        check(
            [data, weight, out],
            topi.x86.schedule_conv2d,
            lambda x, w: _reference(x, w, *steps),
            target,
        )
    tvm.get_global_func("runtime.config_threadpool")(0, 0)


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v4", "llvm -mcpu=haswell"])
def test_sums_of_rows_stay_in_registers(target: str) -> None:
    data, weight = te.placeholder((1, 8, 56, 64)), te.placeholder((8, 1, 3, 3))
    out = topi.nn.relu(topi.nn.depthwise_conv2d_nchw(data, weight, 1, 1, 1))
    loops = _inner_loops([data, weight, out], topi.x86.schedule_conv2d, target)
    assert loops and all(not re.search(r"v?mov\w+\s+%[xyz]mm\d+, .*\(%rsp", loop) for loop in loops)


def test_rows_that_leave_vectors_empty_are_not_taken() -> None:
    with tvm.target.Target("llvm -mcpu=x86-64-v4"):
        for columns, is_taken in ((14, True), (32, True), (7, True), (9, False), (17, False)):
            data, weight = te.placeholder((1, 8, 9, columns)), te.placeholder((8, 1, 3, 3))
            out = topi.nn.depthwise_conv2d_nchw(data, weight, 1, 1, 1)
            assert is_by_channel(out.op, out) is is_taken, columns


def _layouts(build) -> list[str]:  # type: ignore[no-untyped-def]
    data = relay.var("data", shape=(1, 16, 32, 32))
    mod = tvm.IRModule.from_expr(build(data))
    with tvm.transform.PassContext(opt_level=3):
        mod, _ = relay.optimize(mod, "llvm -mcpu=x86-64-v4", {})
    calls: list[str] = []

    def visit(node: relay.Expr) -> None:
        if isinstance(node, relay.Call) and "conv2d" in getattr(node.op, "name", ""):
            calls.append(node.op.name)

    relay.analysis.post_order_visit(mod["main"], visit)
    return calls


def test_plain_data_stays_plain_and_blocked_data_blocked() -> None:
    def by_channel(x: relay.Expr) -> relay.Expr:
        weight = relay.const(np.ones((16, 1, 3, 3), "float32"))
        return relay.nn.conv2d(x, weight, padding=(1, 1), groups=16)

    def mixing(x: relay.Expr) -> relay.Expr:
        return relay.nn.conv2d(x, relay.const(np.ones((16, 16, 1, 1), "float32")))

    blocked = "nn.contrib_depthwise_conv2d_NCHWc"
    assert _layouts(by_channel) == ["nn.conv2d"]
    assert _layouts(lambda x: by_channel(mixing(x)))[1:] == [blocked]
    data = relay.var("data", shape=(1, 32, 32, 16))
    turned = by_channel(relay.transpose(data, (0, 3, 1, 2)))
    with tvm.transform.PassContext(opt_level=3):
        mod, _ = relay.optimize(tvm.IRModule.from_expr(turned), "llvm -mcpu=x86-64-v4", {})
    assert blocked in str(mod)
