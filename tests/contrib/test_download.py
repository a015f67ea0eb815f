from __future__ import annotations

import urllib.error
from pathlib import Path

import pytest

from tvm import knobs
from tvm.contrib.download import download, download_testdata


def test_a_file_is_fetched_once(tmp_path: Path) -> None:
    source, target = tmp_path / "source.txt", tmp_path / "below" / "target.txt"
    source.write_text("one")
    download(source.as_uri(), target)
    source.write_text("two")
    download(source.as_uri(), target)
    assert target.read_text() == "one"
    download(source.as_uri(), str(target), overwrite=True)
    assert target.read_text() == "two"


def test_test_data_has_a_folder(tmp_path: Path) -> None:
    source = tmp_path / "cat.png"
    source.write_bytes(b"cat")
    with knobs.TEST_DATA.scope(tmp_path / "data"):
        path = download_testdata(source.as_uri(), "cat.png", module=["imgs"])
    assert path == str(tmp_path / "data" / "imgs" / "cat.png")
    assert Path(path).read_bytes() == b"cat"


def test_failure_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(urllib.error.URLError):
        download((tmp_path / "none").as_uri(), tmp_path / "target", retries=0)
    assert not list(tmp_path.iterdir())
