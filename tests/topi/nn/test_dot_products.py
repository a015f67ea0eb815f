"""Convolutions and dense layers of int8 and bfloat16: exact sums, and the instructions used."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm import te, topi
from tvm.topi.nn.conv2d.dot_x86 import schedule_conv2d_NCHWc_int8
from tvm.topi.nn.dense.dot_x86 import dense_dot_block, schedule_dense_dot

PLAIN = "llvm -mcpu=core-avx2"
KINDS = {"int8": ("uint8", "int8", "int32", 4), "bfloat16": ("bfloat16", "bfloat16", "float32", 2)}


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype == "bfloat16":
        return rng.normal(size=shape).astype(ml_dtypes.bfloat16)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def source(
    outputs: te.Tensor, inputs: list[te.Tensor], schedule: Any, target: str
) -> tuple[Any, str]:
    where = tvm.target.Target(target)
    with where:
        func = tvm.build(schedule([outputs]), [*inputs, outputs], where)
    return func, func.get_source("asm")


def assert_close(found: np.ndarray, expected: np.ndarray, kind: str) -> None:
    if kind == "int8":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)


def run_conv(kind: str, target: str, shape: dict[str, int], seed: int) -> str:
    """Compare with numpy; returns the assembly."""
    data_type, weight_type, sums, group = KINDS[kind]
    rng = np.random.default_rng(seed)
    c, o, ic, oc = shape["c"], shape["o"], shape["ic"], shape["oc"]
    size, width, kernel = shape["size"], shape["size"] + shape["wider"], shape["kernel"]
    x = numbers(rng, (shape["n"], c, size, width), data_type)
    w = numbers(rng, (o, c, kernel, kernel), weight_type)
    blocked = topi.layout.transform_array(x, "NCHW", f"NCHW{ic}c")
    packed = topi.layout.transform_array(w, "OIHW", f"OIHW{ic // group}i{oc}o{group}i")
    a = te.placeholder(blocked.shape, data_type, name="a")
    b = te.placeholder(packed.shape, weight_type, name="b")
    pads = (shape["top"], shape["left"], shape["bottom"], shape["right"])
    steps = (shape["stride"], shape["dilation"])
    conv = topi.nn.conv2d_NCHWc_int8(
        a, b, steps[0], pads, steps[1], f"NCHW{ic}c", f"NCHW{oc}c", sums, group
    )
    out = te.compute(conv.shape, lambda *i: conv(*i) + conv(*i), name="twice", tag="elemwise")
    func, text = source(out, [a, b], schedule_conv2d_NCHWc_int8, target)
    found = tvm.nd.empty(tuple(int(d) for d in out.shape), sums)
    func(tvm.nd.array(blocked), tvm.nd.array(packed), found)
    expected = 2 * convolved(x.astype(sums), w.astype(sums), pads, *steps)
    assert_close(found.numpy(), topi.layout.transform_array(expected, "NCHW", f"NCHW{oc}c"), kind)
    return text


def convolved(
    x: np.ndarray, w: np.ndarray, pads: tuple[int, ...], stride: int, dilation: int
) -> np.ndarray:
    top, left, bottom, right = pads
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    window = [(k - 1) * dilation + 1 for k in w.shape[2:]]
    views = np.lib.stride_tricks.sliding_window_view(padded, window, axis=(2, 3))
    views = views[:, :, ::stride, ::stride, ::dilation, ::dilation]
    return np.einsum("nchwyx,ocyx->nohw", views, w)


def random_conv(rng: np.random.Generator) -> dict[str, int]:
    def pick(*values: int) -> int:
        return int(rng.choice(values))

    ic = pick(4, 8, 16, 16)
    kernel, dilation = pick(1, 1, 3, 5), pick(1, 1, 2)
    return {
        "n": pick(1, 1, 2), "c": ic * pick(1, 2, 3), "o": 16 * pick(1, 2, 3), "ic": ic, "oc": 16,
        "size": (kernel - 1) * dilation + pick(1, 3, 7, 14), "wider": pick(0, 1, 5),
        "kernel": kernel, "stride": pick(1, 1, 2), "dilation": dilation,
        "top": pick(0, 1), "left": pick(0, 1, 2), "bottom": pick(0, 1), "right": pick(0, 1),
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_convolution_of_narrow_numbers_agrees_with_numpy(kind: str, seed: int) -> None:
    run_conv(kind, "llvm", random_conv(np.random.default_rng(seed)), seed)


@pytest.mark.parametrize("kind", KINDS)
def test_convolution_without_the_instruction_agrees_with_numpy(kind: str) -> None:
    text = run_conv(kind, PLAIN, random_conv(np.random.default_rng(7)), 7)
    assert "vpdpbusd" not in text and "vdpbf16ps" not in text


def run_dense(kind: str, target: str, rows: int, inner: int, units: int, block: int) -> str:
    data_type, weight_type, sums, group = KINDS[kind]
    rng = np.random.default_rng(rows + inner)
    x, w = numbers(rng, (rows, inner), data_type), numbers(rng, (units, inner), weight_type)
    packed = topi.layout.transform_array(w, "NC", f"NC{block}n{group}c")
    a = te.placeholder(x.shape, data_type, name="a")
    b = te.placeholder(packed.shape, weight_type, name="b")
    dense = topi.nn.dense_dot(a, b, None, sums)
    out = te.compute(dense.shape, lambda *i: dense(*i) + dense(*i), name="twice", tag="elemwise")
    func, text = source(out, [a, b], schedule_dense_dot, target)
    found = tvm.nd.empty((rows, units), sums)
    func(tvm.nd.array(x), tvm.nd.array(packed), found)
    assert_close(found.numpy(), 2 * (x.astype(sums) @ w.astype(sums).T), kind)
    return text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "rows, inner, units, block",
    [(1, 64, 64, 32), (12, 32, 48, 16), (19, 12, 64, 64), (7, 100, 32, 32), (30, 8, 128, 64)],
)
def test_dense_layer_of_narrow_numbers_agrees_with_numpy(
    kind: str, rows: int, inner: int, units: int, block: int
) -> None:
    run_dense(kind, "llvm", rows, inner, units, block)


@pytest.mark.parametrize("kind", KINDS)
def test_dense_layer_without_the_instruction_agrees_with_numpy(kind: str) -> None:
    text = run_dense(kind, PLAIN, 12, 32, 48, 16)
    assert "vpdpbusd" not in text and "vdpbf16ps" not in text


# a loop without another one in it: its label, its body, the jump back
LOOP = re.compile(r"^(\.L\w+):(?:(?!^\.L)[\s\S])*?^\s+j\w+\s+\1$", re.MULTILINE)
INSTRUCTIONS = [
    ("llvm -mcpu=cascadelake", "int8", "vpdpbusd", "zmm"),
    ("llvm -mcpu=alderlake", "int8", "vpdpbusd", "ymm"),
    ("llvm -mcpu=cooperlake", "bfloat16", "vdpbf16ps", "zmm"),
]


def assembly(out: te.Tensor, inputs: list[te.Tensor], schedule: Any, target: str) -> str:
    with tvm.target.Target(target):
        return tvm.build(schedule([out]), [*inputs, out], target).get_source("asm")


def assert_sums_stay_in_registers(text: str, instruction: str, register: str) -> None:
    loops = [m[0] for m in LOOP.finditer(text) if m[0].count(instruction) >= 8]
    assert loops
    for loop in loops:
        assert "(%rsp" not in loop
        assert f"%{register}" in loop
        assert not re.search(r"vmov[ua]?(ps|dq\w+)\s+%[yz]mm\d+, .*\(", loop)


@pytest.mark.parametrize(
    "target, kind, instruction, register, kernel, size",
    [
        *[(*INSTRUCTIONS[0], kernel, size) for kernel, size in ((1, 28), (3, 14), (3, 7))],
        (*INSTRUCTIONS[1], 1, 28),
        *[(*INSTRUCTIONS[2], kernel, size) for kernel, size in ((1, 28), (3, 7))],
    ],
)
def test_inner_loops_of_convolutions_keep_their_sums_in_registers(
    target: str, kind: str, instruction: str, register: str, kernel: int, size: int
) -> None:
    data_type, weight_type, sums, group = KINDS[kind]
    block = 16 if register == "zmm" else 8
    a = te.placeholder((1, 128 // block, size, size, block), data_type)
    shape = (256 // block, 128 // block, kernel, kernel, block // group, block, group)
    b = te.placeholder(shape, weight_type)
    layout = f"NCHW{block}c"
    conv = topi.nn.conv2d_NCHWc_int8(a, b, 1, kernel // 2, 1, layout, layout, sums, group)
    out = te.compute(conv.shape, lambda *i: conv(*i) + conv(*i), tag="elemwise")
    text = assembly(out, [a, b], schedule_conv2d_NCHWc_int8, target)
    assert_sums_stay_in_registers(text, instruction, register)


@pytest.mark.parametrize("target, kind, instruction, register", INSTRUCTIONS)
@pytest.mark.parametrize("rows", [128, 197])
def test_inner_loops_of_dense_layers_keep_their_sums_in_registers(
    target: str, kind: str, instruction: str, register: str, rows: int
) -> None:
    data_type, weight_type, sums, group = KINDS[kind]
    where = tvm.target.Target(target)
    found = dense_dot_block(rows, 768, 768, data_type, weight_type, where)
    assert found is not None and found[1] == group
    a = te.placeholder((rows, 768), data_type)
    b = te.placeholder((768 // found[0], 768 // group, found[0], group), weight_type)
    dense = topi.nn.dense_dot(a, b, None, sums)
    out = te.compute(dense.shape, lambda *i: dense(*i) + dense(*i), tag="elemwise")
    text = assembly(out, [a, b], schedule_dense_dot, target)
    assert_sums_stay_in_registers(text, instruction, register)
