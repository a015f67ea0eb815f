"""The packed calling convention, by calling compiled functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tvm import nd, tir
from tvm.codegen import build_module
from tvm.error import LoweringError
from tvm.ir import IRModule
from tvm.ir.transform import PassContext
from tvm.target import Target
from tvm.tir.pipeline import lower_for_host, lower_module
from tvm.tir.verify import VerifyStages

from .programs import function, loop, store


def compiled(func: tir.PrimFunc, **config: Any) -> Any:
    """The function as Python calls it."""
    target = Target("llvm")
    with PassContext(instruments=[VerifyStages()], config=config):
        return build_module(lower_for_host(lower_module(IRModule({"main": func})), target), target)[
            "main"
        ]


def add_one(rows: Any = 4, columns: Any = 8) -> tir.PrimFunc:
    A = tir.decl_buffer((rows, columns), name="A")
    B = tir.decl_buffer((rows, columns), name="B")
    body = loop(rows, lambda i: loop(columns, lambda j: store(B, [i, j], A[i, j] + 1.0), name="j"))
    return function([A, B], body)


def array(*shape: int, dtype: str = "float32") -> Any:
    return nd.array(np.arange(int(np.prod(shape))).reshape(shape).astype(dtype))


@pytest.fixture(scope="module")
def fixed() -> Any:
    return compiled(add_one())


@pytest.fixture(scope="module")
def symbolic() -> Any:
    return compiled(add_one(tir.Var("n"), tir.Var("m")))


def test_a_correct_call_computes(fixed: Any) -> None:
    result = array(4, 8)
    fixed(array(4, 8), result)
    np.testing.assert_array_equal(result.numpy(), array(4, 8).numpy() + 1)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (0, 7), (7, 0)])
def test_symbolic_extents_are_taken_from_the_arguments(
    symbolic: Any, shape: tuple[int, int]
) -> None:
    result = array(*shape)
    symbolic(array(*shape), result)
    np.testing.assert_array_equal(result.numpy(), array(*shape).numpy() + 1)


BAD_CALLS = {
    "count": (
        lambda: (array(4, 8),), TypeError, "main: needs 2 arguments, got 1",
    ),
    "kind": (
        lambda: (array(4, 8), 3), TypeError,
        "main: argument 1 (buffer B) needs to be a tensor or a pointer, got int",
    ),
    "text": (
        lambda: ("A", array(4, 8)), TypeError,
        "main: argument 0 (buffer A) needs to be a tensor or a pointer, got str",
    ),
    "null": (
        lambda: (None, array(4, 8)), TypeError, "main: argument 0 (buffer A) must not be null",
    ),
    "rank": (
        lambda: (array(4, 8), array(32)), ValueError,
        "main: argument 1 (buffer B) needs 2 dimensions, got 1",
    ),
    "dtype": (
        lambda: (array(4, 8, dtype="int64"), array(4, 8)), TypeError,
        "main: argument 0 (buffer A) needs dtype float32, got int64",
    ),
    "shape": (
        lambda: (array(4, 8), array(4, 9)), ValueError,
        "main: argument 1 (buffer B) needs shape[1] == 8, got 9",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_bad_call_says_what_is_wrong(fixed: Any, name: str) -> None:
    arguments, error, message = BAD_CALLS[name]
    with pytest.raises(error) as raised:
        fixed(*arguments())
    assert message in str(raised.value).splitlines()[0]


def test_symbolic_extents_must_agree(symbolic: Any) -> None:
    with pytest.raises(ValueError) as raised:
        symbolic(array(3, 5), array(3, 6))
    message = "main: argument 1 (buffer B) needs shape[1] == m (5), got 6"
    assert message in str(raised.value).splitlines()[0]


def test_extents_may_be_expressions() -> None:
    n = tir.Var("n")
    A = tir.decl_buffer((n * 2,), name="A")
    B = tir.decl_buffer((n,), name="B")
    f = compiled(function([A, B], loop(n, lambda i: store(B, i, A[i * 2]))))
    result = array(3)
    f(array(6), result)
    np.testing.assert_array_equal(result.numpy(), [0, 2, 4])
    with pytest.raises(ValueError, match="shape"):
        f(array(7), result)


def test_an_extent_that_nothing_determines_is_refused() -> None:
    n = tir.Var("n")
    A = tir.decl_buffer((n * 2,), name="A")
    with pytest.raises(LoweringError, match="uses n, which no argument determines"):
        compiled(function([A], store(A, 0, 1.0)))


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("int32", 3, 3),
        ("int32", True, 1),
        ("float32", 2.5, 2.5),
        ("float32", 3, 3),
        ("int64", 1 << 40, 1 << 40),
    ],
)
def test_scalars_are_converted(dtype: str, value: Any, expected: Any) -> None:
    x = tir.Var("x", dtype)
    A = tir.decl_buffer((1,), dtype, "A")
    f = compiled(function([A, x], store(A, 0, x)))
    result = array(1, dtype=dtype)
    f(result, value)
    assert result.numpy()[0] == expected


def test_a_scalar_of_another_kind_is_refused() -> None:
    x = tir.Var("x", "int32")
    A = tir.decl_buffer((1,), "int32", "A")
    f = compiled(function([A, x], store(A, 0, x)))
    with pytest.raises(TypeError) as raised:
        f(array(1, dtype="int32"), 2.5)
    assert "main: argument 1 (x) needs to be an integer, got float" in str(raised.value)


def test_functions_may_return_values() -> None:
    x = tir.Var("x", "int32")
    body = tir.Evaluate(tir.ret(x + 1))
    f = compiled(tir.PrimFunc([x], body, attrs={"global_symbol": "main"}))
    assert f(41) == 42


def test_assertions_can_be_left_out() -> None:
    f = compiled(add_one(), **{"tir.disable_assert": True})
    result = array(4, 8)
    f(array(4, 8), result)
    np.testing.assert_array_equal(result.numpy(), array(4, 8).numpy() + 1)
