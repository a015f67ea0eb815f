from __future__ import annotations

import os
import stat
import threading
from multiprocessing import get_context
from pathlib import Path

import pytest

from tvm.support.files import append_lines, is_private, make_private, replacing, write_text


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")
    with pytest.raises(ZeroDivisionError), replacing(path) as new:
        new.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")
    with pytest.raises(OSError, match="No space left"), replacing(path) as new:
        new.symlink_to("/dev/full")
        new.write_text("new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file"]


def test_permissions_are_the_old_ones_or_what_the_mask_says(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o604)
    write_text(tmp_path / "new", "y")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


def test_a_link_is_kept_and_leads_to_the_new_content(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name in ("there", "missing"):
        (tmp_path / f"to_{name}").symlink_to(Path("folder") / name)
    (tmp_path / "folder" / "there").write_text("old")
    for name in ("there", "missing"):
        write_text(tmp_path / f"to_{name}", "new")
        assert (tmp_path / f"to_{name}").is_symlink()
        assert (tmp_path / "folder" / name).read_text() == "new"


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_text(tmp_path / "pipe", "text")
    reader.join()
    assert found == ["text"]


def test_files_beside_the_given_one_come_along(tmp_path: Path) -> None:
    with replacing(tmp_path / "model.wasm") as new:
        new.write_text("code")
        new.with_suffix(".js").write_text("loader")
    assert sorted(os.listdir(tmp_path)) == ["model.js", "model.wasm"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no/file"):
        write_text(tmp_path / "no" / "file", "x")


def test_lines_after_a_torn_one_begin_anew(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("one\ntw")
    append_lines(tmp_path / "log", "three\n")
    append_lines(tmp_path / "log", "four\n")
    assert (tmp_path / "log").read_text() == "one\ntw\nthree\nfour\n"


def _append_many(path: Path, letter: str) -> None:
    for _ in range(200):
        append_lines(path, letter * 5000 + "\n")


def test_lines_of_several_processes_are_not_mixed(tmp_path: Path) -> None:
    context = get_context("spawn")
    writers = [context.Process(target=_append_many, args=(tmp_path / "log", c)) for c in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    lines = (tmp_path / "log").read_text().splitlines()
    assert sorted(lines) == sorted([c * 5000 for c in "abc"] * 200)


def test_private_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    make_private(tmp_path / "a")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700 and is_private(tmp_path / "a")
    for mode in (0o770, 0o707, 0o777):
        (tmp_path / "a").chmod(mode)
        assert not is_private(tmp_path / "a")
    assert not is_private(tmp_path / "none") and not is_private(Path(__file__))
