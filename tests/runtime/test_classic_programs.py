"""Programs in the style of the classic release: functions, containers, arrays, parameters."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import tvm
import tvm.relay
import tvm.testing
from tvm import te, tir
from tvm._ffi import registry
from tvm._ffi.runtime_ctypes import ArgTypeCode
from tvm.runtime import container, object_generic
from tvm.runtime.container import ADT, ShapeTuple, String


def test_global_functions_by_name() -> None:
    expected = (10, 11, 12)

    @tvm.register_func
    def classic_my_packed(*args: Any) -> int:
        assert tuple(args) == expected
        return 10

    f = tvm.get_global_func("classic_my_packed")
    assert isinstance(f, tvm.runtime.PackedFunc)
    assert f(*expected) == 10
    assert classic_my_packed(*expected) == 10  # the Python function is left as it was
    assert "classic_my_packed" in registry.list_global_func_names()
    with pytest.raises(ValueError, match="classic_my_packed"):
        tvm.register_func("classic_my_packed", lambda: 1)
    tvm.register_func("classic_my_packed", lambda: 2, override=True)
    assert tvm.get_global_func("classic_my_packed")() == 2
    registry.remove_global_func("classic_my_packed")
    assert tvm.get_global_func("classic_my_packed", allow_missing=True) is None
    with pytest.raises(ValueError, match="classic_my_packed"):
        tvm.get_global_func("classic_my_packed")


def test_callbacks_with_nodes() -> None:
    x = tvm.runtime.convert(10)
    seen: list[Any] = []

    def test(y: Any) -> Any:
        seen.append(y)
        return y

    f2 = tvm.runtime.convert(test)
    f = tvm.get_global_func("testing.echo")
    assert f2(f(x)) == 10
    var = te.var("v")
    assert f(var).same_as(var) and f2(var) is var and seen[0] == 10 and seen[1] is var


def test_functions_return_functions() -> None:
    def addy(y: int) -> Any:
        def add(x: int) -> Any:
            return tvm.runtime.convert(x + y)

        return add

    myf = tvm.runtime.convert(addy)
    f = myf(10)
    assert isinstance(f, tvm.runtime.PackedFunc) and f(11) == 21
    assert tvm.runtime.convert(f) is f and tvm.testing.echo(f).same_as(f) and not f.same_as(myf)


def test_converted_functions_take_functions() -> None:
    targs = (10, 10.0, "hello")

    def myfunc(*args: Any) -> int:
        assert tuple(args) == targs
        return 3

    f = tvm.runtime.convert(myfunc)
    assert isinstance(f, tvm.runtime.PackedFunc) and f(*targs) == 3
    assert tvm.runtime.convert(lambda g, x: g(g(x)))(lambda x: x * 2, 3) == 12


def test_bytes_cross() -> None:
    s = b"hello\0world"
    a = bytearray(s)

    def myfunc(ss: Any) -> None:
        assert ss == a
        assert isinstance(ss, (bytes, bytearray))

    tvm.runtime.convert(myfunc)(a)
    tvm.runtime.convert(myfunc)(s)
    assert tvm.get_global_func("testing.echo")(a) == s


def test_empty_containers_cross() -> None:
    def myfunc(ss: Any) -> None:
        assert tuple(ss) == ()

    x = tvm.runtime.convert(())
    tvm.runtime.convert(myfunc)(x)
    assert len(tvm.runtime.convert({})) == 0 and len(tvm.runtime.convert([])) == 0


def test_devices_cross() -> None:
    def check(dev: Any) -> Any:
        assert tvm.cuda(7) == dev
        return tvm.cpu(0)

    x = tvm.get_global_func("testing.device_test")(tvm.cuda(7), tvm.cuda(7).device_type, 7)
    assert x == tvm.cuda(7) and tvm.runtime.convert(check)(x) == tvm.cpu(0)
    assert str(tvm.cpu(0)) == "cpu(0)"
    assert tvm.cpu(0).device_type == 1 and tvm.device("cuda", 3).device_id == 3
    assert tvm.device("llvm") == tvm.cpu() and tvm.device("rocm").device_type == 10
    assert tvm.cpu().exist and not tvm.opencl(9).exist
    with pytest.raises(ValueError, match="nothing"):
        tvm.device("nothing")


def test_rvalue_references_give_objects_away() -> None:
    def callback(x: Any, expected_count: int) -> Any:
        assert expected_count == tvm.testing.object_use_count(x)
        return x

    f = tvm.runtime.convert(callback)
    x = tvm.tir.Var("x", "int32")
    assert f(x, tvm.testing.object_use_count(x)).same_as(x)
    y = te.var("y")
    z = f(y._move(), tvm.testing.object_use_count(y))
    assert z.name == "y"


def test_numpy_scalars_are_numbers() -> None:
    maxint = (1 << 63) - 1
    f = tvm.get_global_func("testing.echo")
    assert f(np.int64(maxint)) == maxint and f(np.float32(0.5)) == 0.5
    assert f(np.int8(-3)) == -3 and f(np.bool_(True)) is True
    with pytest.raises(OverflowError):
        f(1 << 64)


def test_arrays_are_arguments() -> None:
    def check(arr: Any) -> int:
        assert not arr.is_view
        assert tvm.testing.object_use_count(arr) >= 1
        return len(arr.shape)

    fcheck = tvm.runtime.convert(check)
    x = tvm.nd.array([1, 2, 3])
    assert fcheck(x) == 1
    assert tvm.testing.object_use_count(x) == 1


def test_dict_values_reach_functions() -> None:
    converted = tvm.runtime.convert({"add": lambda a, b: a + b})
    f = converted["add"]
    a, b = tir.Var("a", "float32"), tir.Var("b", "float32")
    tvm.ir.assert_structural_equal(f(a, b), tir.Add(a, b))


def test_true_and_false_stay_bool() -> None:
    f = tvm.get_global_func("testing.echo")
    assert f(True) is True and f(False) is False
    assert tvm.get_global_func("testing.AcceptsBool")(True) is True
    assert tvm.get_global_func("testing.AcceptsInt")(7) == 7
    with pytest.raises(TypeError):
        tvm.get_global_func("testing.AcceptsInt")("x")
    with pytest.raises(TypeError):
        tvm.get_global_func("testing.AcceptsBool")(object())


def test_adts_are_built_and_read() -> None:
    arr = np.array([1, 2, 3])
    fields = [tvm.nd.array(arr), tvm.nd.array(arr * 2)]
    adt_obj = ADT(0, [fields[0], fields[1]])
    assert adt_obj.tag == 0 and isinstance(adt_obj, ADT) and len(adt_obj) == 2
    np.testing.assert_array_equal(adt_obj[0].numpy(), arr)
    np.testing.assert_array_equal(adt_obj[-1].numpy(), arr * 2)
    tup = container.tuple_object([fields[0], adt_obj])
    assert isinstance(tup, ADT) and tup.tag == 0 and tup[1].tag == 0
    with pytest.raises(IndexError):
        adt_obj[2]
    assert len(container.tuple_object()) == 0


def test_strings_are_text() -> None:
    s = String("xyz")
    assert isinstance(s, String) and isinstance(s, str)
    assert s.startswith("xy") and s + "1" == "xyz1" and "y" in s
    y = tvm.testing.echo(s)
    assert isinstance(y, str) and s == y
    assert pickle.loads(pickle.dumps(s)) == s and hash(s) == hash("xyz")
    z = tvm.runtime.convert("hi")
    assert isinstance(z, String) and {"hi": 1}[z] == 1


def test_shapes_are_tuples() -> None:
    shape = [8, 3, 0, 5]
    stuple = ShapeTuple(shape)
    assert list(stuple) == shape and len(stuple) == 4 and stuple[-1] == 5
    assert list(stuple[0:2]) == [8, 3]
    assert stuple == tuple(shape) and stuple != (1, 2)
    z = tvm.testing.echo(stuple)
    assert isinstance(z, ShapeTuple) and stuple == z
    assert pickle.loads(pickle.dumps(stuple)) == stuple
    with pytest.raises(IndexError):
        stuple[7]


def test_converted_containers_keep_their_items() -> None:
    a = tvm.runtime.convert([1, 2, "x", te.var("n")])
    assert isinstance(a, tvm.ir.Array) and len(a) == 4 and a[2] == "x" and a[-1].name == "n"
    assert list(a[0:2]) == [1, 2]
    m = tvm.runtime.convert({"a": 1, "b": [2]})
    assert isinstance(m, tvm.ir.Map) and "a" in m and m["b"][0] == 2 and dict(m.items())["a"] == 1
    assert m.get("z") is None and set(m.keys()) == {"a", "b"} and len(list(m.values())) == 2
    amap = tvm.runtime.convert({te.var("v"): 2})
    assert len(amap) == 1
    with pytest.raises(KeyError):
        m["c"]
    with pytest.raises(ValueError, match="convert needs"):
        tvm.runtime.convert(object())


def test_generic_objects_convert() -> None:
    class Wrapper(object_generic.ObjectGeneric):
        def asobject(self) -> Any:
            return tvm.tir.const(5, "int32")

    assert tvm.runtime.convert(Wrapper()).value == 5
    assert tvm.testing.echo(Wrapper()).value == 5
    array = tvm.runtime.convert([Wrapper(), 1])
    assert array[0].value == 5


def test_opaque_handles_cross() -> None:
    echo = tvm.get_global_func("testing.echo")
    value = ctypes.c_int(5)
    handle = ctypes.cast(ctypes.pointer(value), ctypes.c_void_p)
    back = echo(handle)
    assert isinstance(back, ctypes.c_void_p) and back.value == handle.value
    assert echo(None) is None


def test_closures_are_freed_with_their_function() -> None:
    class Token:
        pass

    token = Token()
    alive = weakref.ref(token)
    f = tvm.runtime.convert(lambda keep=token: keep is not None)
    del token
    assert f() and alive() is not None
    del f
    gc.collect()
    assert alive() is None


def test_errors_keep_their_class_and_place() -> None:
    def fail() -> None:
        raise ValueError("a value is wrong")

    wrapped = tvm.get_global_func("testing.test_wrap_callback")(fail)
    with pytest.raises(ValueError, match="a value is wrong") as caught:
        wrapped()
    assert any(entry.name == "fail" for entry in caught.traceback)
    with pytest.raises(tvm.error.OpNotImplemented, match="my op"):
        tvm.get_global_func("testing.test_raise_error_callback")("OpNotImplemented: my op")()
    with pytest.raises(tvm.TVMError):
        tvm.get_global_func("testing.test_check_eq_callback")("InternalError: oh")(1, 2)
    with pytest.raises(ValueError, match="expect x and y to be equal"):
        tvm.testing.ErrorTest(0, 1)
    with pytest.raises(tvm.error.InternalError):
        tvm.testing.ErrorTest(1, 1)
    suppressed = tvm.get_global_func("testing.test_wrap_callback_suppress_err")(fail)
    assert suppressed() is None


def test_arrays_are_created_like_numpys() -> None:
    x = tvm.nd.array(np.random.randint(0, 10, size=(3, 4)).astype("float32"))
    assert x.shape == (3, 4) and x.dtype == "float32" and x.device == tvm.cpu(0)
    y = tvm.nd.empty((3, 4), "float32")
    x.copyto(y)
    np.testing.assert_equal(x.numpy(), y.numpy())
    for dtype in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float16",
                  "int64", "uint64", "float64", "bool"):  # fmt: skip
        a = np.random.randint(0, 2, size=(3, 4)).astype(dtype)
        z = tvm.nd.array(a, device=tvm.cpu(0))
        assert z.dtype == a.dtype and z.dtype == dtype and z.shape == a.shape
        np.testing.assert_equal(a, z.numpy())
        np.testing.assert_equal(a, z.copyto(tvm.cpu(0)).numpy())
    np.testing.assert_equal(tvm.nd.array([[1, 2], [3, 4]]).numpy(), [[1, 2], [3, 4]])
    assert tvm.nd.array([1.0]).dtype == "float64"
    assert tvm.nd.array(np.arange(12).reshape(3, 4).T).numpy().tolist()[0] == [0, 4, 8]


def test_arrays_are_assigned() -> None:
    x = tvm.nd.empty((2, 3), "int32")
    x[:] = np.arange(6).reshape(2, 3).astype("int32")
    assert x.numpy()[1, 2] == 5
    y = tvm.nd.empty((2, 3), "int32")
    y[:] = x
    np.testing.assert_array_equal(x.numpy(), y.numpy())
    y.copyfrom([[9, 9, 9], [8, 8, 8]])
    assert y.numpy()[1, 0] == 8
    with pytest.raises(ValueError):
        x.copyfrom(np.zeros((3, 2), "int32"))
    with pytest.raises(ValueError):
        x[0:1] = np.zeros((1, 3), "int32")
    assert x.same_as(x) and not x.same_as(y) and "NDArray" in repr(x)


def test_arrays_are_pickled_and_hashed() -> None:
    x = tvm.nd.array(np.arange(3).astype("float16"))
    again = pickle.loads(pickle.dumps(x))
    assert again.dtype == "float16"
    np.testing.assert_array_equal(again.numpy(), x.numpy())
    assert isinstance(hash(x), int)
    assert pickle.loads(pickle.dumps(tvm.cpu(2))) == tvm.cpu(2)


def test_views_share_memory() -> None:
    x = tvm.nd.array(np.arange(6).astype("int32"))
    y = x._create_view((2, 3))
    assert y.shape == (2, 3) and y.numpy()[1, 0] == 3
    y[:] = np.zeros((2, 3), "int32")
    assert x.numpy().sum() == 0
    with pytest.raises(ValueError):
        x._create_view((7,))


def test_half_precision_converts_on_the_way() -> None:
    n = 100
    a = te.placeholder((n,), dtype="float16", name="A")
    b = te.compute((n,), lambda i: a[i].astype("float32"), name="B")
    f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    x = np.linspace(-100, 100, n).astype("float16")
    out = tvm.nd.empty((n,), "float32")
    f(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), x.astype("float32"))


def test_dtypes_know_their_parts() -> None:
    t = tvm.DataType("float32x4")
    assert (t.type_code, t.bits, t.lanes) == (2, 32, 4) and str(t) == "float32x4"
    assert tvm.DataType("bool").bits == 1 and tvm.DataType("handle").type_code == 3
    assert tvm.DataType("bfloat16").type_code == tvm.runtime.DataTypeCode.BFLOAT
    assert tvm.DataType("int8") == "int8" and tvm.DataType("int8") != tvm.DataType("uint8")
    assert tvm.DataType("float32").itemsize() == 4
    with pytest.raises(ValueError, match="flaot32"):
        tvm.DataType("flaot32")
    assert hash(tvm.DataType("int8")) == hash(tvm.DataType("int8"))


def test_parameters_come_back() -> None:
    x = np.ones((10, 2), "float32")
    params = {"x": x, "y": tvm.nd.array(np.arange(3, dtype="int8"))}
    blob = tvm.runtime.save_param_dict(params)
    assert isinstance(blob, bytearray)
    loaded = tvm.runtime.load_param_dict(bytes(blob))
    assert set(loaded) == {"x", "y"}
    np.testing.assert_equal(loaded["x"].numpy(), x)
    assert tvm.relay.save_param_dict(params) == blob
    assert set(tvm.relay.load_param_dict(blob)) == {"x", "y"}


def test_type_codes_have_names() -> None:
    assert ArgTypeCode.INT == 0 and ArgTypeCode.NDARRAY_HANDLE == 13
    assert tvm.runtime.DataTypeCode.INT == 0 and tvm.nd.NDArray is tvm.runtime.NDArray


def test_a_python_interpreter_is_not_held_by_calls() -> None:
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            done.wait(0.005)

    done = threading.Event()
    thread = threading.Thread(target=tick)
    thread.start()
    tvm.get_global_func("testing.sleep_in_ffi")(0.2)
    done.set()
    thread.join()
    assert ticks > 5


def test_calls_leak_no_references() -> None:
    f = tvm.get_global_func("testing.echo")
    array = tvm.nd.empty((2,))
    payload = [object()]
    py = tvm.runtime.convert(lambda x: x)
    before = sys.getrefcount(payload), tvm.testing.object_use_count(array)
    for _ in range(1000):
        f(array)
        py(array)
        f("text")
        f((1, [2, {"a": 3}]))
    assert (sys.getrefcount(payload), tvm.testing.object_use_count(array)) == before


def test_numbers_are_objects_for_those_who_ask_for_objects() -> None:
    def call(name: str, *args: Any) -> Any:
        return tvm.get_global_func(f"testing.{name}")(*args)

    for value in (True, False, 1, 0, 3.5, "text"):
        found = call("AcceptsObjectRef", value)
        assert type(found) is type(value) and found == value
    for items in ([True, 17, "hello"], [17, True], [17.5, "x"], ["hello", 17.5]):
        found = call("AcceptsObjectRefArray", items)
        assert type(found) is type(items[0]) and found == items[0]
    assert call("AcceptsMapReturnsValue", {"a": 1, "b": 2}, "a") == 1
    assert call("AcceptsMapReturnsValue", {"a": True, "b": False}, "b") is False
    assert call("AcceptsMapReturnsMap", {"a": 3.5, "b": "x"}) == {"a": 3.5, "b": "x"}
