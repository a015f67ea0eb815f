"""The accuracy of mathematical functions in compiled code, over the whole range of each type.

usage: python tools/vector_math.py [--write]

Prints the table; --write puts it into docs/vector_math.md. The reference of float32 is numpy's float64,
that of float64 numpy's long double or, where numpy has no such function, mpmath. The 16-bit types are
measured on every value they have.
"""

from __future__ import annotations

import argparse
import ctypes
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import mpmath
import numpy as np

from tvm import tir
from tvm.codegen.llvm.loaded import LoadedObject, symbols_of
from tvm.codegen.llvm.parts import compile_module
from tvm.codegen.vector_math.trigonometric import DOUBLE, SINGLE
from tvm.ir.module import IRModule
from tvm.target import Target

PAGE = Path(__file__).resolve().parent.parent / "docs" / "vector_math.md"
LANES = 16
UNARY = (
    "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sigmoid", "tanh",
    "sinh", "cosh", "erf", "sin", "cos", "tan", "asin", "acos", "atan", "asinh", "acosh", "atanh",
)  # fmt: skip
BINARY = ("pow", "atan2", "hypot")
DTYPES = ("float32", "float64", "float16", "bfloat16")
NUMPY = {"bfloat16": ml_dtypes.bfloat16}
LIMIT = {"pow": 4.0}  # units in the last place; of all others
USUAL_LIMIT = 2.0
SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, math.inf, -math.inf, math.nan, 1e-45, -1e-45,
    1.1754944e-38, 5e-324, 2.2250738585072014e-308, 3.4028235e38, -3.4028235e38, 1.7976931348623157e308,
    88.722839, 88.722847, -87.336548, -103.97208, 709.782712893384, 709.782712893385, -745.1332191019411,
    128.0, -149.0, -150.0, 1024.0, -1074.0, 38.53184, -45.0, 308.25, 0.93, 0.55, 0.545, 48000.0,
    16777216.0, 16777215.0, 1e-30, 0.99999994, 1.0000001, 1e22,
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """The largest error of a function on a type, and where it is."""

    name: str
    dtype: str
    error: float
    worst: tuple[float, ...]
    count: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write docs/vector_math.md")
    arguments = parser.parse_args()
    text = page(measure(UNARY + BINARY, DTYPES, 1 << 21))
    if arguments.write:
        PAGE.write_text(text)
    print(text)


def measure(
    names: Iterable[str], dtypes: Iterable[str], count: int, target: str = "llvm"
) -> list[Row]:
    """The largest error of each function on each type, on about ``count`` arguments."""
    chosen, kinds = list(names), list(dtypes)
    compiled = compile_all(chosen, kinds, target)
    rows = []
    for name in chosen:
        for dtype in kinds:
            args = arguments_of(name, dtype, count)
            got = evaluate(compiled, name, dtype, *args)
            distance = errors(got, *exact(name, dtype, args), dtype)
            worst = int(np.argmax(distance))
            where = tuple([float(a[worst]) for a in args])
            rows.append(Row(name, dtype, float(distance[worst]), where, len(got)))
    return rows


# ---- what compiled code computes


def compile_all(names: list[str], dtypes: list[str], target: str) -> LoadedObject:
    """A module with a loop for each function and type."""
    functions = {f"{name}_{dtype}": loop_over(name, dtype) for name in names for dtype in dtypes}
    compilation = compile_module(IRModule(functions), Target(target))
    code = compilation.object_code()
    return LoadedObject([code], symbols_of(code, defined=True))


def loop_over(name: str, dtype: str) -> tir.PrimFunc:
    """out[i] = name(a[i], b[i]) for ``count`` vectors."""
    a, b, out = [tir.decl_buffer((LANES,), dtype, n) for n in ("a", "b", "out")]
    i, count = tir.Var("i", "int32"), tir.Var("count", "int32")
    index = tir.Ramp(i * LANES, 1, LANES)
    args = [a[index], b[index]][: 2 if name in BINARY else 1]
    call = tir.Call(args[0].dtype, f"tir.{name}", args)
    body = tir.For(i, 0, count, tir.ForKind.SERIAL, tir.BufferStore(out, call, [index]))
    symbol = f"{name}_{dtype}"
    return tir.PrimFunc([a.data, b.data, out.data, count], body, attrs={"global_symbol": symbol})


def evaluate(compiled: LoadedObject, name: str, dtype: str, *args: np.ndarray) -> np.ndarray:
    """The function on arrays whose length is a multiple of ``LANES``."""
    pointer = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, ctypes.c_int)
    out = np.zeros_like(args[0])
    addresses = [a.ctypes.data for a in (args[0], args[-1], out)]
    kind(compiled.address(f"{name}_{dtype}"))(*addresses, len(out) // LANES)
    return out


# ---- arguments


def arguments_of(name: str, dtype: str, count: int) -> list[np.ndarray]:
    """Special values, bit patterns from the whole range, and a dense middle."""
    if name in BINARY:
        return _pairs(name, dtype, count)
    if dtype in ("float16", "bfloat16"):
        return [np.arange(1 << 16, dtype="uint16").view(_kind(dtype))]
    if dtype == "float64":  # the references are slow
        count //= 512 if name == "erf" else 8
    return [_cut(np.concatenate([_cast(SPECIAL, dtype), *_samples(dtype, count)]))]


def _samples(dtype: str, count: int) -> list[np.ndarray]:
    source = np.random.default_rng(count)
    bits = np.dtype(_kind(dtype)).itemsize * 8
    patterns = source.integers(0, 1 << bits, count // 2, dtype=np.uint64).astype(f"uint{bits}")
    ranges = ((-2, 2, 8), (-30, 30, 16), (-110, 110, 16), (-800, 800, 16), (-1e5, 1e5, 16))
    middle = [_cast(source.uniform(low, high, count // part), dtype) for low, high, part in ranges]
    return [patterns.view(_kind(dtype)), *middle]


def _pairs(name: str, dtype: str, count: int) -> list[np.ndarray]:
    special = _cast(SPECIAL, dtype)
    x, y = [grid.reshape(-1) for grid in np.meshgrid(special, special)]
    samples = np.concatenate(_samples(dtype, count // 8))
    others = np.random.default_rng(1).permutation(samples)
    if name == "pow":  # exponents that do not all overflow
        with np.errstate(all="ignore"):
            others[::2] = np.round(others[::2].astype("float64") / 20).astype(others.dtype)
    return [_cut(np.concatenate(parts)) for parts in ((x, samples), (y, others))]


def _cut(values: np.ndarray) -> np.ndarray:
    values = values[: len(values) // LANES * LANES].copy()
    with np.errstate(invalid="ignore"):
        values[np.isnan(values)] = math.nan  # signalling ones are a subject of their own
    return values


def _cast(values: Iterable[float], dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(values, "float64").astype(_kind(dtype))


def _kind(dtype: str) -> np.dtype:
    return np.dtype(NUMPY.get(dtype, dtype))


# ---- what is right

_OTHER_NAMES = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "atan2": "arctan2", "pow": "power",
}  # fmt: skip


def exact(name: str, dtype: str, args: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Results as exact as the reference has them: a rounded part and the rest."""
    wide = np.longdouble if dtype == "float64" else np.float64
    with np.errstate(all="ignore"):
        if name == "erf" and dtype == "float64":
            return _by_mpmath(args[0])
        value = _reference(name)(*[a.astype(wide) for a in args])
        rounded = value.astype(_kind(dtype)) if dtype != "bfloat16" else _cast(value, dtype)
        return rounded, (value - rounded.astype(wide)).astype("float64")


def _reference(name: str) -> Callable[..., np.ndarray]:
    special: dict[str, Callable[..., np.ndarray]] = {
        "exp10": lambda x: np.power(x.dtype.type(10), x),
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "sigmoid": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
        "erf": lambda x: np.array([math.erf(v) for v in x]),
    }
    return special.get(name) or getattr(np, _OTHER_NAMES.get(name, name))


def _by_mpmath(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with mpmath.workprec(120):
        # mpmath has no negative zero
        values = [
            mpmath.erf(mpmath.mpf(v)) if v and math.isfinite(v) else math.erf(v) for v in x.tolist()
        ]
        rounded = np.array([float(v) for v in values])
        rest = [
            float(v - r) if math.isfinite(r) else 0.0
            for v, r in zip(values, rounded.tolist(), strict=True)
        ]
    return rounded, np.array(rest)


def errors(got: np.ndarray, rounded: np.ndarray, rest: np.ndarray, dtype: str) -> np.ndarray:
    """Distance in units in the last place; infinite for a wrong infinity, NaN or sign of zero."""
    info = ml_dtypes.finfo(_kind(dtype))
    wide = got.astype("float64")
    target = rounded.astype("float64")
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.abs(target))[1] - 1
        unit = np.ldexp(1.0, np.maximum(exponent, int(info.minexp)) - int(info.nmant))
        distance = np.abs((wide - target) - np.nan_to_num(rest)) / unit
        same = (wide == target) & (np.signbit(wide) == np.signbit(target)) | np.isnan(
            wide
        ) & np.isnan(target)
    largest = float(info.max)
    # just below the border to infinity either neighbour is right
    border = (np.isinf(target) | (np.abs(target) == largest)) & (
        np.isinf(wide) | (np.abs(wide) == largest)
    ) & (np.sign(wide) == np.sign(target))  # fmt: skip
    wrong = ~np.isfinite(wide) | ~np.isfinite(target)
    distance[wrong] = np.inf
    distance[same & wrong] = 0
    distance[border & ~same] = 1
    # a zero of the wrong sign is as wrong as a NaN
    zero = (wide == 0) & (target == 0) & (np.signbit(wide) != np.signbit(target))
    distance[zero] = np.inf
    return distance


# ---- the page


def page(rows: list[Row]) -> str:
    """The table as Markdown."""
    by_name: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_name.setdefault(row.name, {})[row.dtype] = row
    dtypes = list(dict.fromkeys([row.dtype for row in rows]))
    lines = [
        "# Accuracy of mathematical functions",
        "",
        "Written by `python tools/vector_math.py --write`.",
        "",
        "The largest distance from the exact result, in units in the last place of the result (half a unit",
        "is the best that rounding allows), and the argument where it occurs. Measured in vectors of 16, on",
        "bit patterns from the whole range (denormals among them), dense samples of the usual range, and",
        "special values: infinities, NaN, zeros of both signs, the borders of overflow. float16 and bfloat16",
        "are measured on all their values. A wrong infinity, NaN or sign of a zero would count as infinitely",
        "far. The bound is 2 units, and 4 for pow.",
        "",
        "Functions of float32 and float64 are range reductions and polynomials of this package, and the",
        "16-bit types go through those of float32. Sines, cosines and tangents of numbers beyond",
        f"{SINGLE.largest:g} in float32 and {DOUBLE.largest:g} in float64 are the C library's:\n"
        "they are part of the measurement, so the bound of 2 units holds for them too.",
        "",
        "| function | " + " | ".join(dtypes) + " |",
        "|---|" + "---|" * len(dtypes),
    ]
    for name, found in by_name.items():
        cells = [_cell(found[dtype]) for dtype in dtypes]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _cell(row: Row) -> str:
    where = ", ".join([f"{value:.7g}" for value in row.worst])
    return f"{row.error:.2f} at {where}"


if __name__ == "__main__":
    main()
