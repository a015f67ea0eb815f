"""Global functions as attributes of modules, errors by name."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import types
from typing import Any

import numpy as np
import pytest

import tvm
import tvm.testing
from tvm._ffi import _api, _init_api, base, libinfo, register_func, runtime_ctypes
from tvm._ffi._ctypes.packed_func import convert_to_tvm_func
from tvm._ffi._ctypes.types import TVMPackedCFunc, TVMValue, check_call
from tvm.runtime import convert


@pytest.mark.parametrize("arguments", [("tvm.sample",), ("sample", "tvm.sample")])
def test_functions_become_attributes(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("tvm.sample")
    monkeypatch.setitem(sys.modules, "tvm.sample", module)
    register_func("sample.answer", lambda: 42, override=True)
    _init_api(*arguments)
    assert module.answer() == 42


def test_errors_registered_with_the_error_module() -> None:
    @tvm.error.register_error
    class TooManyTeapots(tvm.TVMError):
        """There are too many."""

    def fail() -> None:
        raise TooManyTeapots("five of them")

    with pytest.raises(TooManyTeapots, match="five of them") as caught:
        convert(fail)()
    assert "fail" in [entry.name for entry in caught.traceback]


def test_functions_of_a_prefix_become_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("elsewhere")
    monkeypatch.setitem(sys.modules, "elsewhere", module)
    register_func("sample.inner.answer", lambda: 43, override=True)
    register_func("sample.inner.deep.answer", lambda: 44, override=True)
    _api._init_api_prefix("elsewhere", "sample.inner")
    assert module.answer() == 43 and module.answer.__name__ == "answer"
    assert module.answer.is_global and "deep" not in vars(module)


def test_decorators_replace_what_was_registered() -> None:
    for number in (1, 2):

        @register_func("sample.replaced", override=True)
        def answer(number: int = number) -> int:
            return number

        assert answer() == number and tvm.get_global_func("sample.replaced")() == number
    register_func("sample.same", tvm.get_global_func("sample.replaced"), override=True)
    assert tvm.get_global_func("sample.same").name == "sample.replaced"
    for name in ("sample.replaced", "sample.same"):
        tvm._ffi.registry.remove_global_func(name)
        assert name not in tvm._ffi.registry.list_global_func_names()


def test_functions_have_the_name_they_are_registered_under() -> None:
    func = tvm.get_global_func("testing.echo")
    assert func.name == "testing.echo" and repr(func) == "PackedFunc(testing.echo)"
    unnamed = convert(lambda: None)
    assert unnamed.name == "" and not hasattr(unnamed, "__name__") and "0x" in repr(unnamed)


@pytest.mark.parametrize("name", [3, None, ["x"]])
def test_names_are_text(name: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="register_func needs a name"):
        register_func(name, lambda: None)


def test_callbacks_of_cpp_code_keep_class_and_text() -> None:
    with pytest.raises(tvm.error.OpNotImplemented, match="^myop") as caught:
        tvm.testing.test_raise_error_callback("OpNotImplemented: myop")()
    assert isinstance(caught.value, NotImplementedError)
    with pytest.raises(tvm.error.InternalError, match=r"^myop \(ffi_testing.cc:\d+\)$"):
        tvm.testing.test_check_eq_callback("InternalError: myop")(0, 1)
    tvm.testing.test_check_eq_callback("InternalError: myop")(1, 1)
    with pytest.raises(ValueError, match="expect x and y to be equal"):
        tvm.testing.ErrorTest(0, 1)
    with pytest.raises(tvm.error.InternalError, match="cannot reach here"):
        tvm.testing.ErrorTest(1, 1)


def test_deep_callbacks_keep_every_frame() -> None:
    def level1() -> None:
        raise ValueError("callback error")

    wrap1 = tvm.testing.test_wrap_callback(level1)

    def level2() -> None:
        wrap1()

    wrap2 = tvm.testing.test_wrap_callback(level2)
    with pytest.raises(ValueError, match="^callback error$") as caught:
        wrap2()
    names = [entry.name for entry in caught.traceback]
    assert names.index("level2") < names.index("level1")


def test_cpp_code_can_drop_an_error() -> None:
    def fail() -> None:
        raise ValueError("dropped")

    assert tvm.get_global_func("testing.test_wrap_callback_suppress_err")(fail)() is None


def test_values_of_cpp_functions() -> None:
    assert tvm.testing.echo(tvm.cuda(2)) == tvm.cuda(2)
    assert tvm.testing.device_test(tvm.cuda(3), 2, 3) == tvm.cuda(3)
    x = tvm.tir.Var("x", "int32")
    assert tvm.testing.identity_cpp(x) is x and tvm.testing.nop(1, 2, 3) is None
    assert tvm.get_global_func("testing.AcceptsInt")(True) == 1
    assert tvm.get_global_func("testing.AcceptsBool")(3) is True
    assert tvm.testing.object_use_count(tvm.nd.array([1.0])) >= 1


def test_signals_end_long_calls() -> None:
    threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        tvm.testing.run_check_signal(5)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (2**63, OverflowError, r"^testing\.echo: argument 1 of type int: "),
        ("a\0b", ValueError, r"^testing\.echo: argument 1 of type str: text with a NUL character"),
    ],
)
def test_arguments_that_cannot_cross_are_named(
    value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tvm.testing.echo(0, value)


def test_a_million_round_trips_leak_nothing() -> None:
    def callback(value: Any) -> Any:
        return value

    echo, array = convert(callback), tvm.nd.array(np.zeros(2, "float32"))
    nested = convert(lambda func, value: func(value))
    values = [array, "-".join(["te", "xt"]), [1], callback]
    for value in values:
        nested(echo, value)
    before, pages = [sys.getrefcount(value) for value in values], resident_pages()
    for _ in range(50_000):
        for value in values:
            # two borders each way, and a function made for each call of `callback` as a value
            nested(echo, value)
    for _ in range(800_000):
        echo(array)
    assert [sys.getrefcount(value) for value in values] == before
    assert (resident_pages() - pages) * os.sysconf("SC_PAGESIZE") < 4 << 20


def resident_pages() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


def test_entry_points_are_called_by_ctypes() -> None:
    out = ctypes.c_void_p()
    base.check_call(base._LIB.TVMFuncGetGlobal(base.c_str("testing.echo"), ctypes.byref(out)))
    assert out.value == tvm.testing.echo.handle.value
    base.check_call(base._LIB.TVMFuncFree(out))
    with pytest.raises(ValueError, match="no global function is called 'nothing'"):
        base.check_call(base._LIB.TVMFuncRemoveGlobal(base.c_str("nothing")))
    assert isinstance(base.get_last_ffi_error(), BaseException)


def test_packed_functions_of_ctypes() -> None:
    @TVMPackedCFunc
    def add(args: Any, codes: Any, count: int, ret: Any, _resource: Any) -> int:
        total = TVMValue(v_int64=sum(args[i].v_int64 for i in range(count)))
        code = ctypes.c_int(runtime_ctypes.ArgTypeCode.INT)
        return base._LIB.TVMCFuncSetReturn(
            ctypes.c_void_p(ret), ctypes.byref(total), ctypes.byref(code), 1
        )

    made = ctypes.c_void_p()
    base.check_call(base._LIB.TVMFuncCreateFromCFunc(add, None, None, ctypes.byref(made)))
    base.check_call(base._LIB.TVMFuncRegisterGlobal(base.c_str("test.ctypes_add"), made, 1))
    assert tvm.get_global_func("test.ctypes_add")(2, 3, 4) == 9
    base.check_call(base._LIB.TVMFuncFree(made))
    tvm._ffi.remove_global_func("test.ctypes_add")


def test_helpers_of_the_border(monkeypatch: pytest.MonkeyPatch) -> None:
    assert base.c_str("é").value == "é".encode() and base.py_str(b"abc") == "abc"
    assert list(base.c_array(ctypes.c_int, [1, 2])) == [1, 2]
    assert base.string_types == (str,) and convert_to_tvm_func(len)("abc") == 3

    def shown() -> int:
        """Documented."""
        return 1

    wrapped = base.decorate(shown, lambda func, *args: func(*args) + 1)
    assert wrapped() == 2 and wrapped.__doc__ == "Documented." and wrapped.__name__ == "shown"
    text = "Traceback (most recent call last):\n  frame\nValueError: bad"
    assert base.py2cerror(text).startswith("ValueError: bad\nTraceback")
    assert base.py2cerror("nothing known") == "nothing known"
    monkeypatch.setenv("TEST_PATHS", "a: b :")
    assert libinfo.split_env_var("TEST_PATHS", ":") == ["a", "b"]
    assert libinfo.split_env_var("TEST_NO_PATHS", ":") == []


def test_handles_of_arrays_point_to_tensors() -> None:
    array = tvm.nd.array(np.zeros((2, 3), "int8"))
    tensor = ctypes.cast(array.handle, runtime_ctypes.TVMArrayHandle).contents
    assert (tensor.ndim, tensor.shape[0], tensor.shape[1]) == (2, 2, 3)
    assert (tensor.dtype.bits, tensor.device.device_type) == (8, 1)


def test_data_types_tell_their_size_both_ways() -> None:
    kind = runtime_ctypes.DataType("int8x4")
    assert kind.itemsize == 4 and kind.itemsize() == 4 and kind.lanes == 4
    with pytest.raises(ValueError, match=r"cpu\(0\) has no texture memory"):
        tvm.cpu().texture_spatial_limit()


def test_global_functions_of_nodes() -> None:
    api = tvm.runtime._ffi_node_api
    x = tvm.tir.Var("x", "int32")
    names = api.NodeListAttrNames(x + 1)
    assert [names(i) for i in range(names(-1))][:2] == ["a", "b"]
    assert api.NodeGetAttr(x + 1, "a") is x and api.AsRepr(x) == repr(x)
    with pytest.raises(AttributeError, match="Add has no attribute 'c'"):
        api.NodeGetAttr(x + 1, "c")
    assert api.LoadJSON(api.SaveJSON(x)).name == "x"
    assert api.MakeNode("IntImm", "dtype", "int32", "value", 3).value == 3
    assert api.StructuralEqual(x + 1, x + 1, False, False)
    assert api.StructuralHash(x, True) == api.StructuralHash(tvm.tir.Var("x", "int32"), True)
    with pytest.raises(ValueError):
        api.StructuralEqual(x + 1, x + 2, True, False)
    assert (x + 1).legacy_repr() == str(x + 1)


def test_functions_and_modules_are_made_of_handles() -> None:
    again = tvm.runtime.PackedFunc(tvm.testing.echo.handle, True)
    assert again(3) == 3 and again == tvm.testing.echo and again.is_global
    for kind in (tvm.runtime.PackedFunc, tvm.runtime.Module):
        for handle in (None, ctypes.c_void_p(0), 5):
            with pytest.raises(TypeError, match=f"{kind.__name__} has no constructor"):
                kind(handle)


class HalfFunction(tvm.runtime.PackedFunc):
    def __init__(self) -> None: ...


class HalfModule(tvm.runtime.Module):
    def __init__(self) -> None: ...


def test_objects_that_were_never_made_are_rejected() -> None:
    func, module = HalfFunction(), HalfModule()
    with pytest.raises(TypeError, match="this packed function was never made"):
        func()
    with pytest.raises(TypeError, match="this module was never made"):
        module.get_function("f")
    assert func.name == "" and tvm.testing.echo(func) is None and tvm.testing.echo(module) is None


def test_modules_of_python_functions() -> None:
    module = tvm.support.FrontendTestModule("twice")
    module.add_function("twice", lambda x: 2 * x)
    module["none"] = lambda: None
    assert isinstance(module, tvm.runtime.Module) and module(4) == 8 and module["none"]() is None
    assert module.type_key == "frontend_test"
    with pytest.raises(AttributeError):
        module["three"]
    parent = tvm.support.FrontendTestModule()
    parent.import_module(module)
    assert parent.get_function("twice", query_imports=True)(5) == 10


def test_containers_of_cpp_functions() -> None:
    x = tvm.tir.Var("x", "int32")
    call = tvm.get_global_func
    assert call("testing.AcceptsObjectRefArray")([x, x]) is x
    assert call("testing.AcceptsMapReturnsValue")({x: [1]}, x) == [1]
    assert dict(call("testing.AcceptsMapReturnsMap")({x: x})) == {x: x}


def test_child_processes_end_with_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []
    child = types.SimpleNamespace(terminate=lambda: ended.append("child"))
    children = types.SimpleNamespace(active_children=lambda: [child])
    monkeypatch.setitem(sys.modules, "multiprocessing", children)
    hook = tvm.tvm_wrap_excepthook(lambda kind, value, trace: ended.append(kind.__name__))
    hook(ValueError, ValueError(), None)
    assert ended == ["ValueError", "child"]


def test_values_become_expressions() -> None:
    call = tvm.get_global_func
    assert call("testing.AcceptsPrimExpr")(3).dtype == "int32"
    assert [e.dtype for e in call("testing.AcceptsArrayOfPrimExpr")([1, 2.5])] == [
        "int32",
        "float32",
    ]
    assert call("testing.AcceptsMapOfPrimExpr")({"a": 1})["a"].value == 1
    func, number = call("testing.AcceptsArrayOfVariant")([convert(len), 1])
    assert isinstance(func, tvm.runtime.PackedFunc) and number.value == 1
    assert call("testing.AcceptsVariant")("x") == "runtime.String"
    assert call("testing.AcceptsVariant")(17) == "IntImm"
    assert call("testing.ReturnsVariant")(4).value == 2
    assert call("testing.ReturnsVariant")(5) == "argument was odd"
    with pytest.raises(TypeError, match="an expression is required, got list"):
        call("testing.AcceptsPrimExpr")([1])
    with pytest.raises(TypeError, match="AcceptsArrayOfPrimExpr needs an Array, got int"):
        call("testing.AcceptsArrayOfPrimExpr")(1)


def test_the_classic_module_of_types_checks_calls_of_the_c_border() -> None:
    assert not base._RUNTIME_ONLY
    module = ctypes.c_void_p()
    check_call(0)
    with pytest.raises(base.TVMError, match="missing.so"):
        check_call(base._LIB.TVMModLoadFromFile(b"missing.so", b"so", ctypes.byref(module)))
