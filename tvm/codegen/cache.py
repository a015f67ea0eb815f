"""The object cache: compiled code on disk, found by what it was compiled from.

    <TVM_CACHE_DIR>/objects/ab/cdef....o

The key is a hash of the LLVM text, of the processor and of LLVM's version. What comes before code is kept
beside it, with other endings. Files appear by an atomic rename,
so that processes share the folder without locks; when it outgrows its bound, what was not used for longest goes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from tvm import knobs

# a smaller share than 1, so that the folder is not tidied at every store
_KEPT_AFTER_TIDYING = 0.8


def cache_key(*parts: str) -> str:
    """The name under which code is kept that depends on nothing but ``parts``."""
    digest = blake2b(digest_size=20)
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def load_object(key: str) -> bytes | None:
    """The object code of that key, or None."""
    return load_entry(key, "o")


def store_object(key: str, data: bytes) -> None:
    """Keep object code."""
    store_entry(key, "o", data)


def load_entry(key: str, ending: str) -> bytes | None:
    """What was kept under that key in a file of that ending, or None."""
    if not knobs.CACHE.value:
        return None
    path = _path(key, ending)
    try:
        data = path.read_bytes()
        os.utime(path)  # what is used stays
    except OSError:
        return None
    return data or None


def store_entry(key: str, ending: str, data: bytes) -> None:
    """Keep something; a folder that cannot be written to is not an error."""
    if not knobs.CACHE.value:
        return
    path = _path(key, ending)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False, suffix=".part") as file:
            file.write(data)
        os.replace(file.name, path)
        if key.startswith("00"):  # one store in 256 tidies up
            tidy(knobs.CACHE_DIR.value / "objects", knobs.CACHE_BYTES.value)
    except OSError:
        return


def _path(key: str, ending: str) -> Path:
    return knobs.CACHE_DIR.value / "objects" / key[:2] / f"{key[2:]}.{ending}"


def tidy(folder: Path, limit: int) -> None:
    """Remove the files unused for longest if ``folder`` holds more than ``limit`` bytes."""
    files = sorted(_files(folder))
    total = sum([size for _, size, _ in files])
    if total <= limit:
        return
    for _, size, path in files:
        Path(path).unlink(missing_ok=True)
        total -= size
        if total <= limit * _KEPT_AFTER_TIDYING:
            return


def _files(folder: Path) -> Iterable[tuple[float, int, str]]:
    # scandir, for there may be very many
    for part in os.scandir(folder):
        for entry in os.scandir(part) if part.is_dir() else ():
            try:
                status = entry.stat()
            except OSError:
                continue  # another process removed it
            yield status.st_mtime, status.st_size, entry.path
