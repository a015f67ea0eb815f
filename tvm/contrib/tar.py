"""Archives of object files, and of models.

What is written begins with a comment to all members, which other programs leave alone: a checksum of
all that follows. An archive without it may be anyone's.
"""

from __future__ import annotations

import mmap
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tvm import knobs
from tvm._ffi.registry import get_global_func
from tvm.contrib import utils
from tvm.contrib.utils import TempDirectory
from tvm.runtime.params import share_bytes
from tvm.support.files import replacing

_COMMENT_NAME = "tvm_checksum"
_COMMENT = "TVM checksum"
_START = 2 * tarfile.BLOCKSIZE  # the comment's header and text


def tar(output: str, files: list[str] | str) -> None:
    """Write an archive of the files, without their folders."""
    names = [files] if isinstance(files, str) else files
    repeated = {
        Path(n).name for n in names if [Path(m).name for m in names].count(Path(n).name) > 1
    }
    if repeated:
        raise ValueError(f"an archive needs distinct file names, got {sorted(repeated)} twice")
    write_archive(output, {Path(name).name: name for name in names})


utils.mark_format(tar, "tar")


def write_archive(output: str | os.PathLike[str], members: Mapping[str, str | Path]) -> None:
    """Write an archive of files and folders, by the names that they have in it."""
    with replacing(output) as path, path.open("w+b") as file:
        file.write(bytes(_START))
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name, source in members.items():
                archive.add(source, arcname=name)
        file.flush()
        file.seek(0)
        file.write(_comment(_checksum_of(file.fileno())))


def _checksum_of(descriptor: int) -> str:
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content:
        return str(get_global_func("runtime.Checksum")(share_bytes(content), _START))


def _comment(checksum: str) -> bytes:
    """The comment to all members, as the POSIX form of archives has it."""
    text = f" comment={_COMMENT} {checksum}\n"
    record = f"{len(text) + len(str(len(text)))}{text}".encode()
    info = tarfile.TarInfo(_COMMENT_NAME)
    info.type, info.size = tarfile.XGLTYPE, len(record)
    return info.tobuf(tarfile.USTAR_FORMAT) + record.ljust(tarfile.BLOCKSIZE, b"\0")


def _check(path: str) -> None:
    """Reject an archive that is not as it was written."""
    with open(path, "rb") as file:
        start = file.read(_START)
        if not start.startswith(_COMMENT_NAME.encode() + b"\0") or not knobs.CHECKSUM.value:
            return
        if len(start) < _START or start != _comment(_checksum_of(file.fileno())):
            raise ValueError(
                f"archive {path} is damaged: its checksum is wrong "
                "(TVM_CHECKSUM=0 reads it all the same)"
            )


def untar(tar_file: str, directory: str) -> None:
    """Unpack an archive.

    One that was changed since it was written is rejected, and so are links, and members that would
    land outside the folder.
    """
    _check(tar_file)
    with tarfile.open(tar_file) as archive:
        root = Path(directory).resolve()
        for member in archive.getmembers():
            target = (root / member.name).resolve()
            if not (member.isfile() or member.isdir()) or root not in (target, *target.parents):
                raise ValueError(f"archive {tar_file} holds an unsafe member {member.name!r}")
        # the members were checked; newer Pythons want a filter named all the same
        options: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(directory, **options)


def normalize_file_list_by_unpacking_tars(temp: TempDirectory, file_list: list[str]) -> list[str]:
    """The files, with archives replaced by what they hold."""
    files = []
    for index, name in enumerate(file_list):
        if not name.endswith(".tar"):
            files.append(name)
            continue
        folder = temp.path / f"tar{index}"
        folder.mkdir(parents=True, exist_ok=True)
        untar(name, str(folder))
        files += sorted(str(path) for path in folder.rglob("*") if path.is_file())
    return files
