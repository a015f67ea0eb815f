"""Every intrinsic and operator on every data type, against the interpreter: one library for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tvm
from tests.codegen.llvm.helpers import schedule_elementwise
from tests.system_tools import needs_tool
from tvm import tir
from tvm.tir.interp import interpret

from .compiled import build_c

SIZE = 24
NARROW = {"bfloat16": ml_dtypes.bfloat16, "e4m3_float8": ml_dtypes.float8_e4m3fn, "e5m2_float8": ml_dtypes.float8_e5m2}  # fmt: skip
FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 4e-7, "float64": 1e-14, "e4m3_float8": 0.0, "e5m2_float8": 0.0}  # fmt: skip

# name: range of the arguments
ONE_FLOAT = {
    "exp": (-5, 5), "exp2": (-5, 5), "exp10": (-3, 3), "log": (0.1, 9), "log2": (0.1, 9), "log10": (0.1, 9),
    "log1p": (-0.5, 9), "tanh": (-3, 3), "sin": (-9, 9), "cos": (-9, 9), "tan": (-1.5, 1.5), "sinh": (-3, 3),
    "cosh": (-3, 3), "asin": (-1, 1), "acos": (-1, 1), "atan": (-9, 9), "asinh": (-9, 9), "acosh": (1, 9),
    "atanh": (-0.9, 0.9), "sqrt": (0, 9), "rsqrt": (0.1, 9), "sigmoid": (-5, 5), "erf": (-3, 3),
    "floor": (-9, 9), "ceil": (-9, 9), "trunc": (-9, 9), "round": (-9, 9), "nearbyint": (-9, 9),
    "fabs": (-9, 9),
}  # fmt: skip
TWO_FLOATS = {
    "pow": (0.1, 5),
    "atan2": (-5, 5),
    "hypot": (-5, 5),
    "copysign": (-5, 5),
    "fmod": (0.5, 9),
}


class Case:
    """A function of arrays, and what it is called with."""

    def __init__(
        self, compute: Callable[..., Any], inputs: list[np.ndarray], vectorize: int
    ) -> None:
        self.inputs = inputs
        dtypes = [str(tvm.DataType(array.dtype)) for array in inputs]
        schedule, self.args = schedule_elementwise(compute, dtypes, len(inputs[0]), vectorize)
        self.lower = lambda name: tvm.lower(schedule, self.args, name=name)[name]

    def output(self) -> np.ndarray:
        return np.zeros(len(self.inputs[0]), self.args[-1].dtype.numpy)


def call(name: str, dtype: str) -> Callable[..., Any]:
    return lambda *args: tir.call_intrin(dtype, f"tir.{name}", *args)


def floats(dtype: str, low: float, high: float, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).uniform(low, high, SIZE)
    return values.astype(NARROW.get(dtype, dtype))


def integers(dtype: str, seed: int = 0) -> np.ndarray:
    limits = np.iinfo(dtype)
    values = np.random.default_rng(seed).integers(
        limits.min, limits.max, SIZE, dtype, endpoint=True
    )
    values[:6] = [limits.min, limits.max, 0, 1, limits.max - 1, limits.min + 1]
    return values


def float_cases() -> dict[str, tuple[Callable[..., Any], list[np.ndarray]]]:
    found: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {}
    for dtype in FLOATS:
        for name, (low, high) in ONE_FLOAT.items():
            found[f"{name}_{dtype}"] = call(name, dtype), [floats(dtype, low, high)]
        for name, (low, high) in TWO_FLOATS.items():
            arrays = [floats(dtype, low, high, seed) for seed in range(2)]
            found[f"{name}_{dtype}"] = call(name, dtype), arrays
        a, b, c = [floats(dtype, -4, 4, seed) for seed in range(3)]
        special = a.copy()
        special[:5] = [np.nan, np.inf, -np.inf, -0.0, 0.0]
        exponents = np.arange(SIZE, dtype="int32") - 6
        found |= {
            f"fma_{dtype}": (call("fma", dtype), [a, b, c]),
            f"ldexp_{dtype}": (call("ldexp", dtype), [a, exponents]),
            f"isnan_{dtype}": (call("isnan", "bool"), [special]),
            f"isinf_{dtype}": (call("isinf", "bool"), [special]),
            f"isfinite_{dtype}": (call("isfinite", "bool"), [special]),
            f"constants_{dtype}": (_with_constants(dtype), [special]),
        }
    for dtype in ("float32", "float64"):
        found[f"nextafter_{dtype}"] = (
            call("nextafter", dtype),
            [floats(dtype, -5, 5, i) for i in (0, 1)],
        )
    return found


def _with_constants(dtype: str) -> Callable[..., Any]:
    numbers = [-0.0, 0.1, float("inf"), -float("inf"), float("nan"), 6e-5, -3.5]
    return lambda x: sum([tir.if_then_else(x > n, tir.const(n, dtype), x) for n in numbers[1:]], x)


def operator_cases() -> dict[str, tuple[Callable[..., Any], list[np.ndarray]]]:
    found: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {}
    for dtype in [*FLOATS, *NARROW, *INTEGERS]:
        is_float = dtype in FLOATS or dtype in NARROW
        a, b = [floats(dtype, -9, 9, i) if is_float else integers(dtype, i) for i in (0, 1)]
        divisor = np.where(b.astype("float64") == 0, np.ones_like(b), b)
        divisor = np.where(divisor == -np.ones_like(b), np.ones_like(b) * 3, divisor).astype(
            b.dtype
        )
        found |= {
            f"add_{dtype}": (lambda x, y: x + y, [a, b]),
            f"sub_{dtype}": (lambda x, y: x - y, [a, b]),
            f"mul_{dtype}": (lambda x, y: x * y, [a, b]),
            f"div_{dtype}": (tir.div, [a, divisor]),
            f"min_{dtype}": (tir.min, [a, b]),
            f"max_{dtype}": (tir.max, [a, b]),
            f"select_{dtype}": (lambda x, y: tir.Select(x < y, x + y, y), [a, b]),
            f"choose_{dtype}": (
                lambda x, y: tir.if_then_else(tir.all(x >= y, x != y), y, x),
                [a, b],
            ),
            f"abs_{dtype}": (tir.abs, [a]),
            f"eq_{dtype}": (lambda x, y: tir.any(tir.EQ(x, y), tir.Not(x <= y)), [a, b]),
        }
        if dtype in INTEGERS:
            found[f"mod_{dtype}"] = tir.truncmod, [a, divisor]
            found[f"floormod_{dtype}"] = tir.floormod, [a, divisor]
            found[f"floordiv_{dtype}"] = tir.floordiv, [a, divisor]
    return found


def bit_cases() -> dict[str, tuple[Callable[..., Any], list[np.ndarray]]]:
    found: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {}
    for dtype in INTEGERS:
        a, b = integers(dtype), integers(dtype, 1)
        distance = (np.arange(SIZE) % np.iinfo(dtype).bits).astype(dtype)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
            found[f"{name}_{dtype}"] = call(name, dtype), [a, b]
        found |= {
            f"bitwise_not_{dtype}": (call("bitwise_not", dtype), [a]),
            f"shift_left_{dtype}": (call("shift_left", dtype), [a, distance]),
            f"shift_right_{dtype}": (call("shift_right", dtype), [a, distance]),
            f"popcount_{dtype}": (call("popcount", dtype), [a]),
            f"clz_{dtype}": (call("clz", "int32"), [a]),
        }
    for name, source, target in (
        ("f32", "float32", "int32"), ("i32", "int32", "float32"), ("f64", "float64", "uint64"),
        ("f16", "float16", "uint16"), ("bf16", "uint16", "bfloat16"), ("i8", "int8", "uint8"),
    ):  # fmt: skip
        a = integers(source) if "int" in source else floats(source, -9, 9)
        found[f"reinterpret_{name}"] = call("reinterpret", target), [a]
    x, y = integers("int32"), integers("int32", 1)
    found["q_multiply_shift"] = (
        lambda a, b: tir.q_multiply_shift(a, b, tir.const(31, "int32"), tir.const(2, "int32")),
        [x >> 3, y],
    )
    return found


def conversion_cases() -> dict[str, tuple[Callable[..., Any], list[np.ndarray]]]:
    found: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {}
    kinds = [*FLOATS, *NARROW, *INTEGERS, "bool"]
    for source in kinds:
        for target in kinds:
            if source in INTEGERS:
                a = integers(source)
                a = a if target in INTEGERS or target == "bool" else (a % 16).astype(source)
            elif source == "bool":
                a = np.arange(SIZE) % 3 == 0
            else:
                a = np.abs(floats(source, 0, 90))
                a[:4] = [0.0, 1.5, 0.25, 2.0]
            if source != target:
                found[f"{source}_to_{target}"] = (lambda x, to=target: x.astype(to)), [a]
    return found


FAMILIES = {
    "floats": float_cases, "operators": operator_cases, "bits": bit_cases, "conversions": conversion_cases,
}  # fmt: skip


@pytest.mark.parametrize(("vectorize", "compiler"), [
    (0, "gcc"), pytest.param(8, "clang", marks=needs_tool("clang")),
])  # fmt: skip
@pytest.mark.parametrize("family", FAMILIES)
def test_compiled_c_agrees_with_the_interpreter(family: str, vectorize: int, compiler: str) -> None:
    cases = {f"our_{n}": Case(*case, vectorize) for n, case in FAMILIES[family]().items()}
    functions = {name: case.lower(name) for name, case in cases.items()}
    library = build_c(tvm.IRModule(functions), compiler, ["-O1"])
    wrong = []
    for name, case in cases.items():
        expected = [*[array.copy() for array in case.inputs], case.output()]
        interpret(functions[name], *expected)
        given = [tvm.nd.array(array) for array in (*case.inputs, case.output())]
        library[name](*given)
        dtype = str(case.args[-1].dtype)
        result, wanted = [x.astype("float64") for x in (given[-1].numpy(), expected[-1])]
        tolerance = TOLERANCE.get(dtype, 0.0)
        if not np.allclose(result, wanted, rtol=tolerance, atol=tolerance / 8, equal_nan=True):
            wrong.append((name, result[result != wanted][:3], wanted[result != wanted][:3]))
    assert not wrong
