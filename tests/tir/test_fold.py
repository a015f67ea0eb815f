"""Constant folding agrees with numpy, and keeps away from what it must not touch."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tvm import tir
from tvm.error import RuntimeTypeError
from tvm.tir import op
from tvm.tir.expr import const

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


def integers_of(dtype: str) -> st.SearchStrategy[int]:
    info = np.iinfo(dtype)
    return st.integers(int(info.min), int(info.max)) | st.sampled_from(
        [int(info.min), int(info.max), 0, 1]
    )


@st.composite
def integer_pairs(draw: Any) -> tuple[str, int, int]:
    dtype = draw(st.sampled_from(INTEGERS))
    return dtype, draw(integers_of(dtype)), draw(integers_of(dtype))


def numpy_of(function: Any, dtype: str, *values: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*[np.array([value], dtype) for value in values])[0]


@given(integer_pairs())
def test_integer_arithmetic_wraps_around(pair: tuple[str, int, int]) -> None:
    dtype, a, b = pair
    for ours, theirs in ((op.add, np.add), (op.subtract, np.subtract), (op.multiply, np.multiply),
                         (op.minimum, np.minimum), (op.maximum, np.maximum)):  # fmt: skip
        folded = ours(const(a, dtype), const(b, dtype))
        assert (folded.dtype, folded.value) == (dtype, int(numpy_of(theirs, dtype, a, b)))


@given(integer_pairs())
def test_integer_division(pair: tuple[str, int, int]) -> None:
    dtype, a, b = pair
    assume(b != 0)
    x, y = const(a, dtype), const(b, dtype)
    assert tir.floordiv(x, y).value == int(numpy_of(np.floor_divide, dtype, a, b))
    assert tir.floormod(x, y).value == int(numpy_of(np.mod, dtype, a, b))
    assert tir.truncmod(x, y).value == int(numpy_of(np.fmod, dtype, a, b))
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    assert tir.truncdiv(x, y).value == int(np.array([quotient]).astype(dtype)[0])


@given(integer_pairs())
def test_comparisons_and_bits(pair: tuple[str, int, int]) -> None:
    dtype, a, b = pair
    x, y = const(a, dtype), const(b, dtype)
    assert (x < y).value == (a < b)
    assert (x <= y).value == (a <= b)
    assert (x > y).value == (a > b)
    assert (x >= y).value == (a >= b)
    assert (x == y).value == (a == b)
    assert (x != y).value == (a != b)
    assert (x & y).value == a & b
    assert (x | y).value == a | b
    assert (x ^ y).value == a ^ b
    assert (~x).value == int(numpy_of(np.invert, dtype, a))


@given(st.sampled_from(INTEGERS), st.data())
def test_shifts(dtype: str, data: Any) -> None:
    a = data.draw(integers_of(dtype))
    distance = data.draw(st.integers(0, np.dtype(dtype).itemsize * 8 - 1))
    x, y = const(a, dtype), const(distance, dtype)
    assert (x << y).value == int(numpy_of(np.left_shift, dtype, a, distance))
    assert (x >> y).value == int(numpy_of(np.right_shift, dtype, a, distance))


@given(st.sampled_from(FLOATS), st.floats(width=16), st.floats(width=16))
def test_float_arithmetic_is_rounded_to_its_dtype(dtype: str, a: float, b: float) -> None:
    x, y = const(a, dtype), const(b, dtype)
    for ours, theirs in ((op.add, np.add), (op.multiply, np.multiply)):
        folded, expected = ours(x, y), float(numpy_of(theirs, dtype, a, b))
        if not isinstance(folded, tir.FloatImm):
            continue  # an identity gave one of the operands
        assert folded.value == expected or (math.isnan(expected) and math.isnan(folded.value))


@given(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS), st.data())
def test_casts_of_integers(source: str, target: str, data: Any) -> None:
    value = data.draw(integers_of(source))
    assert const(value, source).astype(target).value == int(np.array(value, source).astype(target))


@given(st.floats(-1000, 1000), st.sampled_from(["int32", "int64", "int16"]))
def test_casts_of_floats_truncate(value: float, dtype: str) -> None:
    assert const(value, "float64").astype(dtype).value == int(value)


def test_a_float_that_does_not_fit_becomes_the_least_number() -> None:
    assert const(1e30).astype("int32").value == -(2**31)
    assert const(math.nan).astype("int32").value == -(2**31)


@pytest.mark.parametrize(
    "divide", [tir.floordiv, tir.floormod, tir.truncdiv, tir.truncmod, tir.div]
)
def test_division_by_the_constant_zero_is_rejected(divide: Any) -> None:
    with pytest.raises(ZeroDivisionError, match="requires a divisor other than zero"):
        divide(tir.Var("x", "int32"), 0)


def test_division_of_floats_by_zero_is_left_to_run_time() -> None:
    assert type(tir.div(const(1.0), const(0.0))) is tir.Div


def test_identities() -> None:
    x = tir.Var("x", "int32")
    f = tir.Var("f", "float32")
    assert x + 0 is x
    assert 0 + x is x
    assert x - 0 is x
    assert x * 1 is x
    assert (x * 0).value == 0
    assert x // 1 is x
    assert (x % 1).value == 0
    assert f * 1.0 is f
    assert type(f * 0.0) is tir.Mul  # infinities and NaN
    assert tir.min(x, x) is x
    true, false = const(True), const(False)
    condition = x < 3
    assert tir.all(condition, true) is condition
    assert tir.all(condition, false) is false
    assert tir.any(condition, true) is true
    assert tir.any([condition, false]) is condition
    assert tir.if_then_else(true, x, f) is not x  # unified with f
    assert tir.if_then_else(False, x, x + 1).b.value == 1
    assert tir.likely(true) is true


def test_rounding_functions() -> None:
    x = tir.Var("x", "int32")
    assert tir.floor(x) is x
    assert tir.floor(const(1.5)).value == 1.0
    assert tir.ceil(const(1.5)).value == 2.0
    assert tir.trunc(const(-1.5)).value == -1.0
    assert tir.round(const(2.5)).value == 2.0
    assert tir.nearbyint(const(3.5)).value == 4.0
    assert tir.abs(const(-3)).value == 3


def test_special_values() -> None:
    assert tir.max_value("int8").value == 127
    assert tir.min_value("uint8").value == 0
    assert tir.max_value("float32").value == float(np.finfo("float32").max)
    assert tir.infinity("float16").value == math.inf
    assert tir.isnan(const(math.nan)).value == 1
    assert tir.isinf(const(math.inf)).value == 1
    assert tir.isfinite(const(1.0)).value == 1
    assert tir.isnan(tir.Var("x", "int32")).value == 0
    with pytest.raises(TypeError, match="infinity requires"):
        tir.infinity("int32")


def test_misuse_of_functions() -> None:
    x = tir.Var("x", "int32")
    with pytest.raises(RuntimeTypeError, match="power requires floating-point operands, got int32"):
        tir.power(x, 2)
    with pytest.raises(TypeError, match="bitwise_and requires integers, got float32"):
        tir.bitwise_and(const(1.0), const(2.0))
    with pytest.raises(ValueError, match="distance from 0 to 31 for int32, got 32"):
        x << 32
    with pytest.raises(RuntimeTypeError, match="if_then_else requires a bool condition, got int32"):
        tir.if_then_else(x, 1, 2)
    with pytest.raises(RuntimeTypeError, match="logical and requires bool operands"):
        tir.all(x, x)
    with pytest.raises(ValueError, match="at least one condition"):
        tir.all()
    with pytest.raises(TypeError, match="as many bits"):
        tir.reinterpret("float64", x)
