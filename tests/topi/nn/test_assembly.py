"""The inner loops of products: multiplications on registers, nothing on the stack."""

from __future__ import annotations

import re

import pytest

import tvm
from tvm import te, topi
from tvm.topi.x86.conv2d import conv2d_NCHWc_winograd

# a loop without another one in it: its label, its body, the jump back
LOOP = re.compile(r"^(\.L\w+):(?:(?!^\.L)[\s\S])*?^\s+j\w+\s+\1$", re.MULTILINE)

# one value of the data in all lanes; constants of the transforms lie beside the code
SPREAD = re.compile(r"vbroadcastss\s+\S*\(%r(?!ip|sp)|\(%r(?!ip|sp)[^)]*\)\{1to16\}")


def _inner_loops(
    outputs: list[te.Tensor], schedule: object, target: str, least: int = 8
) -> list[str]:
    """The innermost loops that multiply and add."""
    with tvm.target.Target(target):
        s = schedule([outputs[-1]])  # type: ignore[operator]
        text = tvm.build(s, outputs, target).get_source("asm")
    return [loop[0] for loop in LOOP.finditer(text) if loop[0].count("vfmadd") >= least]


def _blocked(channels: int, out_channels: int, size: int, lanes: int) -> list[te.Tensor]:
    data = te.placeholder((1, channels // lanes, size, size, lanes))
    weight = te.placeholder((out_channels // lanes, channels // lanes, 3, 3, lanes, lanes))
    layout = f"NCHW{lanes}c"
    out = topi.nn.relu(topi.nn.conv2d_NCHWc(data, weight, 1, 1, 1, layout, layout))
    return [data, weight, out]


@pytest.mark.parametrize("target, lanes", [("llvm -mcpu=x86-64-v4", 16), ("llvm -mcpu=haswell", 8)])
@pytest.mark.parametrize(
    "channels, out_channels, size", [(64, 64, 56), (512, 512, 7), (512, 64, 14)]
)
def test_plain_convolution_keeps_its_sums_in_registers(
    channels: int, out_channels: int, size: int, target: str, lanes: int
) -> None:
    tensors = _blocked(channels, out_channels, size, lanes)
    loops = _inner_loops(tensors, topi.x86.schedule_conv2d_NCHWc, target)
    assert loops
    for loop in loops:
        _assert_on_registers(loop)


@pytest.mark.parametrize("channels, size, tile", [(64, 56, 4), (128, 28, 4), (256, 14, 2)])
def test_winograd_convolution_keeps_its_sums_in_registers(
    channels: int, size: int, tile: int
) -> None:
    target = "llvm -mcpu=x86-64-v4"
    chunks = channels // 16
    data = te.placeholder((1, chunks, size, size, 16))
    weight = te.placeholder((chunks // 2, tile + 2, tile + 2, chunks, 16, 32))
    with tvm.target.Target(target):
        out = conv2d_NCHWc_winograd(data, weight, 1, tile, "NCHW16c", "NCHW16c")
    schedule = topi.x86.schedule_conv2d_NCHWc_winograd
    loops = _inner_loops([data, weight, topi.nn.relu(out)], schedule, target)
    products = [loop for loop in loops if SPREAD.search(loop)]
    assert products
    for loop in products:
        _assert_on_registers(loop)


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v4", "llvm -mcpu=haswell"])
@pytest.mark.parametrize("rows, units, inner", [(128, 768, 768), (197, 3072, 768), (1, 1024, 512)])
def test_packed_dense_layer_keeps_its_sums_in_registers(
    rows: int, units: int, inner: int, target: str
) -> None:
    block = topi.x86.dense.packed_columns(rows, units, inner, "float32", tvm.target.Target(target))
    data, weight = te.placeholder((rows, inner)), te.placeholder((units // block, inner, block))
    out = topi.nn.relu(topi.nn.dense_pack(data, weight))
    loops = _inner_loops([data, weight, out], topi.x86.schedule_dense_pack, target)
    assert loops or rows == 1
    for loop in loops:
        _assert_on_registers(loop)


@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v4", "llvm -mcpu=haswell"])
@pytest.mark.parametrize("queries, width", [(128, 64), (197, 64), (77, 40)])
def test_attention_keeps_both_sums_in_registers(queries: int, width: int, target: str) -> None:
    shape = (12, queries, width)
    config = topi.x86.choose_attention(shape, shape, "float32", tvm.target.Target(target))
    q, k, v = [te.placeholder(shape, name=name) for name in "qkv"]
    out = topi.nn.attention(q, k, v, scale=0.125, config=config)
    loops = _inner_loops([q, k, v, out], topi.x86.schedule_attention, target)
    products = [loop for loop in loops if SPREAD.search(loop)]
    assert len(products) >= 2
    for loop in products:
        _assert_on_registers(loop)


def _assert_on_registers(loop: str) -> None:
    assert "(%rsp" not in loop
    assert not re.search(r"vmovu?a?ps\s+%[zy]mm\d+, .*\(", loop), "sums are stored in the loop"


@pytest.mark.parametrize("columns", [14, 50, 77])
def test_sums_of_columns_that_vectors_do_not_divide_stay_in_registers(columns: int) -> None:
    target = "llvm -mcpu=x86-64-v4"
    data = te.placeholder((32, 100, columns))
    with tvm.target.Target(target):
        total = topi.sum(data, 1)
        text = tvm.build(topi.x86.schedule_reduce([total]), [data, total], target).get_source("asm")
    loops = [loop[0] for loop in LOOP.finditer(text) if loop[0].count("vaddps") >= 4]
    assert loops
    for loop in loops:
        assert "%rsp" not in loop and "%rbp" not in loop
        assert not re.search(r"vmov\S+\s+%[xyz]mm\d+, \S*\(", loop)  # no store


@pytest.mark.parametrize("rows, columns", [(1, 333), (1, 768), (8, 10), (12, 50)])
def test_plain_products_keep_their_sums_in_registers(rows: int, columns: int) -> None:
    a, b = te.placeholder((rows, 128)), te.placeholder((128, columns))
    tensors = [a, b, topi.nn.matmul(a, b)]
    loops = _inner_loops(tensors, topi.x86.schedule_dense_nopack, "llvm -mcpu=x86-64-v4", 7)
    assert loops
    for loop in loops:
        _assert_on_registers(loop)
