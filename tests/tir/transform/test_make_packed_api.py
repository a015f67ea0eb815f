"""The packed calling convention, by calling compiled functions."""

from __future__ import annotations

import ctypes
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


def test_an_extent_that_nothing_determines_is_rejected() -> None:
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


def test_a_scalar_of_another_kind_is_rejected() -> None:
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


class Header(ctypes.Structure):
    """A DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def extents(*values: int) -> Any:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def view(memory: Any, shape: tuple[int, ...] = (4, 8), **changes: Any) -> Header:
    """A header of an array's memory, with changes."""
    address = memory.numpy().ctypes.data if isinstance(memory, nd.NDArray) else memory.ctypes.data
    header = Header(address, 1, 0, len(shape), 2, 32, 1, extents(*shape), None, 0)
    for name, value in changes.items():
        setattr(header, name, value)
    return header


def aligned(*shape: int) -> np.ndarray:
    """Memory at an address that any alignment check takes."""
    raw = np.zeros(int(np.prod(shape)) * 4 + 64, "uint8")
    start = -raw.ctypes.data % 64
    return raw[start : raw.size - 64 + start].view("float32").reshape(shape)


BAD_HEADERS = {
    "lanes": ({"lanes": 2}, "needs dtype float32, got float32"),
    "wide extent": ({"shape": extents(4, 2**32 + 8)}, "needs shape[1] == 8, got 4294967304"),
    "offset": ({"byte_offset": 64}, "needs byte_offset == 0, got 64"),
    "device": ({"device_type": 2}, "needs to be on device cpu, got 2"),
    "number": ({"device_id": 1}, "needs the device of the arguments before it, got 1"),
    "no data": ({"data": None}, "has no data"),
    "strides": ({"strides": extents(1, 4)}, "needs a compact layout (strides null or row-major)"),
}


def call(func: Any, *headers: Header) -> None:
    func(*[ctypes.c_void_p(ctypes.addressof(header)) for header in headers])


@pytest.mark.parametrize("name", BAD_HEADERS)
def test_a_bad_header_says_what_is_wrong(fixed: Any, name: str) -> None:
    changes, message = BAD_HEADERS[name]
    memory = aligned(4, 8)
    with pytest.raises((TypeError, ValueError)) as raised:
        call(fixed, view(memory), view(memory, **changes))
    assert f"main: argument 1 (buffer B) {message}" in str(raised.value).splitlines()[0]


def test_data_must_be_aligned(fixed: Any) -> None:
    memory = aligned(5, 8)
    with pytest.raises(ValueError, match="argument 1 .buffer B. needs data aligned to 64 bytes"):
        call(fixed, view(memory), view(memory, data=memory.ctypes.data + 4))


def test_row_major_strides_are_compact(fixed: Any) -> None:
    source, result = aligned(4, 8), aligned(4, 8)
    call(fixed, view(source, strides=extents(8, 1)), view(result, strides=extents(8, 1)))
    np.testing.assert_array_equal(result, 1)


def test_strides_of_unit_axes_do_not_count() -> None:
    source, result = aligned(1, 8), aligned(1, 8)
    headers = [view(m, (1, 8), strides=extents(77, 1)) for m in (source, result)]
    call(compiled(add_one(1, 8)), *headers)
    np.testing.assert_array_equal(result, 1)


def test_tensors_without_elements_need_no_data() -> None:
    memory = aligned(0, 8)
    headers = [view(memory, (0, 8), data=None) for _ in range(2)]
    call(compiled(add_one(0, 8)), *headers)


def test_an_extent_beyond_its_variable_is_rejected(symbolic: Any) -> None:
    memory = aligned(4, 8)
    wide = view(memory, (4, 2**32 + 1))
    with pytest.raises(ValueError) as raised:
        call(symbolic, wide, wide)
    message = "main: argument 0 (buffer A) needs shape[1] below 2**31, got 4294967297"
    assert message in str(raised.value).splitlines()[0]


def test_kernels_share_the_code_that_checks_tensors() -> None:
    functions = {f"f{i}": add_one(i + 2).with_attr("global_symbol", f"f{i}") for i in range(5)}
    target = Target("llvm")
    module = build_module(lower_for_host(lower_module(IRModule(functions)), target), target)
    text = module.get_source("unoptimized")
    assert text.count("needs shape[") == 1
    assert text.count("call i1 @tvm.tensors_match") == 5
