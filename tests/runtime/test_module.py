"""Modules: loading, imports, export, embedded modules, measured times."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm.runtime.ndarray as nd
from tests.runtime import native_library
from tvm._ffi import register_func
from tvm.contrib import cc, tar
from tvm.runtime import (
    BenchmarkResult,
    Module,
    enabled,
    load_module,
    load_static_library,
    module_from_symbols,
    system_lib,
)

PACKED = ctypes.CFUNCTYPE(
    ctypes.c_int, *[ctypes.c_void_p] * 2, ctypes.c_int, *[ctypes.c_void_p] * 3
)


def address(func: Any) -> int:
    return ctypes.cast(func, ctypes.c_void_p).value or 0


@pytest.fixture(scope="module")
def object_code(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("object")
    native_library.build(folder)
    source, result = str(folder / "packed.cc"), folder / "packed.o"
    includes = [f"-I{p}" for p in native_library.libinfo.find_include_path()]
    cc.create_executable(str(result), source, options=["-c", "-fPIC", *includes])
    return result.read_bytes()


def test_functions_of_a_library(library: Module) -> None:
    assert library.type_key == "library"
    assert library.implements_function("add") and not library.implements_function("subtract")
    assert library["add"] != library["twice"]
    with pytest.raises(AttributeError, match="no function 'subtract'"):
        library["subtract"]
    with pytest.raises(ValueError, match="found by name, got int"):
        library[0]
    a, out = nd.array(np.ones(3, "float32")), nd.empty((3,))
    library(a, a, out)  # the entry function is add
    assert (out.numpy() == 2).all()
    library.entry_func(a, out, out)
    assert (out.numpy() == 3).all()


def test_functions_keep_their_library(library_path: str) -> None:
    add = load_module(library_path)["sum_scalars"]
    gc.collect()
    assert add(1, 2) == 3


def test_a_library_that_is_loaded_twice(library_path: str) -> None:
    first, second = load_module(library_path), load_module(library_path)
    assert first == second
    del second
    gc.collect()
    array = nd.array([1.0])
    register_func("test.from_env", lambda x: x, override=True)
    assert first["call_from_env"](array).same_as(array)


def test_files_that_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"missing\.so does not exist"):
        load_module(tmp_path / "missing.so")
    (tmp_path / "bad.so").write_bytes(b"\x7fELF not really")
    with pytest.raises(RuntimeError, match=r"cannot load library .*bad\.so"):
        load_module(tmp_path / "bad.so")
    (tmp_path / "model.xyz").write_bytes(b"")
    with pytest.raises(ValueError, match="no loader for format 'xyz'"):
        load_module(tmp_path / "model.xyz")


def test_imports(library: Module, library_path: str) -> None:
    other = module_from_symbols("test", {})
    other.import_module(library)
    assert other.imported_modules == [library]
    assert other.implements_function("add", query_imports=True)
    with pytest.raises(AttributeError):
        other["add"]
    assert other.get_function("sum_scalars", query_imports=True)(2, 3) == 5
    with pytest.raises(ValueError, match="import itself"):
        library.import_module(other)
    with pytest.raises(TypeError):
        other.import_module(None)
    other.clear_imports()
    assert other.imported_modules == []


def test_module_from_symbols() -> None:
    class Owner:
        calls = 0

    owner = Owner()

    @PACKED
    def function(*_args: Any) -> int:
        Owner.calls += 1
        return 0

    context, slot = ctypes.c_void_p(), ctypes.c_void_p()
    name = ctypes.create_string_buffer(b"work")
    owner.code = (function, context, slot, name)  # type: ignore[attr-defined]
    module = module_from_symbols(
        "llvm",
        {
            "work": address(function),
            "__tvm_main__": ctypes.addressof(name),
            "__tvm_module_ctx": ctypes.addressof(context),
            "__TVMAPISetLastError": ctypes.addressof(slot),
        },
        object_code=b"object",
        get_source=lambda fmt: f"source as {fmt}",
        keepalive=owner,
    )
    alive = weakref.ref(owner)
    assert slot.value and context.value
    module()
    module["work"]()
    assert Owner.calls == 2
    assert (module.type_key, module.format) == ("llvm", "o")
    assert module.get_source("ll") == "source as ll"
    assert module.is_dso_exportable and module.is_runnable and not module.is_binary_serializable
    work = module["work"]
    del owner, module
    gc.collect()
    assert alive() is not None, "a function keeps its code"
    del work
    gc.collect()
    assert alive() is None


def test_errors_of_get_source_come_out() -> None:
    with pytest.raises(ValueError, match="no source of format 'x'"):
        module_from_symbols("llvm", {}).get_source("x")


def test_saved_module(tmp_path: Path) -> None:
    module = module_from_symbols("llvm", {}, object_code=b"\0code", get_source=lambda fmt: fmt * 2)
    module.save(str(tmp_path / "code.o"))
    module.save(str(tmp_path / "code.ll"))
    assert (tmp_path / "code.o").read_bytes() == b"\0code"
    assert (tmp_path / "code.ll").read_text() == "llll"
    with pytest.raises(FileNotFoundError, match="no/code.o"):
        module.save(str(tmp_path / "no" / "code.o"))


@pytest.mark.parametrize("suffix", ["so", "tar", "o"])
def test_export_and_load(suffix: str, object_code: bytes, tmp_path: Path) -> None:
    module = module_from_symbols("llvm", {}, object_code=object_code)
    path = str(tmp_path / f"lib.{suffix}")
    if suffix == "o":
        module.save(path)
    else:
        module.export_library(path)
    loaded = load_module(path)
    assert loaded["sum_scalars"](1, 2) == 3


def test_libraries_of_code_alone_say_what_they_import(object_code: bytes, tmp_path: Path) -> None:
    """So that whoever packs imports in another way sees all libraries that have some."""
    module = module_from_symbols("llvm", {}, object_code=object_code)
    (tmp_path / "empty.o").write_bytes(_compiled("int nothing;", tmp_path))
    module.import_module(load_static_library(str(tmp_path / "empty.o"), []))
    folder = tmp_path / "work"
    for suffix in ("so", "tar"):
        module.export_library(str(tmp_path / f"lib.{suffix}"), workspace_dir=str(folder))
        assert (folder / "devc.o").is_file()
        for _ in range(2):  # the second time it is there already
            loaded = load_module(tmp_path / f"lib.{suffix}")
            assert loaded["sum_scalars"](1, 2) == 3 and loaded.imported_modules == []


def _compiled(text: str, folder: Path) -> bytes:
    (folder / "text.c").write_text(text)
    cc.create_executable(str(folder / "text.o"), str(folder / "text.c"), options=["-c", "-fPIC"])
    return (folder / "text.o").read_bytes()


def test_export_keeps_the_workspace(object_code: bytes, tmp_path: Path) -> None:
    module = module_from_symbols("llvm", {}, object_code=object_code)
    seen = {}

    def fcompile(file_name: str, files: list[str], **kwargs: Any) -> str:
        seen.update(files=files, **kwargs)
        return "result"

    result = module.export_library(
        str(tmp_path / "x.so"),
        fcompile=fcompile,
        workspace_dir=str(tmp_path / "work"),
        options=["-g"],
    )
    assert result == "result" and seen["options"] == ["-g"]
    assert [Path(f).parent for f in seen["files"]] == [tmp_path / "work"]
    assert Path(seen["files"][0]).is_file()


def test_loaded_libraries_cannot_be_exported(library: Module, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="type 'library' cannot be exported"):
        library.export_library(str(tmp_path / "x.so"))


def test_linker_errors_show_the_compilers_words(tmp_path: Path) -> None:
    (tmp_path / "bad.cc").write_text("this is no C++")
    with pytest.raises(RuntimeError, match="this is no C"):
        cc.create_shared(str(tmp_path / "x.so"), str(tmp_path / "bad.cc"))
    with pytest.raises(RuntimeError, match="cannot run no-such-compiler"):
        cc.create_shared(str(tmp_path / "x.so"), str(tmp_path / "bad.cc"), cc="no-such-compiler")


def embedded(tmp_path: Path, object_code: bytes, blob: bytes) -> str:
    """A library with the given module blob."""
    (tmp_path / "code.o").write_bytes(object_code)
    data = ",".join(map(str, len(blob).to_bytes(8, "little") + blob))
    (tmp_path / "blob.cc").write_text(
        'extern "C" __attribute__((visibility("default"))) const unsigned char __tvm_dev_mblob[];\n'
        f"const unsigned char __tvm_dev_mblob[] = {{{data}}};\n"
    )
    path = str(tmp_path / "embedded.so")
    cc.create_shared(path, [str(tmp_path / "code.o"), str(tmp_path / "blob.cc")])
    return path


def text(value: str) -> bytes:
    return len(value).to_bytes(8, "little") + value.encode()


def numbers(*values: int) -> bytes:
    return b"".join(v.to_bytes(8, "little") for v in (len(values), *values))


FACTORY = text("GraphExecutorFactory") + text("{}") + numbers() + numbers() + text("default")
TREE = text("_import_tree") + numbers(0, 1, 1) + numbers(1)


def test_embedded_modules(object_code: bytes, tmp_path: Path) -> None:
    blob = (3).to_bytes(8, "little") + FACTORY + text("_lib") + TREE
    root = load_module(embedded(tmp_path, object_code, blob))
    assert root.type_key == "GraphExecutorFactory"
    assert [m.type_key for m in root.imported_modules] == ["library"]
    assert root.get_function("sum_scalars", query_imports=True)(1, 1) == 2


def test_embedded_modules_without_a_tree(object_code: bytes, tmp_path: Path) -> None:
    blob = (1).to_bytes(8, "little") + FACTORY
    root = load_module(embedded(tmp_path, object_code, blob))
    assert root.type_key == "library"
    assert [m.type_key for m in root.imported_modules] == ["GraphExecutorFactory"]


BAD_BLOBS = {
    "unknown kind": ((1).to_bytes(8, "little") + text("spaceship"), "type 'spaceship'"),
    "truncated": ((3).to_bytes(8, "little") + FACTORY[:30], "truncated"),
    "huge text": ((1).to_bytes(8, "little") + b"\xff" * 8, "truncated or corrupt"),
    "tree too short": (
        (2).to_bytes(8, "little") + FACTORY + text("_import_tree") + numbers(0) + numbers(),
        "import tree",
    ),
    "child too large": (
        (2).to_bytes(8, "little") + FACTORY + text("_import_tree") + numbers(0, 1) + numbers(9),
        "corrupt",
    ),
}


@pytest.mark.parametrize("case", BAD_BLOBS)
def test_corrupt_embedded_modules(case: str, object_code: bytes, tmp_path: Path) -> None:
    blob, message = BAD_BLOBS[case]
    with pytest.raises((ValueError, RuntimeError), match=message):
        load_module(embedded(tmp_path, object_code, blob))


def test_a_library_that_was_copied_in_part(library_path: str, tmp_path: Path) -> None:
    code = Path(library_path).read_bytes()
    copy = tmp_path / "part.so"
    copy.write_bytes(code[: len(code) // 2])
    with pytest.raises(
        RuntimeError, match=r"part\.so: the file is damaged: .* cut off after \d+ bytes"
    ):
        load_module(copy)


def test_a_library_that_misses_a_function(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(
        "int missing_function(void); int f(void) { return missing_function(); }"
    )
    cc.create_shared(str(tmp_path / "f.so"), str(tmp_path / "f.c"))
    with pytest.raises(RuntimeError, match=r"cannot load library .*f\.so.*missing_function"):
        load_module(tmp_path / "f.so")


def test_time_evaluator(library: Module) -> None:
    a = nd.array(np.ones(8, "float32"))
    result = library.time_evaluator("add", nd.cpu(), number=3, repeat=4)(a, a, a)
    assert len(result.results) == 4 and all(t > 0 for t in result.results)
    assert result.min <= result.median <= result.max
    assert "mean (ms)" in str(result)
    long = library.time_evaluator("add", nd.cpu(), number=1, repeat=1, min_repeat_ms=20)
    assert long(a, a, a).mean < 0.02
    flush = library.time_evaluator(
        "add", nd.cpu(), cache_flush_bytes=1 << 16, f_preproc="cache_flush_cpu_non_first_arg",
        cooldown_interval_ms=1,
    )  # fmt: skip
    assert flush(a, a, a).mean > 0


def test_the_entry_function_is_measured_if_no_name_is_given(library: Module) -> None:
    a = nd.array(np.ones(8, "float32"))
    for name in ("", library.entry_name):
        assert library.time_evaluator(name, nd.cpu(), number=1)(a, a, a).mean > 0


def test_statistics_of_measurements() -> None:
    seconds = [0.3, 0.1, 0.2, 0.4]
    result = BenchmarkResult(seconds)
    assert (result.mean, result.median, result.min, result.max) == (0.25, 0.25, 0.1, 0.4)
    assert result.std == pytest.approx(np.std(seconds)) and result.results == tuple(seconds)
    assert repr(result).startswith("BenchmarkResult(min=0.1, mean=0.25, median=0.25, max=0.4, std=")


def test_time_evaluator_calls_its_preprocessor_before_each_repeat(library: Module) -> None:
    seen = []
    register_func("test.preprocess", lambda *args: seen.append(len(args)), override=True)
    a = nd.array(np.ones(8, "float32"))
    library.time_evaluator("add", nd.cpu(), number=5, repeat=3, f_preproc="test.preprocess")(
        a, a, a
    )
    assert seen == [3, 3, 3]


def test_time_evaluator_rests_between_repeats(library: Module) -> None:
    a = nd.array(np.ones(8, "float32"))
    evaluator = library.time_evaluator(
        "add", nd.cpu(), number=1, repeat=4, cooldown_interval_ms=30, repeats_to_cooldown=2
    )
    start = time.perf_counter()
    evaluator(a, a, a)
    assert time.perf_counter() - start > 0.06, "after the second and the fourth"


def test_time_evaluator_errors(library: Module) -> None:
    with pytest.raises(ValueError, match="no function 'nothing'"):
        library.time_evaluator("nothing", nd.cpu())
    with pytest.raises(ValueError, match="number >= 1, got 0"):
        library.time_evaluator("add", nd.cpu(), number=0)
    with pytest.raises(ValueError, match="'nope' is not registered"):
        library.time_evaluator("add", nd.cpu(), f_preproc="nope")


def test_workspaces(library: Module) -> None:
    assert library["workspaces"]() == 1


def test_enabled_targets() -> None:
    assert enabled("llvm") and enabled("llvm -mcpu=skylake") and enabled("cpu")
    assert not enabled("cuda")
    assert system_lib().type_key == "library"


def test_importing_is_light() -> None:
    code = (
        "import sys, tvm.runtime\n"
        "heavy = {'torch', 'onnx', 'scipy', 'onnxruntime', 'transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_static_libraries_join_an_export(object_code: bytes, tmp_path: Path) -> None:
    (tmp_path / "first.o").write_bytes(object_code)
    static = load_static_library(str(tmp_path / "first.o"), ["add", "twice"])
    assert static.type_key == "static_library" and static.is_dso_exportable
    assert not static.is_runnable
    assert static.implements_function("add") and not static.implements_function("subtract")
    static.export_library(str(tmp_path / "joined.so"))
    assert load_module(tmp_path / "joined.so").implements_function("add")


@pytest.mark.parametrize("suffix", ["o", "tar", "so"])
def test_every_form_of_an_export_loads(object_code: bytes, tmp_path: Path, suffix: str) -> None:
    module = module_from_symbols("llvm", {}, object_code=object_code)
    module.export_library(str(tmp_path / f"lib.{suffix}"))
    a, out = nd.array(np.ones(3, "float32")), nd.empty((3,))
    load_module(tmp_path / f"lib.{suffix}")["add"](a, a, out)
    assert out.numpy().tolist() == [2, 2, 2]


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "bad.tar").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"bad.tar is no tar archive"):
        load_module(tmp_path / "bad.tar")


def test_an_archive_of_a_library_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "mod.so").write_bytes(b"library")
    tar.tar(str(tmp_path / "package.tar"), [str(tmp_path / "mod.so")])
    with pytest.raises(ValueError, match=r"requires objects in it, got the library mod.so"):
        load_module(tmp_path / "package.tar")


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/shm is Linux's")
def test_an_archive_loads_where_no_temporary_folder_may_be_written(
    object_code: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module_from_symbols("llvm", {}, object_code=object_code).export_library(tmp_path / "lib.tar")

    def no_folder() -> str:
        raise FileNotFoundError("no usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", no_folder)
    assert load_module(tmp_path / "lib.tar")["sum_scalars"](1, 2) == 3


def test_benchmark_measures_the_entry_function(library: Module) -> None:
    a, out = nd.array(np.ones(3, "float32")), nd.empty((3,))
    result = library.benchmark(nd.cpu(), a, a, out, repeat=3, number=2)
    assert len(result.results) == 3
    assert result.min <= result.mean <= result.max
    assert (out.numpy() == 2).all()
