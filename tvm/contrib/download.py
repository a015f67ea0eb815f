"""Fetching files for examples."""

from __future__ import annotations

import shutil
import time
import urllib.error
import urllib.request
from pathlib import Path

from tvm import knobs
from tvm.support.files import replacing


def download(
    url: str,
    path: str | Path,
    overwrite: bool = False,
    size_compare: bool = False,
    retries: int = 3,
) -> None:
    """Fetch a file, unless it is there.

    Parameters
    ----------
    url : str
        Where from; ``file:`` is fine.
    path : str
        Where to; missing folders are made.
    overwrite : bool
        Fetch it even if it is there.
    size_compare : bool
        Fetch it again if its size is another than the server's.
    retries : int
        How often to try again after a failure.
    """
    target = Path(path)
    if target.is_file() and not overwrite and not (size_compare and _size(url) != _length(target)):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(retries + 1):
        try:
            with (
                urllib.request.urlopen(url) as source,
                replacing(target) as new,
                new.open("wb") as sink,
            ):
                shutil.copyfileobj(source, sink)
            return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if attempt == retries:
                raise
            time.sleep(2**attempt)


def _size(url: str) -> int | None:
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD")) as answer:
        length = answer.headers.get("content-length")
    return None if length is None else int(length)


def _length(path: Path) -> int:
    return path.stat().st_size


def download_testdata(
    url: str, relpath: str, module: str | list[str] | None = None, overwrite: bool = False
) -> str:
    """Fetch a file into the folder of test data; the path of the file.

    Parameters
    ----------
    url : str
        Where from.
    relpath : str
        The file's path inside of the folder.
    module : str or list of str, optional
        Sub-folders.
    overwrite : bool
        Fetch it even if it is there.
    """
    folders = [module] if isinstance(module, str) else list(module or [])
    path = knobs.TEST_DATA.value.joinpath(*folders, relpath)
    download(url, path, overwrite)
    return str(path)
