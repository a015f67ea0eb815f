"""Shared libraries without a compiler: the same behaviour, clear rejections."""

from __future__ import annotations

import ctypes
import platform
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import relay, te
from tvm.contrib import cc, graph_executor
from tvm.elf import objects
from tvm.elf.link import LinkError, link_shared
from tvm.elf.read import read_object
from tvm.elf.relocate import AARCH64, X86_64
from tvm.runtime import Module, load_module, load_static_library


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("CXX", raising=False)


def build(name: str = "f", target: str = "llvm") -> Module:
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: te.exp(a[i]) + te.floor(a[i]) * te.cos(a[i]), name="B")
    schedule = te.create_schedule(b.op)
    schedule[b].parallel(b.op.axis[0])
    return tvm.build(schedule, [a, b], target, name=name)


def check(function: Callable[..., object]) -> None:
    values = np.linspace(-2, 2, 1000, dtype="float32")
    out = tvm.nd.empty((1000,))
    function(tvm.nd.array(values), out)
    expected = np.exp(values) + np.floor(values) * np.cos(values)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="needs dtype float32, got int32"):
        function(tvm.nd.array(values), tvm.nd.empty((1000,), "int32"))


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("suffix", ["so", "o", "tar"])
def test_exports_work_with_an_empty_path(tmp_path: Path, suffix: str) -> None:
    assert cc.get_cc() is None
    build().export_library(str(tmp_path / f"lib.{suffix}"))
    library = load_module(tmp_path / f"lib.{suffix}")
    check(library["f"])
    check(library)


def test_both_ways_export_the_same_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = build()
    module.import_module(build("g"))
    module.export_library(str(tmp_path / "with.so"))
    monkeypatch.setenv("PATH", "")
    module.export_library(str(tmp_path / "without.so"))
    names = ("f", "g", "__tvm_main__", "__TVMAPISetLastError", "__tvm_dev_mblob", "snprintf", "no")
    found = []
    for name in ("with.so", "without.so"):
        library = ctypes.CDLL(str(tmp_path / name))
        found.append([hasattr(library, each) for each in names])
        loaded = load_module(tmp_path / name)
        check(loaded["f"])
        check(loaded["g"])
    assert found[0] == found[1]


@pytest.mark.usefixtures("no_compiler")
def test_models_keep_their_parameters(tmp_path: Path) -> None:
    x = relay.var("x", shape=(2, 8), dtype="float32")
    w = relay.var("w", shape=(4, 8), dtype="float32")
    module = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    weight = np.random.default_rng(0).random((4, 8), "float32")
    factory = relay.build(module, target="llvm", params={"w": weight})
    factory.export_library(str(tmp_path / "model.so"))
    executor = graph_executor.GraphModule(load_module(tmp_path / "model.so")["default"](tvm.cpu()))
    executor.run(x=np.ones((2, 8), "float32"))
    np.testing.assert_allclose(
        executor.get_output(0).numpy(), np.ones((2, 8)) @ weight.T, rtol=1e-5
    )


def test_a_loaded_library_survives_being_replaced(tmp_path: Path) -> None:
    build().save(str(tmp_path / "f.o"))
    link_shared(tmp_path / "lib.so", [tmp_path / "f.o"])
    old = load_module(tmp_path / "lib.so")
    link_shared(tmp_path / "lib.so", [tmp_path / "f.o"])
    check(old["f"])


def test_initialisers_data_and_foreign_functions(tmp_path: Path) -> None:
    source = tmp_path / "state.c"
    source.write_text(
        "#include <math.h>\n#include <stdlib.h>\n"
        "int counter = 40; int* where = &counter; static int zeros[1000]; int tentative;\n"
        "double (*table[2])(double) = {sin, cos};\n"
        "__attribute__((constructor)) static void start(void) { counter++; }\n"
        "int get(void) { return ++*where + zeros[999] + tentative; }\n"
        "double call(int i, double x) { return table[i](x) + abs(-1); }\n"
    )
    result = str(tmp_path / "state.o")
    cc.create_executable(result, str(source), options=["-c", "-fPIC", "-O1", "-fcommon"], cc="gcc")
    link_shared(tmp_path / "state.so", [result])
    library = ctypes.CDLL(str(tmp_path / "state.so"))
    assert library.get() == 42
    library.call.restype, library.call.argtypes = ctypes.c_double, [ctypes.c_int, ctypes.c_double]
    assert library.call(0, 0.0) == 1 and library.call(1, 0.0) == 2


@pytest.mark.usefixtures("no_compiler")
def test_what_needs_a_compiler_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int f(void) { return 1; }")
    build().save(str(tmp_path / "f.o"))
    (tmp_path / "bad.o").write_bytes((tmp_path / "f.o").read_bytes()[:200])
    (tmp_path / "text.o").write_text("no object" * 20)
    for names, message in [
        (["a.c"], r"a\.c: this needs a C\+\+ compiler: install g\+\+, or set CXX"),
        (["f.o", "f.o"], "two objects define f; install g"),
        (["bad.o"], "bad.o is a damaged object file; install g"),
        (["text.o"], "text.o is no object file for a 64-bit"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            cc.create_shared(str(tmp_path / "x.so"), [str(tmp_path / name) for name in names])
    with pytest.raises(RuntimeError, match="-lfoo: this needs a C"):
        cc.create_shared(str(tmp_path / "x.so"), str(tmp_path / "f.o"), ["-O2", "-lfoo"])


def test_objects_cut_anywhere_are_rejected(tmp_path: Path) -> None:
    build().save(str(tmp_path / "f.o"))
    code = (tmp_path / "f.o").read_bytes()
    checksum = 48  # bytes after the object
    for length in range(0, len(code) - checksum, 97):
        with pytest.raises(ValueError, match="object file"):
            read_object(code[:length], "cut.o")


def test_data_stands_in_a_library_of_its_own(tmp_path: Path) -> None:
    build().save(str(tmp_path / "f.o"))
    like = (tmp_path / "f.o").read_bytes()
    (tmp_path / "d.o").write_bytes(objects.data_object("blob", b"12345", like))
    link_shared(tmp_path / "d.so", [tmp_path / "d.o"])
    blob = ctypes.c_char.in_dll(ctypes.CDLL(str(tmp_path / "d.so")), "blob")
    assert ctypes.string_at(ctypes.addressof(blob), 5) == b"12345"


@pytest.mark.parametrize("link", [link_shared, cc.create_shared])
def test_more_data_than_code_can_reach_is_a_section_of_its_own(
    link: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "FAR_SIZE", 4)
    build().save(str(tmp_path / "f.o"))
    code = objects.data_object("blob", b"12345", (tmp_path / "f.o").read_bytes())
    assert (b".lrodata" in code) == (objects.machine_of(str(tmp_path / "f.o")) == 62)
    (tmp_path / "d.o").write_bytes(code)
    link(str(tmp_path / "d.so"), [str(tmp_path / "d.o")])
    blob = ctypes.c_char.in_dll(ctypes.CDLL(str(tmp_path / "d.so")), "blob")
    assert ctypes.string_at(ctypes.addressof(blob), 5) == b"12345"


@pytest.mark.parametrize(
    ("instructions", "kinds", "scale"),
    [((0x90000000, 0x91000000), (275, 277), 0), ((0x90000000, 0xF9400000), (311, 312), 3)],
)
@pytest.mark.parametrize("target", [0x12348, 0x7FFF_F008, 0x10])
def test_aarch64_addresses_in_two_steps(
    instructions: tuple[int, int], kinds: tuple[int, int], scale: int, target: int
) -> None:
    place = 0x40_0010
    code = bytearray(struct.pack("<II", *instructions))
    AARCH64.patches[kinds[0]](code, 0, target, place)
    AARCH64.patches[kinds[1]](code, 4, target, place + 4)
    page, low = struct.unpack("<II", code)
    distance = (page >> 5 & 0x7FFFF) << 2 | (page >> 29 & 3)
    distance -= (distance & 1 << 20) << 1
    offset = (low >> 10 & 0xFFF) << scale
    assert ((place >> 12) + distance << 12) + offset == target
    assert page & 0x9F00001F == instructions[0] and low & ~(0xFFF << 10) == instructions[1]


def test_branches_that_reach_too_far() -> None:
    with pytest.raises(struct.error):
        AARCH64.patches[283](bytearray(4), 0, 1 << 27, 0)
    with pytest.raises(struct.error):
        X86_64.patches[4](bytearray(4), 0, 1 << 31, 0)
    code = bytearray(struct.pack("<I", 0x94000000))
    AARCH64.patches[283](code, 0, 0x1000, 0x2000)
    assert struct.unpack("<I", code)[0] == 0x97FFFC00


def test_libraries_for_aarch64_have_its_number(tmp_path: Path) -> None:
    build(target="llvm -mtriple=aarch64-linux-gnu").save(str(tmp_path / "f.o"))
    link_shared(tmp_path / "f.so", [tmp_path / "f.o"])
    kind, machine = struct.unpack_from("<HH", (tmp_path / "f.so").read_bytes(), 16)
    assert (kind, machine) == (3, 183)
    build().save(str(tmp_path / "g.o"))
    with pytest.raises(LinkError, match=r"for machines \[62, 183\]"):
        link_shared(tmp_path / "f.so", [tmp_path / "f.o", tmp_path / "g.o"])


def test_the_library_runs_in_a_new_process(tmp_path: Path) -> None:
    build().save(str(tmp_path / "f.o"))
    static = load_static_library(str(tmp_path / "f.o"), ["f"])
    static.export_library(str(tmp_path / "lib.so"), fcompile=link_shared)
    program = (
        "import numpy as np, sys; from tvm.runtime import load_module, ndarray as nd\n"
        "out = nd.empty((2,)); load_module(sys.argv[1])['f'](nd.array(np.zeros(2, 'float32')), out)\n"
        "assert out.numpy().tolist() == [1, 1]"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "lib.so")], check=True)


def test_objects_with_flipped_bits_never_crash(tmp_path: Path) -> None:
    build().save(str(tmp_path / "f.o"))
    code = (tmp_path / "f.o").read_bytes()
    generator = random.Random(0)
    outcomes = set()
    for _ in range(300):
        flipped = bytearray(code)
        for _ in range(3):
            place = generator.choice((generator.randrange(64), -generator.randrange(1, 2500)))
            flipped[place] ^= 1 << generator.randrange(8)
        (tmp_path / "g.o").write_bytes(flipped)
        try:
            link_shared(tmp_path / "g.so", [tmp_path / "g.o"])
            outcomes.add("linked")
        except ValueError:
            outcomes.add("rejected")
    assert outcomes == {"linked", "rejected"}


def test_a_library_for_another_machine_is_named(tmp_path: Path) -> None:
    foreign = "x86_64" if platform.machine() == "aarch64" else "aarch64"
    build(target=f"llvm -mtriple={foreign}-linux-gnu").save(str(tmp_path / "f.o"))
    link_shared(tmp_path / "f.so", [tmp_path / "f.o"])
    with pytest.raises(tvm.TVMError, match=r"f\.so: it is for \S+, and this machine is"):
        load_module(tmp_path / "f.so")
