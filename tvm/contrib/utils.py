"""Temporary folders and files."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

# within `TempDirectory.set_keep_for_debug`
_KEEP: ContextVar[bool | None] = ContextVar("keep_for_debug", default=None)


class DirectoryCreatedPastAtExit(Exception):
    """A temporary folder was wanted when the interpreter was about to end."""


class TempDirectory:
    """A folder that vanishes with this object.

    Parameters
    ----------
    custom_path : str, optional
        Use this folder, and keep it.
    keep_for_debug : bool, optional
        Keep the folder. Those of one process are numbered, in a folder named after the time.

    Attributes
    ----------
    TEMPDIRS : set of str
        The folders that are to vanish; None once `remove_tempdirs` was called.
    """

    TEMPDIRS: ClassVar[set[str] | None] = set()
    _KEEP_FOR_DEBUG: ClassVar[bool] = False  # outside of set_keep_for_debug

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool | None = None) -> None:
        if sys.is_finalizing() or TempDirectory.TEMPDIRS is None:
            raise DirectoryCreatedPastAtExit("nobody would delete the folder any more")
        if keep_for_debug is None:
            keep_for_debug = self._KEEP_FOR_DEBUG if _KEEP.get() is None else _KEEP.get()
        self._keep = bool(custom_path or keep_for_debug)
        if custom_path:
            self.temp_dir = custom_path
            Path(custom_path).mkdir(parents=True, exist_ok=True)
        elif keep_for_debug:
            self.temp_dir = _numbered_folder()
        else:
            self.temp_dir = tempfile.mkdtemp(prefix="tvm-", dir=_writable_parent())
            TempDirectory.TEMPDIRS.add(self.temp_dir)

    @classmethod
    def remove_tempdirs(cls) -> None:
        """Delete all folders that are to vanish; no more are made then."""
        for folder in TempDirectory.TEMPDIRS or ():
            shutil.rmtree(folder, ignore_errors=True)
        TempDirectory.TEMPDIRS = None

    @classmethod
    @contextmanager
    def set_keep_for_debug(cls, set_to: bool = True) -> Iterator[None]:
        """Keep the folders that are made meanwhile."""
        before = _KEEP.set(set_to)
        try:
            yield
        finally:
            _KEEP.reset(before)

    @property
    def path(self) -> Path:
        """The folder."""
        return Path(self.temp_dir)

    def remove(self) -> None:
        """Delete the folder now."""
        if self._keep:
            return
        shutil.rmtree(self.temp_dir, ignore_errors=True)
        if TempDirectory.TEMPDIRS is not None:
            TempDirectory.TEMPDIRS.discard(self.temp_dir)

    def __del__(self) -> None:
        if shutil is not None and hasattr(self, "temp_dir"):
            self.remove()

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()

    def __truediv__(self, other: str) -> Path:
        return self.path / other

    def relpath(self, name: str) -> str:
        """The path of a file in the folder."""
        return str(self.path / name)

    def listdir(self) -> list[str]:
        """The names of the files in the folder."""
        return sorted(entry.name for entry in self.path.iterdir())


@cache
def _debug_folder(process: int) -> tuple[str, Iterator[int]]:
    """The folder of those that a process keeps, and their numbers."""
    del process  # a forked one has a folder of its own
    time = datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    return tempfile.mkdtemp(prefix=f"{time}___"), count()


def _numbered_folder() -> str:
    parent, numbers = _debug_folder(os.getpid())
    folder = Path(parent) / f"{next(numbers):05d}"
    folder.mkdir()
    return str(folder)


def tempdir(custom_path: str | None = None, keep_for_debug: bool | None = None) -> TempDirectory:
    """A new temporary folder."""
    return TempDirectory(custom_path, keep_for_debug)


@contextmanager
def kept_folder(folder: Path | None = None) -> Iterator[Path]:
    """The folder, made if missing and kept; or a temporary one that is deleted at the end."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="tvm-", dir=_writable_parent()) as temporary:
        yield Path(temporary)


_MEMORY = "/dev/shm"


def _writable_parent() -> str:
    """Where temporary files go; to memory, where no folder for them may be written."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        if not os.access(_MEMORY, os.W_OK):
            raise
        return _MEMORY


class FileLock:
    """A lock that other processes respect."""

    def __init__(self, path: str) -> None:
        self.lock_file = Path(path).open("w")  # noqa: SIM115 - open as long as the lock is held
        fcntl.lockf(self.lock_file, fcntl.LOCK_EX)

    def release(self) -> None:
        """Let others in."""
        if not self.lock_file.closed:
            fcntl.lockf(self.lock_file, fcntl.LOCK_UN)
            self.lock_file.close()


def filelock(path: str) -> FileLock:
    """Wait for the lock on a file, and take it."""
    return FileLock(path)


def is_source_path(path: str) -> bool:
    """Whether the text is the path of a source file, not source code."""
    return path.endswith((".cc", ".c", ".h", ".cpp", ".S")) and "\n" not in path


def which(exec_name: str) -> str | None:
    """The path of a program, or None."""
    return shutil.which(exec_name)


def mark_format(write: Any, suffix: str) -> None:
    """Say which kind of file a function writes: exports ask for the suffix."""
    write.output_format = suffix
