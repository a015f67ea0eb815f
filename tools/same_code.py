"""Whether a change leaves compiled code as it was: kernels and plans of a commit and of this tree.

usage: python tools/same_code.py BASE [MODEL.onnx ...] [--tests PATH ...]

The package of the commit BASE and today's build the same programs, in processes of their own: the given
models, and what the given tests compile, each tree its own tests (--tests alone takes those of operators,
te, topi, quantised models and open shapes). Graph JSON, which holds the memory plan, bytecode, lowered text
and LLVM's optimised text are compared kernel by kernel, and each difference is printed. Both packages run
on this tree's native code.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
_NATIVE = ("tvm/*.so", "tvm/_ffi/*.so")
# what is compiled where no tests are named
_TESTS = (
    "tests/relay/op/test_all_ops.py", "tests/relay/op/test_open_shapes.py", "tests/relay/qnn",
    "tests/relay/quantize", "tests/relay/vm", "tests/relay/test_random_networks.py",
    "tests/relay/frontend/test_pytorch_quantized.py", "tests/relay/frontend/test_onnx_dynamic_shapes.py",
    "tests/te", "tests/topi",
)  # fmt: skip
# an editable installation would come before PYTHONPATH
_RUN = """
import runpy, sys
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_SHOWN = 12  # lines of one difference
# what LLVM and the printer number by all that a process compiled, and metadata by all of a module
_NUMBERS = re.compile(r"(?<=_closure\.)\d+\b|(?<=[ ,(]!)\d+\b|(?<= #)\d+\b")
Texts = dict[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", help="a commit, or with --dump the folder to write to")
    parser.add_argument("models", nargs="*", type=Path, help="ONNX files, QDQ and open shapes too")
    parser.add_argument("--tests", nargs="*", help="tests whose programs are compared")
    parser.add_argument("--opt-level", type=int, default=3, help="of the models; 3 by default")
    parser.add_argument("--dump", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    models = [model.resolve() for model in arguments.models]
    tests = [] if arguments.tests is None else arguments.tests or list(_TESTS)
    if not models and not tests:
        parser.error("a model or --tests is required")
    if arguments.dump:
        dump(Path(arguments.base), models, tests, arguments.opt_level)
        return
    count = compare(arguments.base, models, tests, arguments.opt_level)
    raise SystemExit(count > 0)


def compare(base: str, models: list[Path], tests: list[str], opt_level: int) -> int:
    """The number of differences, each printed."""
    with tempfile.TemporaryDirectory() as name:
        folder, tree = Path(name), Path(name) / "base"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(tree), base], check=True)
        try:
            for pattern in _NATIVE:
                for library in ROOT.glob(pattern):
                    shutil.copy(library, tree / library.relative_to(ROOT))
            running = [
                start_build(package, folder / side, models, tests, opt_level)
                for package, side in ((tree, "before"), (ROOT, "after"))
            ]
            if any([process.wait() for process in running]):
                raise SystemExit("the programs were not built: see above")
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
        return differences(folder)


def start_build(
    package: Path, folder: Path, models: list[Path], tests: list[str], opt_level: int
) -> subprocess.Popen[bytes]:
    """Begin to write what the package makes of the programs, from nothing that was kept before."""
    folder.mkdir()
    options = ["--dump", "--opt-level", str(opt_level), *(["--tests", *tests] if tests else [])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")]),
        "TVM_CACHE_DIR": str(folder / "cache"),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
    }
    command = [sys.executable, "-c", _RUN, __file__, str(folder), *map(str, models), *options]
    return subprocess.Popen(command, env=environment, cwd=package)


def dump(folder: Path, models: list[Path], tests: list[str], opt_level: int) -> None:
    """Write the texts of each program, in a file of its own."""
    for path in models:
        with recording() as texts:
            texts |= build_model(path, opt_level)
        write(folder, path.name, texts)
    if tests:
        options = ["-q", "--no-header", "--tb=no", "-n0", "-p", "no:cacheprovider"]
        found = [path for path in tests if Path(path).exists()]
        pytest.main([*options, "--hypothesis-seed=0", *found], plugins=[Recorder(folder)])


def build_model(path: Path, opt_level: int) -> Texts:
    """Compile a model for the graph executor, or for the virtual machine where dimensions are open."""
    import onnx

    import tvm
    from tvm import relay

    mod, params = relay.frontend.from_onnx(onnx.load(path))
    types = [param.checked_type for param in relay.transform.InferType()(mod)["main"].params]
    is_open = any(not isinstance(d, tvm.tir.IntImm) for t in types for d in t.shape)
    with tvm.transform.PassContext(opt_level=opt_level):
        if is_open:
            return {"bytecode": relay.vm.compile(mod, "llvm", params=params).bytecode}
        return {"graph": relay.build(mod, "llvm", params=params).get_graph_json()}


@contextmanager
def recording() -> Iterator[Texts]:
    """The texts of all that is compiled for LLVM in this scope."""
    import tvm
    from tvm.codegen import GENERATORS

    texts: Texts = {}
    generate: Callable[..., Any] = GENERATORS["llvm"]

    def recorded(mod: Any, target: Any, versions: Any = (), lower: Any = None) -> Any:
        # a commit from before functions came unlowered knows no further arguments
        module = generate(mod, target, *([versions, lower] if versions or lower else []))
        for var, func in (lower(mod, target) if lower else mod).functions.items():
            keep(texts, f"{var.name_hint}.tir", tvm.IRModule({var: func}).script())
        for name, text in functions_of(module.get_source("ll")).items():
            keep(texts, f"{name}.ll", text)
        return module

    GENERATORS["llvm"] = recorded
    try:
        yield texts
    finally:
        GENERATORS["llvm"] = generate


def keep(texts: Texts, name: str, text: str) -> None:
    """Add a text under its name, or under the name and a number if there is one already."""
    number, free = 0, name
    while free in texts:
        number += 1
        free = f"{name}#{number}"
    texts[free] = text


def functions_of(source: str) -> Texts:
    """LLVM text by function; declarations and metadata are left out."""
    found = re.finditer(r"^define [^@]*@\"?([^\"(]+)\"?\(.*?^}", source, re.MULTILINE | re.DOTALL)
    return {match[1]: match[0] for match in found}


class Recorder:
    """A pytest plugin that writes what each test compiles."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        with recording() as texts:
            yield
        write(self.folder, item.nodeid, texts)


def write(folder: Path, program: str, texts: Texts) -> None:
    """Write the texts of a program; the order of the files is that of the programs."""
    number = len(list(folder.glob("*.json")))
    text = json.dumps({"program": program, "texts": texts})
    (folder / f"{number:06}.json").write_text(text)


def differences(folder: Path) -> int:
    """The number of texts that differ, each shown."""
    sides = [read(folder / side) for side in ("before", "after")]
    programs = [program for program in sides[0] if program in sides[1]]
    for side, other, word in ((0, 1, "before"), (1, 0, "after")):
        if alone := [program for program in sides[side] if program not in sides[other]]:
            print(f"only {word}: {len(alone)} programs, {', '.join(alone[:3])}")
    compared = count = 0
    for program in programs:
        before, after = [side[program] for side in sides]
        names = sorted({*before, *after})
        compared += len(names)
        for name in names:
            count += differs(f"{program}: {name}", before.get(name, ""), after.get(name, ""))
    print(f"{len(programs)} programs, {compared} texts, {count} differ")
    return count


def read(folder: Path) -> dict[str, Texts]:
    """The texts of each program."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return {entry["program"]: entry["texts"] for entry in found}


def differs(name: str, before: str, after: str) -> bool:
    """Whether two texts differ, which is shown."""
    texts = [_NUMBERS.sub("", text).splitlines() for text in (before, after)]
    if texts[0] == texts[1]:
        return False
    shown = list(difflib.unified_diff(*texts, "before", "after", lineterm="", n=1))
    print("\n  ".join([name, *[line[:160] for line in shown[:_SHOWN]]]), flush=True)
    return True


if __name__ == "__main__":
    main()
