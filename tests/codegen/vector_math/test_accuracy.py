"""Vector math over the whole range of float32: units in the last place, and special values."""

import ctypes
import math

import numpy as np
import pytest

from tvm import tir
from tvm.codegen.llvm.loaded import LoadedObject, symbols_of
from tvm.codegen.llvm.parts import compile_module
from tvm.codegen.vector_math import FLOAT32_FUNCTIONS, MathFunction
from tvm.ir.module import IRModule
from tvm.target import Target

WIDTHS = (1, 8, 16)
# the bound DESIGN states; pow computes in double precision and is far below its own
LARGEST_ERROR = dict.fromkeys(FLOAT32_FUNCTIONS, 2.0) | {"pow": 4.0}
SPECIAL = np.array(
    [0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.17549435e-38,
     -1.17549435e-38, 3.4028235e38, -3.4028235e38, 88.72283, 88.72284, -87.33655, -103.97, -104.1, 128,
     -149, -150, 38.53, -45, 0.93, 0.55, 0.545, 1e9, 48000, 16777216, 16777215, 1e-30, 0.99999994,
     1.0000001],
    "float32",
)  # fmt: skip


def loop(function: MathFunction, lanes: int) -> tir.PrimFunc:
    """out[i] = function(a[i], b[i]) for n vectors."""
    a, b, out = [tir.decl_buffer((lanes,), "float32", name) for name in ("a", "b", "out")]
    i, count = tir.Var("i", "int32"), tir.Var("count", "int32")
    index = i if lanes == 1 else tir.Ramp(i * lanes, 1, lanes)
    args = [a[index], b[index]][: function.arity]
    call = tir.Call(args[0].dtype, f"tir.{function.name}", args)
    body = tir.For(i, 0, count, tir.ForKind.SERIAL, tir.BufferStore(out, call, [index]))
    name = f"{function.name}{lanes}"
    return tir.PrimFunc([a.data, b.data, out.data, count], body, attrs={"global_symbol": name})


@pytest.fixture(scope="module")
def compiled() -> LoadedObject:
    functions = {
        f"{name}{lanes}": loop(function, lanes)
        for name, function in FLOAT32_FUNCTIONS.items()
        for lanes in WIDTHS
    }
    compilation = compile_module(IRModule(functions), Target("llvm"))
    code = compilation.object_code()
    return LoadedObject([code], symbols_of(code, defined=True))


def evaluate(compiled: LoadedObject, name: str, lanes: int, *args: np.ndarray) -> np.ndarray:
    pointer = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, ctypes.c_int)
    out = np.zeros_like(args[0])
    addresses = [a.ctypes.data for a in (args[0], args[-1], out)]
    kind(compiled.address(f"{name}{lanes}"))(*addresses, len(out) // lanes)
    return out


def samples(seed: int, count: int = 1 << 19) -> np.ndarray:
    """Special values, bit patterns from the whole range, and a dense middle; a multiple of 16 long."""
    source = np.random.default_rng(seed)
    patterns = source.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)
    parts = [
        SPECIAL, patterns.view(np.float32), source.uniform(-110, 110, count),
        source.uniform(-2, 2, count), source.uniform(-1e5, 1e5, count // 4),
    ]  # fmt: skip
    values = np.concatenate([part.astype("float32") for part in parts])
    return values[: len(values) // 16 * 16]


def reference(name: str, *args: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        doubles = [a.astype("float64") for a in args]
    special = {
        "exp10": lambda x: np.power(10.0, x),
        "sigmoid": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
        "erf": lambda x: np.array([math.erf(v) for v in x]),
        "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "asin": np.arcsin,
        "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "pow": np.power,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        return special.get(name, getattr(np, name, None))(*doubles)


def errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance in units in the last place; infinite for a wrong infinity or NaN."""
    with np.errstate(all="ignore"):
        rounded = exact.astype("float32")
        unit = np.maximum(np.spacing(np.abs(rounded)).astype("float64"), 2.0**-149)
        distance = np.abs(got.astype("float64") - exact) / unit
    infinite = np.isinf(rounded) | np.isinf(got)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    # just below the border to infinity either neighbour is right
    near_border = infinite & (np.abs(exact) > 3.4028234e38) & (np.sign(got) == np.sign(exact))
    distance[infinite | np.isnan(got) | np.isnan(rounded)] = np.inf
    return np.where(same | (near_border & ~np.isnan(got)), 0, distance)


@pytest.mark.parametrize("lanes", WIDTHS)
@pytest.mark.parametrize("name", FLOAT32_FUNCTIONS)
def test_error_is_bounded_over_the_whole_range(
    compiled: LoadedObject, name: str, lanes: int
) -> None:
    arity = FLOAT32_FUNCTIONS[name].arity
    x = samples(lanes, 1 << 15 if name == "erf" else 1 << 18)
    args = [x]
    if arity == 2:
        pairs = np.array(np.meshgrid(SPECIAL, SPECIAL), "float32").reshape(2, -1)
        y = np.random.default_rng(lanes).permutation(x)
        x, y = np.concatenate([pairs[0], x]), np.concatenate([pairs[1], y])
        if name == "pow":  # exponents that do not all overflow
            with np.errstate(all="ignore"):
                y[len(pairs[0]) :: 2] = np.round(y[len(pairs[0]) :: 2] / 20)
        args = [a[: len(x) // 16 * 16].copy() for a in (x, y)]
    got, exact = evaluate(compiled, name, lanes, *args), reference(name, *args)
    distance = errors(got, exact)
    worst = int(np.argmax(distance))
    values = [float(a[worst]) for a in args]
    assert distance[worst] <= LARGEST_ERROR[name], (values, got[worst], exact[worst])


@pytest.mark.parametrize(
    "name", ["tanh", "sin", "tan", "sinh", "asin", "atan", "erf", "asinh", "atanh", "log1p"]
)
def test_odd_functions_keep_the_sign_of_zero(compiled: LoadedObject, name: str) -> None:
    zeros = np.array([0.0, -0.0] * 8, "float32")
    got = evaluate(compiled, name, 16, zeros)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(zeros))
    assert not got.any()


def test_sigmoid_reaches_its_limits_smoothly(compiled: LoadedObject) -> None:
    x = np.linspace(-110, 110, 1 << 14, dtype="float32")
    got = evaluate(compiled, "sigmoid", 16, x)
    assert (np.diff(got) >= 0).all() and got[-1] == 1 and got[0] == 0
