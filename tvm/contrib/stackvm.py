"""Libraries of the target stackvm: its code is one file, which is the library as it is."""

from __future__ import annotations

import shutil
from collections.abc import Sequence


def build(output: str, files: Sequence[str]) -> None:
    """Make a library of one file.

    Parameters
    ----------
    output : str
        The library.
    files : list of str
        The one file of code.
    """
    if len(files) != 1:
        raise RuntimeError(f"stackvm.build requires one file, got {len(files)}")
    shutil.copyfile(files[0], output)
