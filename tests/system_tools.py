"""Programs of the system (cross compilers, emulators, sanitizers) that some tests run."""

import os
import shutil

import pytest


def needs_tool(*names: str) -> pytest.MarkDecorator:
    """Mark a test that runs programs of the system; only where CI runs must they be there.

    ``debian-packages.txt`` names the packages that bring them.
    """
    missing = [name for name in names if shutil.which(name) is None]
    return pytest.mark.skipif(
        bool(missing) and "CI" not in os.environ,
        reason=f"needs {', '.join(missing)}: see debian-packages.txt",
    )
