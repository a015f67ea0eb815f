"""The object cache: a second build does not run LLVM."""

import os
import subprocess
import sys
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


def test_without_a_folder_entries_live_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where the folder should be")
    for number, folder in enumerate((tmp_path / "file", Path("/proc/none"))):
        with knobs.CACHE.scope(True), knobs.CACHE_DIR.scope(folder):
            store_object(f"{number}b" * 20, b"code")
            assert load_object(f"{number}b" * 20) == b"code"


def test_a_file_that_is_not_as_it_was_written_is_none(folder: Path) -> None:
    store_object("ab" * 20, b"code" * 100)
    (path,) = folder.rglob("*.o")
    content = path.read_bytes()
    for changed in (content[:-1], content[:-200] + bytes(200), b"", b"x" + content[1:]):
        path.write_bytes(changed)
        assert load_object("ab" * 20) is None
    store_object("ab" * 20, b"again")
    assert load_object("ab" * 20) == b"again"


def test_folders_are_for_their_owner_alone(folder: Path) -> None:
    store_object("ab" * 20, b"code")
    modes = {(folder / name).stat().st_mode & 0o777 for name in ("objects", "objects/ab")}
    assert modes == {0o700}


@pytest.mark.parametrize("name", [".", "objects", "objects/ab"])
def test_what_others_may_have_written_is_not_used(folder: Path, name: str) -> None:
    key = "ab" + f"{len(name):02}" * 19
    store_object(key, b"code")
    before = sorted(folder.rglob("*"))
    (folder / name).chmod(0o770)
    with pytest.warns(UserWarning, match="the cache stays in memory"):
        assert load_object(key) is None
    store_object(key, b"other")  # without another warning
    assert load_object(key) == b"other" and sorted(folder.rglob("*")) == before


def test_the_package_starts_without_a_home_and_without_a_known_user() -> None:
    program = (
        "import pwd\ndef getpwuid(user):\n    raise KeyError(user)\npwd.getpwuid = getpwuid\n"
        "import tvm\nprint(tvm.knobs.CACHE_DIR.value)"
    )
    library = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=library, check=False
    )
    assert (done.stdout, done.stderr) == ("None\n", "")


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
