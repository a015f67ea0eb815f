"""The headers, name by name: what programs written for the classic release compile against."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tests.contrib.test_graph_executor import graph
from tests.runtime.native_library import INCLUDES, RUNTIME_OPTIONS
from tvm import te
from tvm._ffi import base
from tvm.contrib import cc
from tvm.runtime import ShapeTuple

SOURCES = Path(__file__).parent / "cpp"
OPTIONS = ["-O0", "-Wall", "-Werror", *INCLUDES, *RUNTIME_OPTIONS]


def run(source: str, standard: str, folder: Path, *args: str) -> str:
    compiler = "gcc" if source.endswith(".c") else "g++"
    program = folder / "program"
    command = [compiler, f"-std={standard}", str(SOURCES / source), "-o", str(program), *OPTIONS]
    subprocess.run(command, check=True)
    done = subprocess.run([program, *args], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("source", ["containers.cc", "names.cc", "streams.cc", "threads.cc"])
def test_every_name_of_the_cpp_headers(source: str, tmp_path: Path) -> None:
    assert run(source, "c++17", tmp_path) == "all is well\n"


def test_every_function_of_the_c_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_NUM_THREADS", "2")  # tasks of a launch meet at a barrier
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: a[i] + 1, name="B")
    library = str(tmp_path / "addone.so")
    tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="addone").export_library(library)
    assert run("c_names.c", "c11", tmp_path, library) == "all is well\n"


def test_a_program_profiles_a_model(library_path: str, tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(graph())
    printed = run("profile.cc", "c++17", tmp_path, str(tmp_path / "graph.json"), library_path)
    assert printed == "2 calls\nall is well\n"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = str(tmp_path_factory.mktemp("demo") / "libdemo.so")
    cc.create_shared(
        path, str(SOURCES / "containers.cc"), options=["-std=c++17", *OPTIONS], cc="g++"
    )
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    return lambda name, *args: tvm.get_global_func(f"demo.{name}")(*args)


def test_text_crosses_as_text(demo: Any) -> None:
    assert demo("greet", "Ada", None) == "dear Ada"
    assert demo("greet", tvm.runtime.String("Ada"), "Countess") == "Countess Ada"
    assert isinstance(demo("greet", "Ada", None), str)
    assert demo("first_or_none", ["x", "y"]) == "x" and demo("first_or_none", []) is None
    assert demo("type_of", "int8", "t") == "t:int8x4"
    with pytest.raises(TypeError, match=r"demo\.greet: argument 0: expected str, got int"):
        demo("greet", 1, None)


def test_shapes_cross_as_shapes(demo: Any) -> None:
    assert demo("volume", ShapeTuple([2, 3])) == 6
    assert demo("volume", [2, 3, 4]) == 24 and demo("volume", ()) == 1
    doubled = demo("double_shape", (1, 2))
    assert isinstance(doubled, ShapeTuple) and doubled == (2, 4)
    with pytest.raises(TypeError, match=r"expected int, got float"):
        demo("volume", [1.5])


def test_containers_of_objects_cross(demo: Any) -> None:
    assert demo("join", ["a", "b"], {"k": [1, "x"]}) == "a,b,k:2,"
    array = tvm.nd.array(np.arange(2, dtype="float32"))
    items = demo("objects", [array, "text", ShapeTuple([3]), None])
    assert items[0].same_as(array) and items[1] == "text" and items[2] == (3,)
    assert items[3] is None and items[4] == "last"


def test_a_python_exception_is_set_and_taken_through_the_c_interface() -> None:
    library = base._LIB
    library.TVMGetLastPythonError.restype = ctypes.py_object
    error = KeyError("lost")
    library.TVMAPISetLastPythonError(ctypes.py_object(error))
    assert library.TVMGetLastPythonError() is error
    assert base.py_str(library.TVMGetLastError()) == "KeyError: a Python exception"
    with pytest.raises(KeyError) as caught:
        base.check_call(-1)
    assert caught.value is error
    library.TVMAPISetLastPythonError(ctypes.py_object(error))
    library.TVMDropLastPythonError()
    with pytest.raises(Exception, match="a Python exception"):
        base.check_call(-1)
