"""The C++ program of docs/vm.md runs what its Python programs wrote."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.test_how_to import DOCS, programs
from tests.system_tools import needs_tool
from tvm._ffi import libinfo


@needs_tool("c++")
def test_the_program_in_cpp_runs_for_several_shapes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", programs("vm.md")], cwd=tmp_path, check=True)
    (program,) = re.findall(r"^```cpp\n(.*?)^```", (DOCS / "vm.md").read_text(), re.DOTALL | re.M)
    (tmp_path / "run.cc").write_text(program)
    library = Path(libinfo.find_lib_path()[0]).parent
    includes = [f"-I{path}" for path in libinfo.find_include_path()]
    warnings = ["-Wall", "-Wextra", "-Werror"]
    built = subprocess.run(
        ["c++", "-std=c++17", *warnings, *includes, "run.cc", "-o", "run", f"-L{library}",
         f"-Wl,-rpath,{library}", "-ltvm_runtime"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    done = subprocess.run(["./run"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "1 x 3, last 38\n3 x 3, last 38\n"
