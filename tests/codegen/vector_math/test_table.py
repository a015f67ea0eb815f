"""Samples of the table in docs/vector_math.md: every function on every type, with and without FMA."""

import re
from pathlib import Path

import mpmath
import numpy as np
import pytest

from tools.vector_math import (
    BINARY,
    DTYPES,
    LIMIT,
    PAGE,
    UNARY,
    USUAL_LIMIT,
    Row,
    compile_all,
    errors,
    evaluate,
    exact,
    loop_over,
    measure,
)
from tvm.codegen.llvm.loaded import symbols_of
from tvm.codegen.llvm.parts import compile_module
from tvm.codegen.vector_math import FLOAT32_FUNCTIONS, FLOAT64_FUNCTIONS, MathFunction
from tvm.ir.module import IRModule
from tvm.target import Target

BASELINE = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64"


def require_bounds(rows: list[Row]) -> None:
    far = [row for row in rows if not row.error <= LIMIT.get(row.name, USUAL_LIMIT)]
    assert not far, far


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_function_keeps_its_bound(dtype: str) -> None:
    require_bounds(measure(UNARY + BINARY, [dtype], 1 << 16))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bounds_hold_without_fused_multiply_add(dtype: str) -> None:
    require_bounds(measure(UNARY + BINARY, [dtype], 1 << 16, BASELINE))


@pytest.mark.parametrize("target", ["llvm", BASELINE])
def test_angles_beside_multiples_of_a_right_one_keep_their_digits(target: str) -> None:
    turns = np.random.default_rng(0).integers(-(1 << 29), 1 << 29, 2032)
    with mpmath.workprec(160):
        near = [float(n * mpmath.pi / 2) for n in (*range(-8, 8), *turns.tolist())]
    angles = np.array(near)
    names = ["sin", "cos", "tan"]
    compiled = compile_all(names, ["float64"], target)
    for name in names:
        got = evaluate(compiled, name, "float64", angles)
        assert errors(got, *exact(name, "float64", [angles]), "float64").max() <= USUAL_LIMIT


def test_page_lists_every_function_within_its_bound() -> None:
    rows = re.findall(r"^\| (\w+) \| (.*) \|$", Path(PAGE).read_text(), re.MULTILINE)
    found = {
        name: [float(e) for e in re.findall(r"([\d.]+|inf) at", cells)] for name, cells in rows
    }
    found.pop("function", None)
    assert set(found) == set(UNARY + BINARY)
    for name, values in found.items():
        assert len(values) == len(DTYPES) and max(values) <= LIMIT.get(name, USUAL_LIMIT), name


@pytest.mark.parametrize(
    ("dtype", "functions"), [("float32", FLOAT32_FUNCTIONS), ("float64", FLOAT64_FUNCTIONS)]
)
def test_vectors_call_no_function_of_the_c_library(
    dtype: str, functions: dict[str, MathFunction]
) -> None:
    names = [name for name, function in functions.items() if function.limit is None]
    machine = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"
    mod = IRModule({f"{name}_{dtype}": loop_over(name, dtype) for name in names})
    compilation = compile_module(mod, Target(machine))
    called = set(symbols_of(compilation.object_code(), defined=False))
    # with snprintf the check of tensors formats its messages
    assert called <= {"_GLOBAL_OFFSET_TABLE_", "snprintf"}
