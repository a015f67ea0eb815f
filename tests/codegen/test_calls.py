"""Functions of a module that call each other, and functions outside."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import te
from tvm._ffi.libinfo import find_lib_path
from tvm._ffi.registry import remove_global_func
from tvm.error import TVMError
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.tir.interp import interpret


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_functions_of_the_module_are_called_by_their_convention(
    target: str, tmp_path: Path
) -> None:
    @I.ir_module
    class module:
        @T.prim_func
        def main(A: T.Buffer(2, "float32")):
            T.func_attr({"global_symbol": "main"})
            module.fill(A.data, T.float32(4))
            module.double(A.data)

        @T.prim_func
        def fill(data: T.handle("float32"), value: T.float32):
            A = T.decl_buffer(2, data=data)
            A[0] = value
            A[1] = value + T.float32(1)

        @T.prim_func(private=True)
        def double(data: T.handle("float32")):
            A = T.decl_buffer(2, data=data)
            for i in range(2):
                A[i] = A[i] * T.float32(2)

    built = tvm.build(module, target=target)
    if target == "c":
        built.export_library(str(tmp_path / "f.so"))
        built = tvm.runtime.load_module(str(tmp_path / "f.so"))
    array = tvm.nd.array(np.zeros(2, "float32"))
    built["main"](array)
    assert array.numpy().tolist() == [8, 10]


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_private_functions_have_pointers_as_arguments(target: str) -> None:
    @I.ir_module
    class module:
        @T.prim_func
        def main(A: T.Buffer(2, "float32")):
            T.func_attr({"global_symbol": "main"})
            module.double(A.data)

        @T.prim_func(private=True)
        def double(A: T.Buffer(2, "float32")):
            for i in range(2):
                A[i] = A[i] * T.float32(2)

    with pytest.raises(TVMError, match="a private function has pointers as arguments"):
        tvm.build(module, target=target)


def test_packed_calls_need_a_name() -> None:
    @T.prim_func
    def main(arg: T.handle("float32")):
        T.Call("int32", tvm.ir.Op.get("tir.tvm_call_packed"), [arg])

    with pytest.raises(TVMError, match="call_packed requires the name of a function"):
        tvm.build(main, target="llvm")


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_functions_without_a_result_give_zero(target: str, dtype: str, tmp_path: Path) -> None:
    @tvm.register_func("test_calls.nothing", override=True)
    def nothing() -> None:
        pass

    out = te.compute((2,), lambda i: tvm.tir.call_packed("test_calls.nothing") + i, name="out")
    cast = te.compute((2,), lambda i: out[i].astype(dtype), name="cast")
    array = tvm.nd.array(np.full(2, 7, dtype))
    library = tmp_path / "lib.so"
    tvm.build(te.create_schedule(cast.op), [cast], target, name="f").export_library(library)
    tvm.runtime.load_module(library)["f"](array)
    assert array.numpy().tolist() == [0, 1]


def test_stackvm_runs_in_this_process() -> None:
    @T.prim_func
    def main(A: T.Buffer(4, "int32")):
        for i in range(3):
            A[i + 1] = A[i] + 1

    array = tvm.nd.array(np.zeros(4, "int32"))
    tvm.build(main, target="stackvm")(array)
    assert array.numpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_static_handles_outlive_calls(target: str, tmp_path: Path) -> None:
    handle = tvm.tir.call_intrin("handle", "tir.tvm_static_handle")
    body = tvm.tir.Evaluate(tvm.tir.call_packed("test_calls.count", handle))
    func = tvm.tir.PrimFunc([], body).with_attr("global_symbol", "f")
    seen: list[int] = []

    @tvm.register_func("test_calls.count", override=True)
    def count(pointer: ctypes.c_void_p) -> None:
        cell = ctypes.cast(pointer, ctypes.POINTER(ctypes.c_size_t))
        cell[0] += 1
        seen.append(cell[0])

    library = tmp_path / "lib.so"
    tvm.build(tvm.IRModule.from_expr(func), target=target).export_library(library)
    call = tvm.runtime.load_module(library)["f"]
    call()
    call()
    remove_global_func("test_calls.count")  # it trusts the pointers that it is given
    assert seen == [1, 2]


def _scoped(init: str) -> tvm.tir.PrimFunc:
    """Adds one to each element of an array, by a function that C code may call."""
    n = te.size_var("n")
    buffer = tvm.tir.decl_buffer((n,), "int64")
    ib = tvm.tir.ir_builder.create()
    array = ib.buffer_ptr(buffer)
    ib.scope_attr(te.thread_axis((0, 1), "cop"), "coproc_uop_scope", init)
    with ib.for_range(0, n, "i", kind="parallel") as i:
        array[i] = array[i] + 1
    func = tvm.tir.PrimFunc([buffer], ib.get())
    return func.with_attr("global_symbol", "ramp")


def test_statements_run_once_for_all_calls(tmp_path: Path) -> None:
    mod = tvm.IRModule.from_expr(_scoped("TVMBackendRunOnce"))
    built = tvm.driver.build(mod, target="llvm")
    built.export_library(str(tmp_path / "ramp.so"))
    for ramp in (built, tvm.runtime.load_module(str(tmp_path / "ramp.so"))):
        array = tvm.nd.array(np.zeros(10, "int64"))
        ramp(array)
        ramp(array)
        assert array.numpy().tolist() == [1] * 10
    with pytest.raises(tvm.TVMError, match="target c cannot give statements to"):
        tvm.build(mod, target="c")


def test_users_function_runs_statements(tmp_path: Path) -> None:
    """It has a handle of its own, and knows how large what the statements use is."""
    source = """
    int twice(void** handle, int (*f)(void*), void* values, int bytes) {
      if (*handle || bytes < 16) return -1;
      *handle = f;
      return f(values) || f(values);
    }"""
    (tmp_path / "twice.c").write_text(source)
    mod = tvm.IRModule.from_expr(_scoped("twice"))
    library = str(tmp_path / "ramp.so")
    built = tvm.build(mod, target="llvm")
    built.export_library(library, addons=[str(tmp_path / "twice.c")])
    ramp = tvm.runtime.load_module(library)
    array = tvm.nd.array(np.zeros(3, "int64"))
    ramp(array)
    assert array.numpy().tolist() == [2, 2, 2]
    # in the place of the function, which is not linked with the runtime
    ctypes.CDLL(find_lib_path()[0]).TVMAPISetLastError(b"ValueError: twice runs once")
    with pytest.raises(ValueError, match="^twice runs once$"):
        ramp(array)
    assert array.numpy().tolist() == [2, 2, 2]


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_integers_may_be_asked_whether_they_are_null(target: str, tmp_path: Path) -> None:
    @T.prim_func
    def main(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "bool")):
        for i in range(3):
            B[i] = T.isnullptr(A[i])

    built = tvm.build(main, target=target)
    built.export_library(str(tmp_path / "f.so"))
    a, b = tvm.nd.array(np.array([0, 1, -1], "int32")), tvm.nd.empty((3,), "bool")
    tvm.runtime.load_module(str(tmp_path / "f.so"))(a, b)
    assert b.numpy().tolist() == [True, False, False]
    again = np.zeros(3, "bool")
    interpret(main, a.numpy(), again)
    assert again.tolist() == [True, False, False]
