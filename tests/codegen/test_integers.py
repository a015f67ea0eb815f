"""Integers at their limits: one result, in the interpreter and every back end, scalar and vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.tir.interp import interpret

from .c.compiled import build_c

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}


def program(inputs: list[np.ndarray], bodies: list[Callable[..., Any]], lanes: int) -> tir.PrimFunc:
    params = [te.placeholder(x.shape, str(x.dtype), f"p{i}") for i, x in enumerate(inputs)]
    outs = []
    for k, body in enumerate(bodies):
        outs.append(te.compute(params[0].shape, _element(body, params), f"out{k}"))
    s = te.create_schedule([out.op for out in outs])
    for out in outs:
        if lanes > 1:
            s[out].vectorize(s[out].split(out.op.axis[0], lanes)[1])
    return tvm.lower(s, [*params, *outs])["main"]


def _element(body: Callable[..., Any], params: list[te.Tensor]) -> Callable[[Any], Any]:
    return lambda i: body(*[p[i] for p in params])


def check(
    inputs: list[np.ndarray], bodies: list[Callable[..., Any]], wanted: list[np.ndarray], lanes: int
) -> None:
    func = program(inputs, bodies, lanes)
    for run in (
        lambda *args: interpret(func, *args),
        tvm.build(func, target="llvm"),
        build_c(func.with_attr("global_symbol", "main")),
    ):
        arrays = [tvm.nd.array(x) for x in (*inputs, *[np.full_like(x, 77) for x in wanted])]
        run(*arrays)
        for k, value in enumerate(wanted):
            found = arrays[len(inputs) + k].numpy()
            np.testing.assert_array_equal(found, value, err_msg=f"{run} {k}")


def limits(dtype: str) -> list[int]:
    info = np.iinfo(dtype)
    return sorted(
        {int(info.min), int(info.min) + 1, 0, 1, 2, 3, 7, int(info.max)}
        | (set() if info.min == 0 else {-1, -2, -7})
    )


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    return crossed(limits(dtype), limits(dtype), dtype)


def crossed(a: list[int], b: list[int], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Every number of one list beside every one of the other."""
    numbers = [np.asarray(side, np.dtype(dtype)) for side in (a, b)]
    first, second = [np.resize(side.ravel(), 128) for side in np.meshgrid(*numbers)]
    return first, second


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_every_number_may_be_divided_by_every_other(dtype: str, lanes: int) -> None:
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        quotient, rest = np.floor_divide(a, b), np.remainder(a, b)
        truncated = np.fmod(a, b)
        inexact = (truncated != 0) & ((a < 0) != (b < 0))
        wanted = [(quotient + inexact).astype(dtype), truncated, quotient, rest]
        for divisor in (-1, -2, -7) if dtype.startswith("i") else ():
            wanted += [a // divisor, a % divisor]
    constants = [
        lambda x, _, d=d, f=f: f(x, tir.const(d, dtype))
        for d in ((-1, -2, -7) if dtype.startswith("i") else ())
        for f in (tir.floordiv, tir.floormod)
    ]
    divisions = [tir.truncdiv, tir.truncmod, tir.floordiv, tir.floormod]
    check([a, b], [*divisions, *constants], [np.asarray(w, dtype) for w in wanted], lanes)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_numbers_may_be_divided_by_themselves(dtype: str) -> None:
    """The simplifier takes extents for positive, not numbers of the program."""
    a = np.resize(np.asarray([*limits(dtype), 0], dtype), 16)
    not_zero = (a != 0).astype(dtype)
    with np.errstate(over="ignore"):
        wanted = [not_zero, not_zero, a, a, a * 0]
    bodies = [
        lambda x: tir.truncdiv(x, x),
        lambda x: tir.floordiv(x, x),
        lambda x: tir.truncdiv(x, tir.const(1, dtype)) * tir.truncdiv(x, x),
        lambda x: tir.floordiv(x * tir.const(1, dtype), tir.floordiv(x, x)),
        lambda x: tir.truncmod(x, x) + tir.floormod(x, x),
    ]
    check([a], bodies, [np.asarray(w, dtype) for w in wanted], 1)


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_may_be_shifted_any_distance(dtype: str, lanes: int) -> None:
    bits = np.iinfo(dtype).bits
    distances = [0, 1, bits - 1, bits, bits + 1, np.iinfo(dtype).max, 3]
    distances += [-1] if dtype.startswith("i") else [2]
    a, b = crossed(limits(dtype), distances, dtype)
    wanted = [np.left_shift(a, b), np.right_shift(a, b)]
    check([a, b], [tir.shift_left, tir.shift_right], wanted, lanes)


def truncated(x: np.ndarray, dtype: str) -> np.ndarray:
    """By way of the least number of int32, of int64 for wider types."""
    wide = "int64" if dtype in ("uint32", "int64", "uint64") else "int32"
    low = int(np.iinfo(wide).min)
    whole = [
        int(v) if np.isfinite(v) and low <= int(v) < -low else low for v in x.astype(np.float64)
    ]
    return np.asarray(whole, np.int64).astype(dtype)


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_become_integers_whatever_they_are(dtype: str, lanes: int) -> None:
    values = [
        np.nan,
        np.inf,
        -np.inf,
        3e9,
        -3e9,
        1e30,
        -1e30,
        300.7,
        -300.7,
        1.5,
        -1.5,
        2.0**31,
        -(2.0**31),
        0.0,
    ]
    with np.errstate(over="ignore"):
        x = np.resize(np.asarray(values), 64).astype(FLOATS[dtype])
    to = [name for name in INTEGERS if name != "uint64"]
    bodies = [lambda v, t=t: v.astype(t) for t in to]
    check([x], bodies, [truncated(x, t) for t in to], lanes)


def test_large_floats_become_uint64() -> None:
    x = np.resize(np.asarray([2.0**63, 2.0**63 + 4096, 1e19, 5.0, 2.0**62, 1.8e19]), 16)
    for lanes in (1, 8):
        check([x], [lambda v: v.astype("uint64")], [x.astype("uint64")], lanes)


def test_constants_become_integers_as_values_do() -> None:
    for value in (np.nan, np.inf, -np.inf, 3e9, -3e9, 300.7):
        for dtype in ("int8", "uint8", "int32", "int64", "uint32"):
            found = tir.const(value, "float64").astype(dtype)
            assert found.value == truncated(np.asarray([value]), dtype)[0]
