"""Numbers of less than a byte, and floats of 8 bits, in memory and in arithmetic."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.runtime import Module
from tvm.tir.interp import interpret
from tvm.tir.transform import LowerNarrowIntegers


def compiled(s: te.Schedule, args: list[te.Tensor], target: str, folder: Path) -> Module:
    module = tvm.build(s, args, target)
    if target == "llvm":
        return module
    module.export_library(str(folder / "narrow.so"))
    return tvm.runtime.load_module(str(folder / "narrow.so"))


def wrapped(values: np.ndarray, dtype: str) -> np.ndarray:
    low = values & 15
    return np.where(low > 7, low - 16, low) if dtype == "int4" else low


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_integers_of_four_bits_wrap_around(
    dtype: str, target: str, lanes: int, tmp_path: Path
) -> None:
    numbers = np.arange(16) if dtype == "uint4" else np.arange(-8, 8)
    x, y = [grid.reshape(-1) for grid in np.meshgrid(numbers, numbers)]
    A, B = te.placeholder((256,), dtype, "A"), te.placeholder((256,), dtype, "B")
    total = te.compute((256,), lambda i: A[i] + B[i] * tir.const(3, dtype), "total")
    chosen = te.compute((256,), lambda i: tir.Select(A[i] < B[i], total[i], A[i] - B[i]), "chosen")
    wide = te.compute((256,), lambda i: chosen[i].astype("int32") * 2, "wide")
    s = te.create_schedule(wide.op)
    if lanes > 1:
        for stage in (total, chosen, wide):
            s[stage].vectorize(s[stage].split(stage.op.axis[0], lanes)[1])
    function = compiled(s, [A, B, chosen, wide], target, tmp_path)
    storage = "uint8" if dtype == "uint4" else "int8"
    arrays = [tvm.nd.empty((256,), dtype) for _ in range(3)]
    for array, values in zip(arrays, (x, y, x), strict=True):
        array.copyfrom(values.astype(storage))
    out = tvm.nd.empty((256,), "int32")
    function(*arrays, out)
    expected = wrapped(np.where(x < y, x + y * 3, x - y), dtype)
    np.testing.assert_array_equal(arrays[2].numpy(), expected)
    np.testing.assert_array_equal(out.numpy(), expected * 2)


def test_lowering_narrow_integers_keeps_the_values() -> None:
    A, B = tir.decl_buffer((16,), "int4", "A"), tir.decl_buffer((16,), "int32", "B")
    i = tir.Var("i", "int32")
    number = tir.Cast("int4", i)
    square = tir.BufferStore(A, number * number - tir.IntImm("int4", 3), [i])
    half = tir.BufferStore(B, tir.Cast("int32", tir.floordiv(A[i], tir.IntImm("int4", 2))), [i])
    body = tir.For(i, 0, 16, tir.ForKind.SERIAL, tir.SeqStmt([square, half]))
    before = tir.PrimFunc([A, B], body, attrs={"global_symbol": "main"})
    after = LowerNarrowIntegers()(tvm.IRModule({"main": before}))["main"]
    assert "int4" not in repr(after)
    results = []
    for func in (before, after):
        narrow, out = np.zeros(16, "int8"), np.zeros(16, "int32")
        interpret(func, narrow, out)
        results.append((narrow, out))
    np.testing.assert_array_equal(results[0], results[1])


def test_wider_programs_are_left_alone() -> None:
    A = tir.decl_buffer((16,), "int8", "A")
    func = tir.PrimFunc([A], tir.BufferStore(A, A[0] + tir.IntImm("int8", 1), [0]))
    assert LowerNarrowIntegers()(tvm.IRModule({"main": func}))["main"] is func


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("e4m3_float8", ml_dtypes.float8_e4m3fn),
        ("e5m2_float8", ml_dtypes.float8_e5m2),
        ("float8_e4m3fn", ml_dtypes.float8_e4m3fn),
        ("float8_e5m2", ml_dtypes.float8_e5m2),
    ],
)
def test_floats_of_eight_bits_go_by_both_of_their_names(
    dtype: str, kind: type, target: str, tmp_path: Path
) -> None:
    A = te.placeholder((8,), dtype, "A")
    B = te.compute((8,), lambda i: A[i] + A[i], "B")
    function = compiled(te.create_schedule(B.op), [A, B], target, tmp_path)
    values = np.array([0, 0.5, -1, 3, 8, 0.25, -96, 2]).astype(kind)
    a, b = tvm.nd.empty((8,), dtype), tvm.nd.empty((8,), dtype)
    a.copyfrom(values)
    function(a, b)
    np.testing.assert_array_equal(
        b.numpy().astype("float32"), (values.astype("float32") * 2).astype(kind).astype("float32")
    )
