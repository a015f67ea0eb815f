"""Batches of products of narrow numbers: exact sums for every orientation and extent."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor

RNG = np.random.default_rng(2)
# batches, rows, columns, inner extent, whether either comes transposed
CASES = [
    (2, 2, 5, 7, 9, False, True),
    (3, 1, 16, 33, 64, False, False),
    (1, 4, 13, 20, 12, True, True),
    (2, 2, 1, 100, 30, True, False),
]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype == "bfloat16":
        return RNG.normal(size=shape).astype(ml_dtypes.bfloat16)
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def product(
    a: np.ndarray, b: np.ndarray, flags: tuple[bool, bool], sums: str, target: str
) -> tuple[np.ndarray, str]:
    """What a kernel gives, three added to the sums, and its assembly."""
    x, y = [relay.var(n, shape=v.shape, dtype=str(v.dtype)) for n, v in (("x", a), ("y", b))]
    body = relay.nn.batch_matmul(x, y, sums, *flags) + relay.const(3, sums)
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(tvm.IRModule.from_expr(relay.Function([x, y], body)), target)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.set_input("x", tvm.nd.array(a))
    module.set_input("y", tvm.nd.array(b))
    module.run()
    return module.get_output(0).numpy(), lib.get_lib().get_source("asm")


def operands(case: tuple, dtypes: tuple[str, str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    left, right, rows, columns, inner, swap_a, swap_b = case
    a = numbers((left, inner, rows) if swap_a else (left, rows, inner), dtypes[0])
    b = numbers((right, columns, inner) if swap_b else (right, inner, columns), dtypes[1])
    wide = "float32" if dtypes[0] == "bfloat16" else "int64"
    x, y = a.astype(wide), b.astype(wide)
    return a, b, (x.swapaxes(1, 2) if swap_a else x) @ (y.swapaxes(1, 2) if swap_b else y) + 3


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=core-avx2"])
@pytest.mark.parametrize("dtypes", [("uint8", "int8"), ("int8", "uint8"), ("int16", "int8")])
def test_sums_of_integers_are_exact(dtypes: tuple[str, str], target: str) -> None:
    for case in CASES:
        a, b, expected = operands(case, dtypes)
        found, _ = product(a, b, case[-2:], "int32", target)
        np.testing.assert_array_equal(found, expected)


def test_processors_with_avx2_multiply_pairs() -> None:
    a, b, _ = operands(CASES[0], ("int8", "int8"))
    assert "vpmaddwd" in product(a, b, CASES[0][-2:], "int32", "llvm -mcpu=core-avx2")[1]


def test_products_of_bfloat16_are_close() -> None:
    for case in CASES:
        a, b, expected = operands(case, ("bfloat16", "bfloat16"))
        found, _ = product(a, b, case[-2:], "float32", "llvm")
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-2)
