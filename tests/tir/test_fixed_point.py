"""Fixed-point products: exact against Python's integers, in the interpreter and compiled."""

from collections.abc import Callable

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.tir.interp import interpret

SIZE = 64


def rounded(value: int, shift: int) -> int:
    """``round(value * 2**-shift)`` with halves rounded up."""
    return (value + (1 << (shift - 1))) >> shift if shift > 0 else value << -shift


def both(compute: Callable[..., tvm.ir.PrimExpr], *arrays: np.ndarray, lanes: int) -> np.ndarray:
    """What compiled code and the interpreter, which must agree, compute element by element."""
    inputs = [te.placeholder((SIZE,), name=f"a{i}", dtype="int32") for i in range(len(arrays))]
    out = te.compute((SIZE,), lambda i: compute(*[t[i] for t in inputs]), name="out")
    s = te.create_schedule(out.op)
    if lanes > 1:
        s[out].vectorize(s[out].split(out.op.axis[0], factor=lanes)[1])
    func = tvm.build(s, [*inputs, out], "llvm")
    result, reference = tvm.nd.array(np.zeros(SIZE, "int32")), np.zeros(SIZE, "int32")
    func(*[tvm.nd.array(a) for a in arrays], result)
    lowered = tvm.lower(te.create_schedule(out.op), [*inputs, out])["main"]
    interpret(lowered, *arrays, reference)
    np.testing.assert_array_equal(result.numpy(), reference)
    return reference


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("s", [-9, 0, 4])
def test_one_shift_for_all(s: int, lanes: int) -> None:
    x = np.random.default_rng(0).integers(-(1 << 26), 1 << 26, SIZE).astype("int32")
    factor = 1395864371
    got = both(lambda v: tir.q_multiply_shift(v, tir.const(factor, "int32"), 31, s), x, lanes=lanes)
    assert got.tolist() == [rounded(int(v) * factor, 31 - s) for v in x]


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("has_left", [False, True])
@pytest.mark.parametrize("has_right", [False, True])
def test_shifts_along_an_axis(has_left: bool, has_right: bool, lanes: int) -> None:
    source = np.random.default_rng(1)
    x = source.integers(-(1 << 20), 1 << 20, SIZE).astype("int32")
    y = source.integers(1 << 29, 1 << 30, SIZE).astype("int32")
    left, right = [source.integers(0, 6, SIZE).astype("int32") for _ in range(2)]
    got = both(
        lambda *v: tir.q_multiply_shift_per_axis(*v, 31, has_left, has_right),
        x, y, left, right, lanes=lanes,
    )  # fmt: skip
    expected = [
        rounded((int(a) << int(i) * has_left) * int(b), 31 + int(j) * has_right)
        for a, b, i, j in zip(x, y, left, right, strict=True)
    ]
    assert got.tolist() == expected
