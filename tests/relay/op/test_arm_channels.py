"""8-bit convolutions for Arm, whose channels come in groups."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay

ARM = "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu"


def _conv2d(inner: int, outer: int, dtype: str = "int8", groups: int = 1) -> relay.Function:
    x = relay.var("x", shape=(1, 5, 5, inner), dtype=dtype)
    w = relay.var("w", shape=(3, 3, inner // groups, outer), dtype=dtype)
    y = relay.nn.conv2d(
        x, w, kernel_size=(3, 3), channels=outer, groups=groups, data_layout="NHWC",
        kernel_layout="HWIO", out_dtype="int32",
    )  # fmt: skip
    return relay.Function([x, w], y)


def _legal(func: relay.Function, target: str) -> relay.Function:
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    with tvm.target.Target(target):
        return relay.transform.Legalize()(mod)["main"]


def _run(func: relay.Function, values: list[np.ndarray]) -> np.ndarray:
    mod = tvm.IRModule.from_expr(func)
    return relay.create_executor("graph", mod=mod).evaluate()(*values).numpy()


@pytest.mark.parametrize(
    ("target", "channels"),
    [
        (ARM, (8, 8)),
        (f"{ARM} -mattr=+v8.2a,+dotprod", (4, 8)),
        (f"{ARM} -mattr=+v8.2a,+i8mm", (8, 8)),
        ("llvm -device=arm_cpu -mtriple=armv8l-linux-gnu -mattr=+neon", (8, 8)),
    ],
)
def test_channels_fill_groups(target: str, channels: tuple[int, int]) -> None:
    func = _conv2d(3, 5)
    legal = _legal(func, target)
    weights = []

    def visit(node: relay.Expr) -> None:
        if isinstance(node, relay.Call) and node.op.name == "nn.conv2d":
            weights.append(node.args[1].checked_type.concrete_shape)

    relay.analysis.post_order_visit(legal, visit)
    assert weights == [(3, 3, *channels)]
    random = np.random.default_rng(0)
    values = [
        random.integers(-128, 128, p.type_annotation.concrete_shape).astype("int8")
        for p in func.params
    ]
    np.testing.assert_array_equal(_run(legal, values), _run(func, values))


@pytest.mark.parametrize(
    "func", [_conv2d(8, 8), _conv2d(3, 5, "float32"), _conv2d(6, 6, groups=3)], ids=str
)
def test_others_stay(func: relay.Function) -> None:
    legal = _legal(func, ARM)
    tvm.ir.assert_structural_equal(legal.body, func.body, map_free_vars=True)
