"""Archives of object files."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

from tvm.contrib.utils import TempDirectory


def tar(output: str, files: list[str] | str) -> None:
    """Write an archive of the files, without their folders."""
    names = [files] if isinstance(files, str) else files
    repeated = {
        Path(n).name for n in names if [Path(m).name for m in names].count(Path(n).name) > 1
    }
    if repeated:
        raise ValueError(f"an archive needs distinct file names, got {sorted(repeated)} twice")
    with tarfile.open(output, "w") as archive:
        for name in names:
            archive.add(name, arcname=Path(name).name)


tar.output_format = "tar"  # type: ignore[attr-defined]


def untar(tar_file: str, directory: str) -> None:
    """Unpack an archive; members that would land outside the folder are refused."""
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
