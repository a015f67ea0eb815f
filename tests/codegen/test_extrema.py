"""``Min`` and ``Max`` of floats: NaN if an operand is, in the interpreter and every back end."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.tir.interp import interpret

from .c.compiled import build_c

DTYPES = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}
VALUES = [np.nan, np.inf, -np.inf, 0.0, 1.5, -1.5, 6.0, -np.nan]
A, B = [side.ravel() for side in np.meshgrid(VALUES, VALUES)]


def programs(dtype: str, lanes: int) -> tir.PrimFunc:
    """Extrema of two tensors, and beside constants, as one function."""
    a, b = [te.placeholder((A.size,), dtype, name) for name in "ab"]
    zero, six = tir.const(0, dtype), tir.const(6, dtype)
    bodies = [
        lambda i: tir.max(a[i], b[i]), lambda i: tir.min(a[i], b[i]),
        lambda i: tir.max(a[i], zero), lambda i: tir.max(zero, a[i]),
        lambda i: tir.max(tir.min(a[i], six), zero), lambda i: tir.min(six, tir.max(zero, a[i])),
        lambda i: tir.max(a[i], tir.const(np.nan, dtype)),
    ]  # fmt: skip
    outs = [te.compute(a.shape, body, f"out{k}") for k, body in enumerate(bodies)]
    s = te.create_schedule([out.op for out in outs])
    for out in outs:
        if lanes > 1:
            s[out].vectorize(s[out].split(out.op.axis[0], lanes)[1])
    return tvm.lower(s, [a, b, *outs])["main"]


WANTED = [
    np.maximum(A, B), np.minimum(A, B), np.maximum(A, 0), np.maximum(A, 0),
    np.clip(A, 0, 6), np.clip(A, 0, 6), A * np.nan,
]  # fmt: skip


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_extrema_are_nan_if_an_operand_is(dtype: str, lanes: int) -> None:
    func = programs(dtype, lanes)
    for run in (
        lambda *args: interpret(func, *args),
        tvm.build(func, target="llvm"),
        build_c(func.with_attr("global_symbol", "main")),
    ):
        arrays = [x.astype(DTYPES[dtype]) for x in (A, B, *WANTED)]
        for out in arrays[2:]:
            out.fill(7)
        on_device = [tvm.nd.array(x) for x in arrays]
        run(*on_device)
        for k, wanted in enumerate(WANTED):
            found = on_device[2 + k].numpy().astype(np.float64)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{run} {k}")


@pytest.mark.parametrize("processor", ["znver3", "znver4"])
def test_a_maximum_with_zero_is_one_instruction(processor: str) -> None:
    a = te.placeholder((1024,), "float32", "a")
    b = te.compute(a.shape, lambda i: te.max(a[i], tir.const(0, "float32")), "b")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], 64)[1])
    text = tvm.build(s, [a, b], f"llvm -mcpu={processor}").get_source("asm")
    assert re.search(r"vmaxps\s.*%[yz]mm", text)
    assert not re.search(r"vcmp|vblend|vandn?ps", text)
