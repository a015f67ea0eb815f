"""Programs of the system (cross compilers, emulators, sanitizers) that some tests run."""

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tvm._ffi import libinfo
from tvm.runtime.device import cuda, opencl

NO_GPU = "needs a CUDA device"
NO_RUST = "needs rustc"
PACKAGES = "debian-packages.txt"  # names the packages that bring them


def needs_tool(*names: str) -> pytest.MarkDecorator:
    """Mark a test that runs programs of the system; only where CI runs must they be there."""
    return _needs([name for name in names if shutil.which(name) is None])


def needs_onednn() -> pytest.MarkDecorator:
    """Mark a test that calls oneDNN; only where CI runs must it be there."""
    library = Path(libinfo.find_lib_path()[0]).parent / "libtvm_dnnl.so"
    return _needs([] if library.exists() else ["a runtime built with oneDNN"])


def needs_opencl() -> pytest.MarkDecorator:
    """Mark a test that runs kernels on an OpenCL device; only where CI runs must there be one."""
    return _needs([] if opencl(0).exist else ["an OpenCL device"])


def needs_cuda() -> pytest.MarkDecorator:
    """Mark a test that runs kernels on a CUDA device, which no package brings."""
    return pytest.mark.skipif(not cuda(0).exist, reason=NO_GPU)


def needs_rust() -> pytest.MarkDecorator:
    """Mark a test that compiles Rust of a later version than packages bring."""
    return pytest.mark.skipif(shutil.which("rustc") is None, reason=NO_RUST)


def needs(what: str, is_there: bool) -> pytest.MarkDecorator:
    """Mark a test that needs something; only where CI runs must it be there."""
    return _needs([] if is_there else [what])


def _needs(missing: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        bool(missing) and "CI" not in os.environ,
        reason=f"needs {' and '.join(missing)}, see {PACKAGES}",
    )


def what_was_not_covered(reasons: Iterable[str]) -> str:
    """One line on what tests were skipped for, from their reasons; empty if nothing was missing."""
    given = list(reasons)
    found = [re.search(rf"needs (.+), see {re.escape(PACKAGES)}", reason) for reason in given]
    counts = Counter([match[1] for match in found if match])
    parts = [f"{name} ({_tests(count)})" for name, count in counts.most_common()]
    lines = [f"not covered here: {', '.join(parts)}; {PACKAGES} brings them"] if parts else []
    for missing, what in ((NO_GPU, "a GPU"), (NO_RUST, "rustc")):
        if count := len([reason for reason in given if missing in reason]):
            lines.append(f"not run for want of {what}: {_tests(count)}")
    return "\n".join(lines)


def _tests(count: int) -> str:
    return f"{count} test{'s' if count > 1 else ''}"
