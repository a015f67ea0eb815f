"""Linking functions, and what they tell about libraries."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import tvm
from tests.system_tools import needs_tool
from tvm import te
from tvm.contrib import cc, cross_compilers, tar, utils
from tvm.runtime import Module, load_module


def build(target: str = "llvm", name: str = "f") -> Module:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1, name="B")
    return tvm.build(te.create_schedule(b.op), [a, b], target, name=name)


@needs_tool("nm")
@pytest.mark.parametrize("suffix", ["o", "so"])
def test_symbols_of_a_library_with_their_sections(suffix: str, tmp_path: Path) -> None:
    path = str(tmp_path / f"f.{suffix}")
    build().export_library(path)
    sections = cc.get_global_symbol_section_map(path)
    assert (
        sections["f"] == "T" and "__TVMAPISetLastError" in sections and "snprintf" not in sections
    )


@needs_tool("nm")
def test_symbols_of_a_library_without_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nm = utils.which("nm")
    monkeypatch.setenv("PATH", "")
    build().export_library(tmp_path / "f.so")
    assert cc.get_global_symbol_section_map(str(tmp_path / "f.so"), nm=nm)["f"] == "T"


@needs_tool("ar", "nm")
def test_static_libraries_hold_all_objects(tmp_path: Path) -> None:
    for name in ("f", "g"):
        build(name=name).save(str(tmp_path / f"{name}.o"))
    tar.tar(str(tmp_path / "g.tar"), [str(tmp_path / "g.o")])
    cc.create_staticlib(str(tmp_path / "l.a"), [str(tmp_path / "f.o"), str(tmp_path / "g.tar")])
    assert cc.get_global_symbol_section_map(str(tmp_path / "l.a")).keys() >= {"f", "g"}


@needs_tool("aarch64-linux-gnu-g++")
def test_a_cross_compiler_knows_its_machine(tmp_path: Path) -> None:
    link = cc.cross_compiler("aarch64-linux-gnu-g++", options=["-O1"], output_format="so")
    assert (link.output_format, link.get_target_triple()) == ("so", "aarch64-linux-gnu")
    module = build("llvm -mtriple=aarch64-linux-gnu")
    module.export_library(tmp_path / "f.so", fcompile=link, options=["-g"])
    with pytest.raises(tvm.TVMError, match="it is for AArch64"):
        load_module(tmp_path / "f.so")


def test_a_linking_function_chooses_the_form_of_the_code(tmp_path: Path) -> None:
    seen: list[str] = []

    def link(output: str, files: list[str], **_options: object) -> None:
        seen.extend(Path(file).name for file in files)
        assert "define" in Path(files[-1]).read_text()

    link.object_format = "ll"  # type: ignore[attr-defined]
    build().export_library(tmp_path / "f.so", fcompile=link, addons=["more.o"])
    assert seen == ["more.o", "lib0.ll"]


def test_cross_compilers_add_options_and_files(tmp_path: Path) -> None:
    calls = []

    def link(output: str, files: list[str], **options: object) -> None:
        calls.append((Path(output).name, files[-1], options))

    link.output_format = "dylib"  # type: ignore[attr-defined]
    wrapped = cc.cross_compiler(link, options=["-a"], add_files=["crt.o"])
    assert wrapped.output_format == "dylib" and wrapped.get_target_triple is None
    build().export_library(tmp_path / "f.so", fcompile=wrapped, options=["-b"], cc="mine")
    assert calls == [("f.so", "crt.o", {"options": ["-a", "-b"], "cc": "mine"})]


def test_temporary_folders_vanish_unless_they_are_kept() -> None:
    folder = utils.tempdir()
    Path(folder.relpath("file")).write_text("")
    path = folder.path
    assert folder.listdir() == ["file"]
    del folder
    assert not path.exists()
    with utils.TempDirectory.set_keep_for_debug():
        kept = utils.tempdir()
        path = kept.path
        del kept
        assert path.exists()
        changed_mind = utils.tempdir(keep_for_debug=False)
        changed_mind.remove()
        assert not changed_mind.path.exists()
    path.rmdir()


def flip(path: Path, place: int) -> Path:
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    damaged = path.with_name(f"damaged{path.suffix}")
    damaged.write_bytes(content)
    return damaged


@pytest.mark.parametrize("suffix", ["o", "so"])
def test_damage_to_code_is_found_in_what_we_have_linked(suffix: str, tmp_path: Path) -> None:
    build().save(str(tmp_path / "f.o"))
    cc.create_shared(str(tmp_path / "f.so"), str(tmp_path / "f.o"))
    path = tmp_path / f"f.{suffix}"
    for place in range(0x60, path.stat().st_size - 32, 997):
        with pytest.raises(RuntimeError, match="its checksum is wrong"):
            load_module(flip(path, place))


@needs_tool("strip")
def test_a_stripped_library_is_checked_by_what_is_within(tmp_path: Path) -> None:
    path = tmp_path / "f.so"
    build().export_library(path)
    cc._run([utils.which("strip"), str(path)])
    assert load_module(path).implements_function("f")
    constants = path.read_bytes().index(b"TVM sum2") - 1
    for place in (0x20, constants):
        with pytest.raises(RuntimeError, match="the file is damaged"):
            load_module(flip(path, place))


@pytest.mark.parametrize("suffix", ["o", "so", "tar"])
def test_a_byte_more_or_less_does_not_switch_the_check_off(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"f.{suffix}"
    build().export_library(path)
    content = path.read_bytes()
    inverted = bytes([255 - byte for byte in content[-5000:]])
    for changed in (content + b"\n", content[:-1], content[:-5000] + inverted):
        path.write_bytes(changed)
        with pytest.raises((RuntimeError, ValueError), match="is damaged"):
            load_module(path)


def test_a_library_whose_code_changed_is_loaded_if_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.so"
    build().export_library(path)
    damaged = flip(path, path.stat().st_size - 1)  # of the checksum itself
    with pytest.raises(RuntimeError, match="TVM_CHECKSUM=0"):
        load_module(damaged)
    monkeypatch.setenv("TVM_CHECKSUM", "0")
    assert load_module(damaged).implements_function("f")


@pytest.mark.parametrize("suffix", ["o", "tar"])
def test_objects_are_linked_in_a_folder_of_their_own(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"f.{suffix}"
    build().export_library(path)
    assert load_module(path).implements_function("f")
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["../f.o", "/tmp/f.o", "link"])
def test_archives_that_would_write_elsewhere_are_rejected(name: str, tmp_path: Path) -> None:
    path = tmp_path / "f.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo(name)
        if name == "link":
            member.type, member.linkname = tarfile.SYMTYPE, "/etc"
        archive.addfile(member)
    with pytest.raises(ValueError, match=f"unsafe member '{name}'"):
        load_module(path)


@pytest.mark.parametrize(
    ("triple", "text"),
    [
        ("riscv64-linux-gnu", r"RISC-V.*riscv64-linux-gnu-gcc \(package gcc-riscv64-linux-gnu\)"),
        ("armv7l-linux-gnueabihf", r"Arm.*arm-linux-gnueabihf-gcc \(package gcc-arm-linux-gnueab"),
        ("aarch64-apple-darwin", "macOS.*a clang for it"),
        ("wasm32-unknown-unknown", r"WebAssembly.*emcc \(package emscripten\)"),
    ],
)
def test_compilers_for_other_machines_are_named(triple: str, text: str, tmp_path: Path) -> None:
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1)
    lib = tvm.build(te.create_schedule(y.op), [x, y], f"llvm -mtriple={triple}")
    with pytest.raises(RuntimeError, match=f"{text}.*tvmc compile --cross-compiler.*-f tar"):
        lib.export_library(str(tmp_path / "m.so"))
    lib.export_library(str(tmp_path / "m.tar"))  # which is what it offers


def test_cross_compilers_that_are_missing_come_from_packages(tmp_path: Path) -> None:
    source = tmp_path / "f.c"
    source.write_text("int f(void) { return 1; }\n")
    assert cross_compilers.missing_hint("/usr/bin/my-own-gcc") == ""
    text = r"install s390x-linux-gnu-gcc \(package gcc-s390x-linux-gnu\)"
    with pytest.raises(RuntimeError, match=f"cannot run /nowhere/s390x-linux-gnu-gcc: {text}"):
        cc.create_shared(str(tmp_path / "f.so"), [str(source)], cc="/nowhere/s390x-linux-gnu-gcc")


def test_a_library_that_lost_the_name_or_the_value_of_its_checksum_is_rejected(
    tmp_path: Path,
) -> None:
    path = tmp_path / "f.so"
    build().export_library(path)
    stamp = 2 * 16  # the checksum after the last byte, which tools cut off
    whole = path.read_bytes()[:-stamp]
    path.unlink()
    path.write_bytes(whole)
    assert load_module(path).implements_function("f")
    for text in (b"TVM sum2", b"__tvm_library_checksum"):
        place = whole.index(text)
        path.unlink()
        path.write_bytes(whole[:place] + bytes(16) + whole[place + 16 :])
        with pytest.raises(RuntimeError, match="cannot load library"):
            load_module(path)
