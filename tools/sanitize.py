"""Run the native tests under AddressSanitizer with UBSan, and under ThreadSanitizer.

python tools/sanitize.py            # both, or the names given: address,undefined and thread
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SANITIZERS = ("address,undefined", "thread")


def tool(name: str) -> str:
    """The program, from this Python's environment if it is there."""
    return shutil.which(name, path=sysconfig.get_path("scripts")) or name


def build_and_run(sanitizer: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Build ``runtime_tests`` with a sanitizer and run it: the first step that fails, or the run."""
    configure = [
        tool("cmake"), "-S", str(ROOT / "native"), "-B", str(folder), "-G", "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g1", "-DTVM_PYTHON=OFF", "-DTVM_TESTS=ON",
        f"-DTVM_SANITIZE={sanitizer}",
    ]  # fmt: skip
    build = [tool("cmake"), "--build", str(folder), "--target", "runtime_tests"]
    for command in (configure, build, [str(folder / "runtime_tests")]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            break
    return done


def main() -> int:
    """Run those that the command line names; the exit status."""
    failed = 0
    for sanitizer in sys.argv[1:] or SANITIZERS:
        done = build_and_run(sanitizer, ROOT / "build" / "sanitize" / sanitizer.split(",")[0])
        print(f"{sanitizer}: {done.stdout}{done.stderr}", flush=True)
        failed |= done.returncode
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
