"""Convolutions to an open height and width: tiles of pixels."""

from __future__ import annotations

import re

import pytest

import tvm
from tvm import te, tir, topi
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
