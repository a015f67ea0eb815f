"""C++ programs and modules written against the runtime's headers."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from tests.runtime.native_library import INCLUDES, RUNTIME_OPTIONS
from tests.system_tools import needs_tool
from tvm import relay, te
from tvm.contrib import cc
from tvm.relay.backend import Runtime
from tvm.runtime import Module, load_module

SOURCES = Path(__file__).parent / "cpp"
WARNINGS = ["-std=c++17", "-O0", "-Wall", "-Werror", *INCLUDES]


@pytest.fixture(scope="module")
def user_library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a library with the user's kinds of modules, loaded into this process."""
    path = str(tmp_path_factory.mktemp("user") / "libuser.so")
    cc.create_shared(
        path, str(SOURCES / "user_module.cc"), options=[*WARNINGS, *RUNTIME_OPTIONS], cc="g++"
    )
    ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    return path


@pytest.fixture
def make(user_library: str) -> Any:
    return lambda kind, *args: tvm.get_global_func(f"user.{kind}")(*args)


def add_one(name: str = "addone", runtime: Runtime | None = None) -> Module:
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: a[i] + 1, name="B")
    return tvm.build(te.create_schedule(b.op), [a, b], "llvm", runtime=runtime, name=name)


def caller_of(name: str) -> Module:
    """Compiled code that calls a packed function by name."""
    a = te.placeholder((4,), name="A")
    b = te.extern((4,), [a], lambda ins, outs: tvm.tir.call_packed(name, ins[0], outs[0]), name="B")
    return tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="main")


def scaled(function: Any) -> list[float]:
    out = tvm.nd.empty((4,))
    function(tvm.nd.array(np.arange(4, dtype="float32")), out)
    return list(out.numpy())


def test_a_module_of_a_user(make: Any) -> None:
    module = make("scale", "times", 3.0)
    assert module.type_key == "user_scale"
    assert module.is_binary_serializable and module.is_runnable and not module.is_dso_exportable
    assert module.get_source() == "scale by 3"
    assert module["get_symbol"]() == "times" and module["get_option"]("lanes") == 4
    assert scaled(module["times"]) == [0.5, 3.5, 6.5, 9.5]
    with pytest.raises(tvm.error.InternalError, match=r"args.size\(\) == 2U.*: 0 vs. 2"):
        module["times"]()
    with pytest.raises(ValueError, match="no file of format txt"):
        module.save("scale.txt")


@pytest.mark.parametrize("with_compiler", [True, False])
def test_compiled_code_calls_a_module_that_is_saved_with_it(
    make: Any, with_compiler: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = caller_of("user_times")
    code.import_module(make("scale", "user_times", 2.0))
    assert scaled(code["main"]) == [0.5, 2.5, 4.5, 6.5]
    if not with_compiler:
        monkeypatch.setenv("PATH", "")
        monkeypatch.delenv("CXX", raising=False)
    code.export_library(tmp_path / "lib.so")
    loaded = load_module(tmp_path / "lib.so")
    (imported,) = loaded.imported_modules
    assert (loaded.type_key, imported.type_key) == ("library", "user_scale")
    assert scaled(loaded["main"]) == [0.5, 2.5, 4.5, 6.5]
    assert imported["get_option"]("ways") == 2


def test_a_tree_of_modules_comes_back_as_it_was(make: Any, tmp_path: Path) -> None:
    root, left, right, leaf = (make("nested", name, n) for n, name in enumerate("abcd"))
    code, other = add_one(), add_one("other")
    root.import_module(left)
    root.import_module(code)
    left.import_module(leaf)
    code.import_module(right)
    right.import_module(leaf)
    leaf.import_module(other)  # also code: in the file, the same module as `code`
    leaf.clear_imports()
    root.import_module(other)
    root.export_library(tmp_path / "tree.so")
    loaded = load_module(tmp_path / "tree.so")
    assert [m.type_key for m in loaded.imported_modules] == ["user_nested", "library"]
    left, code = loaded.imported_modules
    (leaf,) = left.imported_modules
    (right,) = code.imported_modules
    assert right.imported_modules == [leaf], "a module that two import is one module again"
    assert [m[name]() for m, name in ((loaded, "a"), (left, "b"), (right, "c"), (leaf, "d"))] == [
        0, 1, 2, 3,
    ]  # fmt: skip
    assert code.implements_function("addone") and code.implements_function("other")
    assert loaded.get_function("d", query_imports=True)() == 3


def test_imports_may_be_packed_by_the_user(make: Any, tmp_path: Path) -> None:
    code = add_one()
    code.import_module(make("nested", "a", 1))

    def pack(root: Module, is_system_lib: bool, prefix: str, folder: str) -> str:
        assert root == code and (is_system_lib, prefix) == (False, "")
        assert Path(folder, "lib0.o").is_file()
        Path(folder, "mine.c").write_text("int packed_by_me = 7;")
        return str(Path(folder, "mine.c"))

    code.export_library(tmp_path / "lib.so", fpack_imports=pack)
    library = ctypes.CDLL(str(tmp_path / "lib.so"))
    assert ctypes.c_int.in_dll(library, "packed_by_me").value == 7


def test_modules_whose_code_is_exported(make: Any) -> None:
    root, code, other = make("nested", "a", 1), add_one(), add_one("other")
    root.import_module(code)
    code.import_module(other)
    root.import_module(other)
    assert root._collect_dso_modules() == [code, other]
    assert root._collect_from_import_tree(lambda m: not m.is_dso_exportable) == [root]


def test_modules_that_cannot_be_saved_are_named(make: Any, tmp_path: Path) -> None:
    code = add_one()
    code.import_module(make("count"))
    with pytest.raises(RuntimeError, match="type 'user_count' cannot be exported"):
        code.export_library(tmp_path / "lib.so")


def test_a_kind_that_this_process_does_not_know(make: Any, tmp_path: Path) -> None:
    code = caller_of("user_times")
    code.import_module(make("scale", "user_times", 2.0))
    code.export_library(tmp_path / "lib.so")
    name = "runtime.module.loadbinary_user_scale"
    loader = tvm.get_global_func(name)
    tvm._ffi.registry.remove_global_func(name)
    try:
        with pytest.raises(tvm.TVMError, match=f"type 'user_scale', which .*{name} is not reg"):
            load_module(tmp_path / "lib.so")
    finally:
        tvm.register_func(name, loader)


def test_a_module_with_a_table_of_functions(make: Any) -> None:
    module = make("count")
    assert (module.type_key, module["next"]()) == ("user_count", 1)
    module["add"](10)
    assert module["next"]() == 12 and module["all"](1, 2, 3) == 3
    with pytest.raises(TypeError, match="add takes 1 arguments, got 2"):
        module["add"](1, 2)
    with pytest.raises(AttributeError):
        module["previous"]


def test_functions_that_a_library_exports(user_library: str) -> None:
    library = load_module(user_library)
    assert library["sub_one"](3) == 2
    assert library["describe"](1, "b") == "got 2"
    with pytest.raises(ValueError, match="^as wished"):
        library["fail"](1)
    with pytest.raises(TypeError, match="expected int, got str"):
        library["sub_one"]("a")


def test_a_device_of_a_user(make: Any) -> None:
    device = tvm.vpi(0)
    assert device.exist and not tvm.vpi(5).exist and device.device_name == "counting 0"
    assert tvm.runtime.enabled("vpi")
    values = np.arange(6, dtype="float32").reshape(2, 3)
    before = make("in_use")
    array = tvm.nd.array(values, device)
    assert array.device == device and make("in_use") == before + 1
    np.testing.assert_array_equal(array.numpy(), values)
    np.testing.assert_array_equal(array.copyto(tvm.cpu()).numpy(), values)
    assert make("copied") == 3 * values.nbytes
    del array
    assert make("in_use") == before


def double_model(folder: Path) -> str:
    x = relay.var("x", shape=(2, 2), dtype="float32")
    module = tvm.IRModule.from_expr(relay.Function([x], x + x))
    relay.build(module, "llvm").export_library(str(folder / "model.so"))
    return str(folder / "model.so")


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=needs_tool("clang++"))])
def test_a_classic_deployment_program(compiler: str, tmp_path: Path) -> None:
    add_one().export_library(tmp_path / "addone.so")
    # the program carries a function of its own
    add_one(runtime=Runtime("cpp", {"system-lib": True})).export_library(tmp_path / "addone.tar")
    program = str(tmp_path / "deploy")
    cc.create_executable(
        program,
        [str(SOURCES / "deploy.cc"), str(tmp_path / "addone.tar")],
        options=[*WARNINGS, *RUNTIME_OPTIONS],
        cc=compiler,
    )
    done = subprocess.run(
        [program, tmp_path / "addone.so", double_model(tmp_path), "system"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "all is well\n"), done.stderr
    assert "Finish verification of addone" in done.stderr


@needs_tool("clang++")
def test_other_compilers_take_the_headers_without_a_warning() -> None:
    command = ["clang++", "-fsyntax-only", *WARNINGS, str(SOURCES / "user_module.cc")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
