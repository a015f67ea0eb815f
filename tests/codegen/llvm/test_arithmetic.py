"""Arithmetic, comparisons and conversions of every data type, scalar and vector."""

import ml_dtypes
import numpy as np
import pytest

from tvm import tir

from .helpers import apply, build_family, run

INTS = ("int8", "int16", "int32", "int64")
UINTS = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64", "bfloat16")
SIZE = 64
WIDTHS = (0, 16)


def values(dtype: str, seed: int, low: int = -100, high: int = 100) -> np.ndarray:
    source = np.random.default_rng(seed)
    if dtype == "bool":
        return source.integers(0, 2, SIZE).astype(bool)
    if dtype in FLOATS:
        kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
        return source.uniform(low, high, SIZE).astype(kind)
    return source.integers(max(low, 0) if dtype.startswith("u") else low, high, SIZE).astype(dtype)


ARITHMETIC = {
    "add": (lambda x, y: x + y, np.add),
    "sub": (lambda x, y: x - y, np.subtract),
    "mul": (lambda x, y: x * y, np.multiply),
    "min": (tir.Min, np.minimum),
    "max": (tir.Max, np.maximum),
}


@pytest.mark.parametrize("vectorize", WIDTHS)
@pytest.mark.parametrize("dtype", INTS + UINTS + FLOATS)
def test_arithmetic(dtype: str, vectorize: int) -> None:
    computes = {name: compute for name, (compute, _) in ARITHMETIC.items()}
    module = build_family(computes, [dtype] * 2, SIZE, vectorize)
    a, b = values(dtype, 1), values(dtype, 2)
    for name, (_, function) in ARITHMETIC.items():
        result = run(module[name], a, b, np.zeros_like(a))[2]
        np.testing.assert_array_equal(result, function(a, b), err_msg=name)


@pytest.mark.parametrize("vectorize", WIDTHS)
@pytest.mark.parametrize("dtype", INTS + UINTS)
def test_integer_divisions(dtype: str, vectorize: int) -> None:
    a, b = values(dtype, 3), values(dtype, 4)
    b[b == 0] = 7
    np.testing.assert_array_equal(
        apply(tir.floordiv, a, b, out_dtype=dtype, vectorize=vectorize), a // b
    )
    np.testing.assert_array_equal(
        apply(tir.floormod, a, b, out_dtype=dtype, vectorize=vectorize), a % b
    )
    np.testing.assert_array_equal(
        apply(tir.truncmod, a, b, out_dtype=dtype, vectorize=vectorize), np.fmod(a, b)
    )
    truncated = ((a - np.fmod(a, b)) // b).astype(dtype)
    np.testing.assert_array_equal(
        apply(tir.truncdiv, a, b, out_dtype=dtype, vectorize=vectorize), truncated
    )


@pytest.mark.parametrize("vectorize", WIDTHS)
@pytest.mark.parametrize("divide", [tir.truncdiv, tir.truncmod, tir.floordiv, tir.floormod])
def test_selects_guard_divisions_by_zero(divide, vectorize: int) -> None:
    a, b = np.arange(SIZE, dtype="int64"), np.arange(SIZE, dtype="int64") % 3
    actual = apply(
        lambda x, y: tir.Select(y == 0, tir.const(-1, "int64"), divide(x, y)), a, b,
        out_dtype="int64", vectorize=vectorize,
    )  # fmt: skip
    whole = (
        a // np.maximum(b, 1) if divide in (tir.truncdiv, tir.floordiv) else a % np.maximum(b, 1)
    )
    np.testing.assert_array_equal(actual, np.where(b == 0, -1, whole))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 12])
def test_division_by_constants(dtype: str, divisor: int) -> None:
    a = values(dtype, 5)
    np.testing.assert_array_equal(apply(lambda x: x // divisor, a, out_dtype=dtype), a // divisor)
    np.testing.assert_array_equal(apply(lambda x: x % divisor, a, out_dtype=dtype), a % divisor)


def test_integer_data_wraps_around() -> None:
    a = np.array([2**31 - 1, -(2**31), 123456789] * 8, "int32")
    np.testing.assert_array_equal(apply(lambda x: x + 1, a, out_dtype="int32"), a + 1)
    np.testing.assert_array_equal(apply(lambda x: x * 17, a, out_dtype="int32"), a * 17)


@pytest.mark.parametrize("vectorize", WIDTHS)
@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "uint32", "float16", "float32", "bfloat16"]
)
def test_comparisons(dtype: str, vectorize: int) -> None:
    a, b = values(dtype, 6, -3, 3), values(dtype, 7, -3, 3)
    for node, function in (
        (tir.LT, np.less), (tir.LE, np.less_equal), (tir.GT, np.greater),
        (tir.GE, np.greater_equal), (tir.EQ, np.equal), (tir.NE, np.not_equal),
    ):  # fmt: skip
        result = apply(node, a, b, out_dtype="bool", vectorize=vectorize)
        np.testing.assert_array_equal(result, function(a, b))


def test_comparisons_with_nan() -> None:
    a = np.array([np.nan, 1, np.nan, 2] * 4, "float32")
    b = np.array([np.nan, np.nan, 3, 2] * 4, "float32")
    for node, function in ((tir.EQ, np.equal), (tir.NE, np.not_equal), (tir.LT, np.less)):
        np.testing.assert_array_equal(apply(node, a, b, out_dtype="bool"), function(a, b))


@pytest.mark.parametrize("vectorize", WIDTHS)
def test_logic_on_stored_booleans(vectorize: int) -> None:
    source = np.random.default_rng(0)
    a, b = source.integers(0, 2, SIZE).astype(bool), source.integers(0, 2, SIZE).astype(bool)
    np.testing.assert_array_equal(
        apply(tir.And, a, b, out_dtype="bool", vectorize=vectorize), a & b
    )
    np.testing.assert_array_equal(apply(tir.Or, a, b, out_dtype="bool", vectorize=vectorize), a | b)
    np.testing.assert_array_equal(apply(tir.Not, a, out_dtype="bool", vectorize=vectorize), ~a)
    chosen = apply(
        lambda x, y: tir.Select(x, tir.const(5, "int8"), tir.Cast("int8", y)),
        a, b, out_dtype="int8", vectorize=vectorize,
    )  # fmt: skip
    np.testing.assert_array_equal(chosen, np.where(a, 5, b).astype("int8"))


@pytest.mark.parametrize("vectorize", WIDTHS)
@pytest.mark.parametrize("source", (*INTS, *UINTS, *FLOATS, "bool"))
def test_conversions(source: str, vectorize: int) -> None:
    targets = (*INTS, *UINTS, *FLOATS, "bool")
    computes = {t: (lambda x, t=t: tir.Cast(t, x)) for t in targets}
    module = build_family(computes, [source], SIZE, vectorize)
    for target in targets:
        a = values(source, 8, 0 if target.startswith("u") else -100)
        a[0] = 0
        kind = ml_dtypes.bfloat16 if target == "bfloat16" else target
        result = run(module[target], a, np.zeros(SIZE, kind))[1]
        np.testing.assert_array_equal(result, a.astype(kind), err_msg=target)


def test_bfloat16_rounds_to_nearest_even() -> None:
    bits = np.random.default_rng(1).integers(0, 1 << 32, 1 << 14, dtype=np.uint64).astype(np.uint32)
    a = np.concatenate(
        [
            bits.view(np.float32),
            np.array([np.inf, -np.inf, np.nan, 0, -0.0] + [1e-40] * 11, "float32"),
        ]
    )
    result = apply(lambda x: tir.Cast("bfloat16", x), a, out_dtype=ml_dtypes.bfloat16, vectorize=16)
    expected = a.astype(ml_dtypes.bfloat16)
    is_nan = np.isnan(a)
    np.testing.assert_array_equal(result.view("uint16")[~is_nan], expected.view("uint16")[~is_nan])
    assert np.isnan(result[is_nan].astype("float32")).all()


def test_float8_widens() -> None:
    for name, kind in (
        ("e4m3_float8", ml_dtypes.float8_e4m3fn),
        ("e5m2_float8", ml_dtypes.float8_e5m2),
    ):
        a = np.arange(256, dtype="uint8")
        result = apply(
            lambda x, name=name: tir.Cast("float32", tir.reinterpret(name, x)),
            a,
            out_dtype="float32",
        )
        np.testing.assert_array_equal(result, a.view(kind).astype("float32"))


def test_float8_rounds_to_nearest_even() -> None:
    source = np.random.default_rng(5)
    borders = np.array(
        [
            0,
            -0.0,
            448,
            464,
            465,
            480,
            57344,
            61439,
            61440,
            1e9,
            np.inf,
            -np.inf,
            2e-3,
            9.7e-4,
            1e-8,
            -3e-5,
        ]
    )
    scales = 2.0 ** source.integers(-20, 18, 4080)
    a = np.concatenate([borders, source.uniform(-1, 1, 4080) * scales]).astype("float32")
    # halfway between neighbours
    a[100:200] = np.round(a[100:200] * 64) / 64
    for name, kind in (
        ("e4m3_float8", ml_dtypes.float8_e4m3fn),
        ("e5m2_float8", ml_dtypes.float8_e5m2),
    ):
        result = apply(
            lambda x, name=name: tir.reinterpret("uint8", tir.Cast(name, x)),
            a,
            out_dtype="uint8",
            vectorize=16,
        )
        expected = a.astype(kind)
        known = ~np.isnan(expected.astype("float32"))
        np.testing.assert_array_equal(result[known], expected.view("uint8")[known])
        assert np.isnan(result.view(kind)[~known].astype("float32")).all()
