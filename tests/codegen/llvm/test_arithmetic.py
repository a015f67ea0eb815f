"""Arithmetic, comparisons and conversions of every data type, scalar and vector."""

import ml_dtypes
import numpy as np
import pytest

from tvm import tir

from .helpers import apply

INTS = ("int8", "int16", "int32", "int64")
UINTS = ("uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64", "bfloat16")
SIZE = 64
WIDTHS = (0, 16)


def values(dtype: str, seed: int, low: int = -100, high: int = 100) -> np.ndarray:
    source = np.random.default_rng(seed)
    if dtype in FLOATS:
        kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
        return source.uniform(low, high, SIZE).astype(kind)
    return source.integers(max(low, 0) if dtype.startswith("u") else low, high, SIZE).astype(dtype)


@pytest.mark.parametrize("vectorize", WIDTHS)
@pytest.mark.parametrize("dtype", INTS + UINTS + FLOATS)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "min", "max"])
def test_arithmetic(dtype: str, name: str, vectorize: int) -> None:
    a, b = values(dtype, 1), values(dtype, 2)
    ours = {
        "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
        "min": tir.Min, "max": tir.Max,
    }[name]  # fmt: skip
    numpys = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    }[name]  # fmt: skip
    result = apply(ours, a, b, out_dtype=a.dtype, vectorize=vectorize)
    np.testing.assert_array_equal(result, numpys(a, b))


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


@pytest.mark.parametrize("source", INTS + UINTS + FLOATS + ("bool",))
@pytest.mark.parametrize("target", INTS + UINTS + FLOATS + ("bool",))
def test_conversions(source: str, target: str) -> None:
    if source == "bool":
        a = np.arange(SIZE) % 3 == 0
    else:
        a = values(source, 8, 0 if target.startswith("u") else -100)
        a[0] = 0
    kind = ml_dtypes.bfloat16 if target == "bfloat16" else target
    for vectorize in WIDTHS:
        result = apply(lambda x: tir.Cast(target, x), a, out_dtype=kind, vectorize=vectorize)
        np.testing.assert_array_equal(result, a.astype(kind))


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
