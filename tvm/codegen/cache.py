"""The object cache: compiled code on disk, found by what it was compiled from.

    <TVM_CACHE_DIR>/objects/ab/cdef....o

The key is a hash of the LLVM text, of the processor and of LLVM's version. What comes before code is kept
beside it, with other endings. Files appear by an atomic rename,
so that processes share the folder without locks; when it outgrows its bound, what was not used for longest goes.

Each file begins with a digest of the rest, and one that does not fit counts as none. The folders are for one
user: where others could have put files, or nothing can be written, entries live in memory as long as the process.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from pathlib import Path

from tvm import knobs
from tvm.support.files import is_private, make_private

# a smaller share than 1, so that the folder is not tidied at every store
_KEPT_AFTER_TIDYING = 0.8
_DIGEST_BYTES = 20


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
    folder = _folder(key)
    if folder is None:
        return _memory().get((key, ending))
    path = folder / _file_name(key, ending)
    try:
        content = path.read_bytes()
        os.utime(path)  # what is used stays
    except OSError:
        return None
    data = content[_DIGEST_BYTES:]
    return data if data and _digest(data) == content[:_DIGEST_BYTES] else None


def store_entry(key: str, ending: str, data: bytes) -> None:
    """Keep something; a folder that cannot be written to is not an error."""
    if not knobs.CACHE.value:
        return
    folder = _folder(key)
    if folder is None:
        _remember(key, ending, data)
        return
    try:
        _write(folder / _file_name(key, ending), _digest(data) + data)
        if key.startswith("00"):  # one store in 256 tidies up
            tidy(folder.parent, knobs.CACHE_BYTES.value)
    except OSError:
        return


def _write(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False, suffix=".part") as file:
        try:
            file.write(content)
            file.flush()
            os.replace(file.name, path)
        except BaseException:  # Ctrl-C, or no space
            Path(file.name).unlink(missing_ok=True)
            raise


def is_on_disk() -> bool:
    """Whether other processes find what this one keeps."""
    return knobs.CACHE.value and user_folder("objects") is not None


def user_folder(*names: str) -> Path | None:
    """A folder of the cache that only this user can write to; None, with one warning, if there is none."""
    root = knobs.CACHE_DIR.value
    if root is None:
        return None
    folder = root
    for name in ("", *names):
        folder = folder / name
        if is_private(folder):
            continue
        try:
            make_private(folder)
        except OSError:
            return None
        if not is_private(folder):
            _warn_of(folder)
            return None
    return folder


@cache
def _warn_of(folder: Path) -> None:
    warnings.warn(
        f"the cache stays in memory: others than this user own the folder {folder} or may write to "
        f"it; `chmod go-w {folder}` if it is yours, or set TVM_CACHE_DIR",
        stacklevel=2,
    )


def _folder(key: str) -> Path | None:
    return user_folder("objects", key[:2])


def _file_name(key: str, ending: str) -> str:
    return f"{key[2:]}.{ending}"


def digest(data: bytes) -> str:
    """What distinguishes data from any other."""
    return _digest(data).hex()


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()


@cache
def _memory() -> dict[tuple[str, str], bytes]:
    """What is kept where there is no folder."""
    return {}


def _remember(key: str, ending: str, data: bytes) -> None:
    memory = _memory()
    memory[key, ending] = data
    while sum(map(len, memory.values())) > knobs.CACHE_BYTES.value:
        del memory[next(iter(memory))]


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
