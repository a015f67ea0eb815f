"""Convolutions to an open height and width: tiles of pixels."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tvm
from tvm import relay, te, tir, topi
from tvm.tir.stmt_functor import post_order_visit


def lowered(window: int, stride: int, padding: int) -> tir.PrimFunc:
    height, width = tir.SizeVar("height", "int32"), tir.SizeVar("width", "int32")
    data = te.placeholder((1, 2, height, width, 16), name="data")
    kernel = te.placeholder((4, 2, window, window, 16, 16), name="kernel")
    with tvm.target.Target("llvm -mcpu=znver4"):
        padded = topi.x86.conv2d.pixel_tile(kernel, 1, "float32").padded
        layouts = ("NCHW16c", "NCHW16c", "float32")
        out = topi.nn.conv2d_NCHWc(data, kernel, stride, padding, 1, *layouts, padded_pixels=padded)
        out = topi.nn.relu(out)
        sch = topi.x86.schedule_conv2d_NCHWc([out])
        return tvm.lower(sch, [data, kernel, out])["main"]


@pytest.mark.parametrize(
    ("window", "stride", "padding"), [(1, 1, 0), (3, 1, 1), (3, 2, 1), (3, 2, 0)]
)
def test_no_condition_stands_in_the_sums(window: int, stride: int, padding: int) -> None:
    sums: list[tir.For] = []

    def visit(node: tir.Node) -> None:
        if isinstance(node, tir.For) and node.loop_var.name.startswith("ic_inner"):
            sums.append(node)

    func = lowered(window, stride, padding)
    post_order_visit(func.body, visit)
    assert len(sums) == 2  # full tiles, and the last one
    for loop in sums:
        assert "if " not in str(loop)
    assert "likely" not in str(sums[0]) and "likely" in str(sums[1])


def test_sums_of_a_tile_stay_in_registers() -> None:
    assembly = tvm.build(lowered(3, 1, 1), target="llvm -mcpu=znver4").get_source("asm")
    loops = re.findall(r"\n(\.L\w+):\n((?:[^.\n][^\n]*\n)+?)\tj\w+\t\1\n", assembly)
    inner = [body for _, body in loops if body.count("vfmadd") >= 16]
    assert inner
    assert not any(re.search(r"vmovups\t%zmm\d+, .*%rsp", body) for body in inner)


@pytest.mark.parametrize(
    ("size", "is_padded", "suits"),
    [(17, False, True), (79, False, True), (56, False, False), (56, True, False)],
)
def test_known_extents_that_no_tile_divides_suit_pixels(
    size: int, is_padded: bool, suits: bool
) -> None:
    kernel = te.placeholder((8, 4, 1, 1, 8, 8))
    with tvm.target.Target("llvm -mcpu=znver3"):
        found = topi.x86.conv2d.suits_pixels(kernel, 1, (size, size), is_padded, "float32")
        assert found is suits
        with tvm.autotvm.apply_history_best([]):
            assert not topi.x86.conv2d.suits_pixels(kernel, 1, (size, size), is_padded, "float32")


@pytest.mark.parametrize(("window", "stride"), [(1, 1), (1, 2), (3, 2)])
def test_known_extents_by_pixels(window: int, stride: int) -> None:
    size, rng = 37, np.random.default_rng(0)
    x = relay.var("x", shape=(2, 16, size, size))
    weight = rng.normal(size=(32, 16, window, window)).astype("float32")
    y = relay.nn.conv2d(x, relay.const(weight), strides=stride, kernel_size=window, channels=32)
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(y)))
    data = rng.normal(size=(2, 16, size, size)).astype("float32")
    results = []
    for level in (0, 3):
        with tvm.transform.PassContext(opt_level=level):
            run = relay.create_executor("graph", mod, tvm.cpu(), "llvm -mcpu=x86-64-v3").evaluate()
        results.append(run(data).numpy())
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)
