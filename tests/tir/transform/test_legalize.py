from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.error import LoweringError
from tvm.ir import IRModule
from tvm.tir.transform import (
    BF16ComputeLegalize,
    BF16StorageLegalize,
    FP8ComputeLegalize,
    FP8StorageLegalize,
)

from .checks import apply, assert_transforms, assert_unchanged
from .programs import function, loop, store

TYPES = {
    "bfloat16": ml_dtypes.bfloat16,
    "e4m3_float8": ml_dtypes.float8_e4m3fn,
    "e5m2_float8": ml_dtypes.float8_e5m2,
}


def buffers(dtype: str) -> list[tir.Buffer]:
    return [tir.decl_buffer((8,), dtype, name) for name in "ABC"]


def test_arithmetic_is_done_in_the_wider_type() -> None:
    a, b, c = buffers("bfloat16")

    def wide(buffer: tir.Buffer, i: tir.Var) -> tir.PrimExpr:
        return tir.Cast("float32", buffer[i])

    before = function([a, b, c], loop(8, lambda i: store(c, i, tir.exp(a[i]) + b[i])))
    after = function(
        [a, b, c],
        loop(8, lambda i: store(c, i, tir.Cast("bfloat16", tir.exp(wide(a, i)) + wide(b, i)))),
    )
    assert_transforms(BF16ComputeLegalize(), before, after)


def test_copies_stay_narrow() -> None:
    a, b, _ = buffers("e4m3_float8")
    assert_unchanged(FP8ComputeLegalize(), function([a, b], loop(8, lambda i: store(b, i, a[i]))))


def test_the_type_to_compute_with_can_be_chosen() -> None:
    a, b, c = buffers("e5m2_float8")
    func = function([a, b, c], loop(8, lambda i: store(c, i, a[i] * b[i])))
    assert "float16" in str(apply(FP8ComputeLegalize("float16"), func))
    with pytest.raises(ValueError, match="a wider float to compute with, got int32"):
        FP8ComputeLegalize("int32")


def test_bound_variables_are_wide_and_calls_get_what_they_got() -> None:
    a, b, _ = buffers("bfloat16")
    x = tir.Var("x", "bfloat16")
    called = tir.call_pure_extern("bfloat16", "f", x)
    func = function([a, b], tir.LetStmt(x, a[0] + a[1], store(b, 0, called * x)))
    text = str(apply(BF16ComputeLegalize(), func))
    assert (
        "x: T.float32" in text
        and 'T.call_pure_extern("bfloat16", "f", T.Cast("bfloat16", x))' in text
    )


def test_arithmetic_on_stored_types_is_rejected() -> None:
    a, b, c = buffers("bfloat16")
    with pytest.raises(LoweringError, match="computed with in a wider type"):
        apply(BF16StorageLegalize(), function([a, b, c], store(c, 0, a[0] + b[0])))


@pytest.mark.parametrize("dtype", list(TYPES))
def test_stored_integers_are_read_and_rounded_as_the_floats(dtype: str) -> None:
    passes = {"bfloat16": BF16StorageLegalize}.get(dtype, FP8StorageLegalize)
    count = 1 << (16 if dtype == "bfloat16" else 8)
    narrow = tir.decl_buffer((count,), dtype, "N")
    wide = tir.decl_buffer((count,), "float32", "W")
    every = np.arange(count).astype(f"uint{16 if count > 256 else 8}")

    widen = function(
        [narrow, wide], loop(count, lambda i: store(wide, i, tir.Cast("float32", narrow[i])))
    )
    lowered = apply(passes(), widen)
    assert str(lowered.buffer_map[lowered.params[0]].dtype).startswith("uint")
    values = tvm.nd.empty((count,))
    run(lowered)(tvm.nd.array(every), values)
    want = every.view(TYPES[dtype]).astype("float32")
    np.testing.assert_array_equal(values.numpy(), want)

    random = np.random.default_rng(0)
    numbers = (random.standard_normal(count) * 2.0 ** random.integers(-20, 18, count)).astype(
        "float32"
    )
    numbers[:4] = [np.nan, np.inf, -np.inf, -0.0]
    shrink = function(
        [wide, narrow], loop(count, lambda i: store(narrow, i, tir.Cast(dtype, wide[i])))
    )
    bits = tvm.nd.array(np.zeros_like(every))
    run(apply(passes(), shrink))(tvm.nd.array(numbers), bits)
    got = bits.numpy().view(TYPES[dtype]).astype("float32")
    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_array_equal(got, numbers.astype(TYPES[dtype]).astype("float32"))


def run(func: tir.PrimFunc) -> tvm.runtime.Module:
    return tvm.build(IRModule({"main": func}), target="llvm")
