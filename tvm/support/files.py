"""Writing files atomically: whatever ends the writer, a reader finds the old content or the new one.

with replacing("model.so") as path:       # a path of the same name, in a folder beside the file
    link(path)                            # then: fsync, rename, fsync of the folder
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

_PRIVATE = 0o700
_LONGEST = 200  # of the file's name in that of the folder beside it
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to; what is there at the end takes the place of ``path`` at once.

    If the block raises, ``path`` stays as it was. A link is kept, and the file that it leads to is
    replaced, as are other files that the block writes beside the given path. An old file's
    permissions are kept. What is no ordinary file, such as a pipe, is written to as it is; so is a
    file of a folder in which none can be made.
    """
    target = Path(os.path.realpath(path))
    old = _status(target)
    is_ordinary = old is None or stat.S_ISREG(old.st_mode)
    if old is not None and is_ordinary and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    if not is_ordinary or (old is not None and not os.access(target.parent, os.W_OK)):
        yield target
        return
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name[:_LONGEST]}.", dir=target.parent))
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from None
    try:
        yield folder / target.name
        for new in sorted(folder.iterdir()):
            _put(new, target.parent / new.name)
        _sync(target.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_bytes(path: str | os.PathLike[str], content: bytes | bytearray | memoryview) -> None:
    """Write a file atomically."""
    with replacing(path) as new:
        new.write_bytes(content)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file of UTF-8 atomically."""
    write_bytes(path, text.encode())


def open_lines(path: str | os.PathLike[str]) -> TextIO:
    """A log of lines to be read; a byte that is no text spoils its own line, not the file."""
    return open(path, encoding="utf-8-sig", errors="replace")


def append_lines(path: str | os.PathLike[str], text: str) -> None:
    """Append lines to a log, which other processes may append to as well.

    They are written at once, and begin a new line if the last writer was stopped within one.
    """
    log = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        # the size grows while another process writes: its line would seem torn
        with suppress(OSError):  # file systems without locks
            fcntl.flock(log, fcntl.LOCK_EX)
        status = os.fstat(log)
        is_torn = (
            stat.S_ISREG(status.st_mode)
            and status.st_size > 0
            and os.pread(log, 1, status.st_size - 1) != b"\n"
        )
        content = ("\n" * is_torn + text).encode()
        if os.write(log, content) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))
    finally:
        os.close(log)


def make_private(folder: Path) -> None:
    """Make a folder that only this user can read and write, unless it is there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=_PRIVATE, exist_ok=True)


def is_private(folder: Path) -> bool:
    """Whether nobody but this user can have put files into a folder."""
    status = _status(folder)
    return (
        status is not None
        and stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & _WRITABLE_BY_OTHERS
    )


def _put(new: Path, target: Path) -> None:
    if new.is_file() and not new.is_symlink():
        if (old := _status(target)) is not None:
            new.chmod(stat.S_IMODE(old.st_mode))
            with suppress(PermissionError):
                os.chown(new, old.st_uid, old.st_gid)
        _sync(new)
    new.replace(target)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
