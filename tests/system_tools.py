"""Programs of the system (cross compilers, emulators, sanitizers) that some tests run."""

import os
import shutil
from pathlib import Path

import pytest

from tvm._ffi import libinfo


def needs_tool(*names: str) -> pytest.MarkDecorator:
    """Mark a test that runs programs of the system; only where CI runs must they be there.

    ``debian-packages.txt`` names the packages that bring them.
    """
    missing = [name for name in names if shutil.which(name) is None]
    return pytest.mark.skipif(
        bool(missing) and "CI" not in os.environ,
        reason=f"needs {', '.join(missing)}: see debian-packages.txt",
    )


def needs_onednn() -> pytest.MarkDecorator:
    """Mark a test that calls oneDNN; only where CI runs must it be there."""
    library = Path(libinfo.find_lib_path()[0]).parent / "libtvm_dnnl.so"
    return pytest.mark.skipif(
        not library.exists() and "CI" not in os.environ,
        reason="the runtime was built without oneDNN: see debian-packages.txt",
    )
