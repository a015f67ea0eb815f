"""The object cache: a second build does not run LLVM."""

import os
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import knobs, te
from tvm.codegen.cache import cache_key, load_object, store_object, tidy
from tvm.codegen.llvm.machine import Machine


@pytest.fixture
def folder(tmp_path: Path) -> object:
    with knobs.CACHE.scope(True), knobs.CACHE_DIR.scope(tmp_path):
        yield tmp_path


def build(factor: float) -> object:
    a = te.placeholder((16,), name="A")
    b = te.compute((16,), lambda i: a[i] * factor, name="B")
    return tvm.build(te.create_schedule(b.op), [a, b], "llvm")


def test_second_build_takes_the_object(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(3.0)
    monkeypatch.setattr(Machine, "optimized", lambda *_: pytest.fail("LLVM was run"))
    func = build(3.0)
    a, b = tvm.nd.array(np.ones(16, "float32")), tvm.nd.array(np.zeros(16, "float32"))
    func(a, b)
    assert (b.numpy() == 3).all()


def test_other_code_has_another_key(folder: Path) -> None:
    build(3.0)
    build(4.0)
    assert len(list((folder / "objects").glob("*/*.o"))) == 2


def test_knob_turns_the_cache_off(folder: Path) -> None:
    with knobs.CACHE.scope(False):
        build(5.0)
    assert not list(folder.rglob("*.o"))


def test_damaged_or_unwritable_folder_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "objects").write_text("a file where the folder should be")
    with knobs.CACHE.scope(True), knobs.CACHE_DIR.scope(tmp_path):
        store_object("ab" * 20, b"code")
        assert load_object("ab" * 20) is None


def test_key_depends_on_where_parts_end() -> None:
    assert cache_key("ab", "c") != cache_key("a", "bc")


def test_tidying_keeps_what_was_used_last(tmp_path: Path) -> None:
    (tmp_path / "aa").mkdir()
    for number in range(10):
        path = tmp_path / "aa" / f"{number}.o"
        path.write_bytes(b"x" * 100)
        os.utime(path, (number, number))
    tidy(tmp_path, 500)
    assert sorted(p.name for p in tmp_path.glob("*/*")) == ["6.o", "7.o", "8.o", "9.o"]
