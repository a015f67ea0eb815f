"""Packed calls: values both ways, errors, references."""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import tvm
import tvm.runtime.ndarray as nd
from tvm._ffi import get_global_func, list_global_func_names, register_func, remove_global_func
from tvm.error import TVMError
from tvm.runtime import Device, Module, PackedFunc, ShapeTuple, String, convert
from tvm.runtime.object import Object
from tvm.support.dtype import dtype


class Pair(Object):
    """Stands for an IR node: an object that is callable, too."""

    def __init__(self, first: Any) -> None:
        self.first = first

    def __call__(self) -> None:
        raise AssertionError("a node is passed, not called")


@pytest.fixture
def echo() -> PackedFunc:
    return convert(lambda *args: args[-1] if args else None)


@pytest.mark.parametrize(
    "value",
    [
        0, -5, 2**62, -(2**63), True, False, 2.5, float("inf"), None, "", "text", "\u00e9\u4e2d",
        dtype("int8x4"), dtype("float32"), nd.cpu(3), [1, [2]], (1, "a"), {"a": [1]}, 3 + 4j,
    ],
)  # fmt: skip
def test_values_return_unchanged(echo: PackedFunc, value: Any) -> None:
    result = echo(value)
    assert result == value and type(result) is type(value)


def test_kinds_that_change(echo: PackedFunc) -> None:
    assert echo(b"a\0b") == bytearray(b"a\0b")
    assert echo(np.int8(-3)) == -3 and type(echo(np.int64(4))) is int
    assert echo(np.float32(0.5)) == 0.5
    assert echo(np.bool_(True)) is True
    assert echo(String("abc")) == "abc"
    assert echo(ctypes.c_void_p(4096)).value == 4096


def test_objects_return_as_themselves(echo: PackedFunc) -> None:
    for value in (Pair(1), [1], {}, ShapeTuple([1, 2]), object(), Pair):
        assert echo(value) is value


def test_arrays_functions_and_modules(echo: PackedFunc, library: Module) -> None:
    array = nd.array(np.arange(3))
    assert echo(array).same_as(array)
    assert isinstance(echo(library), Module) and echo(library) == library
    assert echo(echo) == echo
    assert echo(lambda x: x + 1)(41) == 42
    assert echo(functools.partial(int, "11"))() == 11


def test_many_arguments(echo: PackedFunc) -> None:
    assert echo(*range(100)) == 99
    assert echo() is None


def test_integers_beyond_64_bits_are_rejected(echo: PackedFunc) -> None:
    with pytest.raises(OverflowError):
        echo(2**63)


def test_codes_that_compiled_code_sees(library: Module) -> None:
    codes = library["codes_seen"](1, 2.0, None, nd.array([1.0]), dtype("int8"), nd.cpu(), "s", b"b")
    assert codes == 0x0_2_4_D_5_6_B_C
    assert library["codes_seen"](library, convert(len), Pair(1), True) == 0x9_A_8_F


def test_calls_of_compiled_code(library: Module) -> None:
    a, b = (nd.array(np.random.rand(4).astype("float32")) for _ in range(2))
    c = nd.empty((4,))
    library["add"](a, b, c)
    np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
    assert library["sum_scalars"](1, 2.5, True) == 4.5


def test_compiled_code_calls_python(library: Module) -> None:
    seen = []
    register_func("test.from_env", lambda *args: seen.append(args) or "answer", override=True)
    assert library["call_from_env"](1, "x") == "answer"
    assert seen == [(1, "x")]
    array = nd.array([1.0])
    library["call_from_env"](array)
    assert seen[-1][0].same_as(array)


def test_errors_of_compiled_code_keep_their_class(library: Module) -> None:
    with pytest.raises(TypeError, match=r"^fail: argument 0 needs dtype float32, got int32$"):
        library["fail"]()


class OwnError(Exception):
    pass


@pytest.mark.parametrize(
    "error", [OwnError("mine", 1), KeyError("k"), KeyboardInterrupt(), StopIteration(3)]
)
def test_python_errors_pass_through_compiled_code(library: Module, error: BaseException) -> None:
    def fail(*_args: Any) -> None:
        raise error

    caller = convert(lambda f: f())
    with pytest.raises(type(error)) as caught:
        caller(fail)
    assert caught.value is error
    frames = []
    trace = caught.tb
    while trace:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert "fail" in frames


def test_error_messages_name_classes() -> None:
    from tvm._ffi.base import c2pyerror, register_error

    assert isinstance(c2pyerror("IndexError: too far"), IndexError)
    assert str(c2pyerror("IndexError: too far")) == "too far"
    assert isinstance(c2pyerror("OpNotImplemented: no"), tvm.error.OpNotImplemented)
    assert type(c2pyerror("nothing: known")) is TVMError

    @register_error
    class StrangeError(TVMError):
        pass

    assert type(c2pyerror("StrangeError: here")) is StrangeError


def test_conversion_errors_tell_what_came() -> None:
    with pytest.raises(TypeError, match="expected Module, got int"):
        get_global_func("runtime.ModuleGetTypeKey")(1)
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"):
        get_global_func("runtime.ModuleGetTypeKey")(1, 2)


def test_global_functions() -> None:
    @register_func("test.one")
    def one() -> int:
        return 1

    @register_func
    def test_by_its_own_name() -> int:
        return 2

    assert one() == 1 and get_global_func("test.one")() == 1
    assert get_global_func("test_by_its_own_name")() == 2
    assert "test.one" in list_global_func_names()
    with pytest.raises(ValueError, match="already registered"):
        register_func("test.one", lambda: 3)
    register_func("test.one", lambda: 3, override=True)
    assert get_global_func("test.one")() == 3
    remove_global_func("test.one")
    assert get_global_func("test.one", allow_missing=True) is None
    with pytest.raises(
        ValueError, match=r"cannot find global function 'test_by_its_own_nam'.*mean"
    ):
        get_global_func("test_by_its_own_nam")
    remove_global_func("test_by_its_own_name")
    with pytest.raises(ValueError, match="no global function"):
        remove_global_func("test.one")


def test_calls_leak_nothing(echo: PackedFunc) -> None:
    values = [Pair(1), [1, 2], "text", b"bytes", nd.array([1.0]), lambda: None]
    for value in values:
        echo(value)
    gc.collect()
    before = [sys.getrefcount(value) for value in values]
    for _ in range(100):
        for value in values:
            echo(value)
    gc.collect()
    assert [sys.getrefcount(value) for value in values] == before


def test_callbacks_are_freed() -> None:
    class Callback:
        def __call__(self) -> None: ...

    callback = Callback()
    alive = weakref.ref(callback)
    packed = convert(callback)
    del callback
    packed()
    assert alive() is not None
    del packed
    gc.collect()
    assert alive() is None


def test_errors_are_freed() -> None:
    def fail() -> None:
        raise OwnError

    packed = convert(fail)
    with pytest.raises(OwnError) as caught:
        packed()
    alive = weakref.ref(caught.value)
    del caught
    gc.collect()
    assert alive() is None


def test_borrowed_tensors_cannot_be_kept_as_dlpack() -> None:
    def body(tensor: nd.NDArray) -> None:
        assert not tensor.is_view
        tensor.to_dlpack()

    convert(body)(nd.array([1.0]))


def test_device_argument_is_a_device(echo: PackedFunc) -> None:
    assert isinstance(echo(nd.cuda(1)), Device)


def test_errors_of_native_code_are_tvm_errors_and_pythons_kind() -> None:
    with pytest.raises(tvm.TVMError):
        tvm.runtime.load_param_dict(b"abc")
    with pytest.raises(ValueError, match="truncated"):
        tvm.runtime.load_param_dict(b"abc")
