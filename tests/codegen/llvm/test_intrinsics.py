"""Intrinsics against numpy, on every data type they take."""

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import TVMError

from .helpers import apply, build_family, flat_function, run, schedule_elementwise

# name: (numpy's function in float64, arguments from, to)
FUNCTIONS = {
    "exp": (np.exp, -5, 5), "exp2": (np.exp2, -5, 5), "exp10": (lambda x: 10.0**x, -3, 3),
    "log": (np.log, 0.1, 9), "log2": (np.log2, 0.1, 9), "log10": (np.log10, 0.1, 9),
    "log1p": (np.log1p, -0.5, 9), "tanh": (np.tanh, -3, 3), "sin": (np.sin, -9, 9),
    "cos": (np.cos, -9, 9), "tan": (np.tan, -1.5, 1.5), "sinh": (np.sinh, -3, 3),
    "cosh": (np.cosh, -3, 3), "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -9, 9), "asinh": (np.arcsinh, -9, 9), "acosh": (np.arccosh, 1, 9),
    "atanh": (np.arctanh, -0.9, 0.9), "sqrt": (np.sqrt, 0, 9), "rsqrt": (lambda x: x**-0.5, 0.1, 9),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -5, 5), "floor": (np.floor, -9, 9),
    "ceil": (np.ceil, -9, 9), "trunc": (np.trunc, -9, 9), "round": (np.rint, -9, 9),
    "nearbyint": (np.rint, -9, 9), "fabs": (np.abs, -9, 9),
}  # fmt: skip
BINARY = {
    "pow": (np.power, 0.1, 5), "atan2": (np.arctan2, -5, 5), "hypot": (np.hypot, -5, 5),
    "copysign": (np.copysign, -5, 5), "fmod": (np.fmod, 0.5, 9), "nextafter": (np.nextafter, -5, 5),
}  # fmt: skip
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 4e-7, "float64": 1e-14}


def floats(dtype: str, low: float, high: float, seed: int = 0) -> np.ndarray:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    return np.random.default_rng(seed).uniform(low, high, 64).astype(kind)


def call(name: str, dtype: str) -> object:
    return lambda *args: tir.call_intrin(dtype, f"tir.{name}", *args)


@pytest.mark.parametrize("vectorize", [0, 16])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_functions_of_one_float(dtype: str, vectorize: int) -> None:
    module = build_family(
        {f"our_{name}": call(name, dtype) for name in FUNCTIONS}, [dtype], 64, vectorize
    )
    tolerance = TOLERANCE[dtype]
    for name, (reference, low, high) in FUNCTIONS.items():
        a = floats(dtype, low, high)
        result = run(module[f"our_{name}"], a, np.zeros_like(a))[1]
        expected = reference(a.astype("float64"))
        np.testing.assert_allclose(
            result.astype("float64"), expected, rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("vectorize", [0, 16])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_functions_of_two_floats(dtype: str, vectorize: int) -> None:
    names = list(BINARY)
    module = build_family(
        {f"our_{name}": call(name, dtype) for name in names}, [dtype] * 2, 64, vectorize
    )
    for name in names:
        reference, low, high = BINARY[name]
        a, b = floats(dtype, low, high), floats(dtype, low, high, seed=1)
        result = run(module[f"our_{name}"], a, b, np.zeros_like(a))[2]
        exact = [a, b] if name == "nextafter" else [a.astype("float64"), b.astype("float64")]
        np.testing.assert_allclose(
            result.astype("float64"), reference(*exact), rtol=TOLERANCE[dtype], err_msg=name
        )


def test_error_function() -> None:
    import math

    for dtype in ("float32", "float64"):
        a = floats(dtype, -4, 4)
        expected = [math.erf(x) for x in a.astype("float64")]
        result = apply(call("erf", dtype), a, out_dtype=dtype, vectorize=8)
        np.testing.assert_allclose(result, expected, rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_bit_operations(dtype: str) -> None:
    source = np.random.default_rng(2)
    a, b = source.integers(0, 100, 64).astype(dtype), source.integers(0, 100, 64).astype(dtype)
    if dtype.startswith("int"):
        a = -a
    shift = (b % 7).astype(dtype)
    for name, function, second in (
        ("bitwise_and", np.bitwise_and, b), ("bitwise_or", np.bitwise_or, b),
        ("bitwise_xor", np.bitwise_xor, b), ("shift_left", np.left_shift, shift),
        ("shift_right", np.right_shift, shift),
    ):  # fmt: skip
        for vectorize in (0, 16):
            result = apply(call(name, dtype), a, second, out_dtype=dtype, vectorize=vectorize)
            np.testing.assert_array_equal(result, function(a, second))
    np.testing.assert_array_equal(apply(call("bitwise_not", dtype), a, out_dtype=dtype), ~a)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_counting_bits(dtype: str) -> None:
    a = np.random.default_rng(3).integers(1, 120, 64).astype(dtype)
    bits = a.itemsize * 8
    expected = [bin(int(x)).count("1") for x in a]
    np.testing.assert_array_equal(apply(call("popcount", dtype), a, out_dtype=dtype), expected)
    leading = [bits - int(x).bit_length() for x in a]
    np.testing.assert_array_equal(apply(call("clz", "int32"), a, out_dtype="int32"), leading)


def test_classification() -> None:
    for dtype in ("float16", "float32", "float64", "bfloat16"):
        kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
        a = np.array([0, 1, -1, np.inf, -np.inf, np.nan, 1e-4, -3] * 8).astype(kind)
        for name, function in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
            for vectorize in (0, 16):
                result = apply(call(name, "bool"), a, out_dtype="bool", vectorize=vectorize)
                np.testing.assert_array_equal(result, function(a.astype("float64")))


def test_fma_rounds_once() -> None:
    a, b, c = [floats("float32", -2, 2, seed) for seed in range(3)]
    expected = (a.astype("float64") * b + c).astype("float32")
    np.testing.assert_allclose(
        apply(call("fma", "float32"), a, b, c, out_dtype="float32"), expected, rtol=1e-7
    )


def test_ldexp_and_absolute_value() -> None:
    a, n = floats("float32", -2, 2), np.arange(-32, 32, dtype="int32")
    result = apply(call("ldexp", "float32"), a, n, out_dtype="float32")
    np.testing.assert_array_equal(result, np.ldexp(a, n))
    i = np.arange(-32, 32, dtype="int32")
    np.testing.assert_array_equal(apply(tir.abs, i, out_dtype="int32", vectorize=8), np.abs(i))


def test_reinterpret_keeps_the_bits() -> None:
    a = floats("float32", -9, 9)
    for vectorize in (0, 16):
        result = apply(
            lambda x: tir.reinterpret("int32", x), a, out_dtype="int32", vectorize=vectorize
        )
        np.testing.assert_array_equal(result, a.view("int32"))


def test_only_the_chosen_branch_is_evaluated() -> None:
    data = te.placeholder((8,), name="A")
    out = te.compute((16,), lambda i: tir.if_then_else(i < 8, data(i), 0.0), name="out")
    func = tvm.build(te.create_schedule(out.op), [data, out], "llvm")
    a = floats("float32", -1, 1)[:8]
    result = run(func, a, np.ones(16, "float32"))[1]
    np.testing.assert_array_equal(result, np.concatenate([a, np.zeros(8, "float32")]))


def test_llvm_intrinsic_by_name() -> None:
    a = floats("float32", 0, 9)
    result = apply(
        lambda x: tir.call_llvm_pure_intrin("float32", "llvm.sqrt", tir.const(1, "uint32"), x),
        a, out_dtype="float32",
    )  # fmt: skip
    np.testing.assert_array_equal(result, np.sqrt(a))


def test_c_function_is_called() -> None:
    a = floats("float32", 0, 9)
    result = apply(lambda x: tir.call_pure_extern("float32", "fabsf", -x), a, out_dtype="float32")
    np.testing.assert_array_equal(result, a)


def test_vector_halves() -> None:
    i = tir.Var("i", "int32")
    a, b = tir.decl_buffer((16,), "float32", "A"), tir.decl_buffer((16,), "float32", "B")

    def body(a: tir.Buffer, b: tir.Buffer) -> tir.Stmt:
        whole = a.vload([0], "float32x16")
        low = tir.vectorlow("float32x8", whole)
        high = tir.vectorhigh("float32x8", whole)
        return b.vstore([0], tir.vectorcombine("float32x16", high, low))

    del i
    func = tvm.build(flat_function(body, a, b), target="llvm")
    x = np.arange(16, dtype="float32")
    np.testing.assert_array_equal(run(func, x, x * 0)[1], np.roll(x, 8))


def test_unknown_intrinsic_is_named() -> None:
    with pytest.raises(
        TVMError, match=r"target llvm has no code for the intrinsic tir\.tvm_mma_sync"
    ):
        apply(
            lambda x: tir.call_intrin("float32", "tir.tvm_mma_sync", *[x] * 8),
            floats("float32", 0, 1),
            out_dtype="float32",
        )


def test_function_that_hides_one_of_the_c_library_is_rejected() -> None:
    with pytest.raises(TVMError, match="function sin hides the C library's"):
        build_family({"sin": call("sin", "float64")}, ["float64"], 16)


@pytest.mark.parametrize("vectorize", [0, 16])
@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_neighbours_and_scaling_of_short_floats(dtype: type, vectorize: int) -> None:
    name = str(np.dtype(dtype))
    special = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-7]
    a = np.array(special * 8).astype(dtype)
    b = np.repeat(np.array(special), 8).astype(dtype)
    result = apply(call("nextafter", name), a, b, out_dtype=dtype, vectorize=vectorize)
    np.testing.assert_array_equal(result.astype("float64"), np.nextafter(a, b).astype("float64"))
    n = np.arange(-32, 32, dtype="int32")
    scaled = apply(call("ldexp", name), a, n, out_dtype=dtype, vectorize=vectorize)
    with np.errstate(all="ignore"):
        expected = np.ldexp(a.astype("float64"), n).astype(dtype)
    np.testing.assert_array_equal(scaled.astype("float64"), expected.astype("float64"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lanes", [0, 8])
def test_small_integral_powers_are_products(dtype: str, lanes: int) -> None:
    x = np.concatenate([np.linspace(-9, 9, 61), [np.inf, -np.inf, np.nan]]).astype(dtype)
    for exponent in (2.0, 3.0, 4.0):
        schedule, args = schedule_elementwise(
            lambda x, n=exponent: tir.power(x, tir.const(n, dtype)), [dtype], len(x), lanes
        )
        built = tvm.build(schedule, args, "llvm")
        assert "pow" not in built.get_source("ll")
        expected = np.power(x.astype("float64"), exponent)
        found = run(built, x, np.zeros_like(x))[1]
        np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("vectorize", [0, 16])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_remainders_are_exact(dtype: str, vectorize: int) -> None:
    rng = np.random.default_rng(0)
    ints = {"float16": "uint16", "float32": "uint32", "float64": "uint64"}[dtype]
    largest = np.iinfo(ints).max
    a, b = [rng.integers(0, largest, 6400, dtype=ints, endpoint=True).view(dtype) for _ in range(2)]
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.0, 1e-7], dtype)
    a[:64], b[:64] = np.repeat(special, 8), np.tile(special, 8)
    # many quotients of a usual size, whole ones among them
    with np.errstate(invalid="ignore"):
        b[3200:] = a[3200:] / rng.integers(1, 1 << 12, 3200).astype(dtype)
    module = build_family({"our_fmod": call("fmod", dtype)}, [dtype] * 2, 6400, vectorize)
    result = run(module["our_fmod"], a, b, np.zeros_like(a))[2]
    with np.errstate(invalid="ignore"):
        expected = np.fmod(a, b)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(
        np.signbit(result)[expected == 0], np.signbit(expected)[expected == 0]
    )
