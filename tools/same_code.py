"""Whether a change leaves compiled models as they were: kernels and plans of a commit and of this tree.

usage: python tools/same_code.py BASE MODEL.onnx [MODEL.onnx ...]

Each model is built by the package of the commit BASE and by today's, in processes of their own. Graph
JSON, which holds the memory plan, lowered text and LLVM's optimised text are compared kernel by kernel,
and each difference is printed. Both packages run on this tree's native code.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_NATIVE = ("tvm/*.so", "tvm/_ffi/*.so")
# an editable installation would come before PYTHONPATH
_RUN = """
import runpy, sys
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_SHOWN = 12  # lines of one difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", help="a commit, or with --dump the folder to write to")
    parser.add_argument("models", nargs="+", type=Path, help="ONNX files")
    parser.add_argument("--opt-level", type=int, default=3)
    parser.add_argument("--dump", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.dump:
        for model in arguments.models:
            dump(model, Path(arguments.base) / model.stem, arguments.opt_level)
        return
    count = compare(arguments.base, arguments.models, arguments.opt_level)
    print("no difference" if count == 0 else f"{count} differences")
    raise SystemExit(count > 0)


def compare(base: str, models: list[Path], opt_level: int) -> int:
    """The number of differences, each printed."""
    with tempfile.TemporaryDirectory() as name:
        folder, tree = Path(name), Path(name) / "base"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(tree), base], check=True)
        try:
            for pattern in _NATIVE:
                for library in ROOT.glob(pattern):
                    shutil.copy(library, tree / library.relative_to(ROOT))
            for package, side in ((tree, "before"), (ROOT, "after")):
                build_all(package, folder / side, models, opt_level)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
        return sum([differences(folder, model.stem) for model in models])


def build_all(package: Path, folder: Path, models: list[Path], opt_level: int) -> None:
    """Write what the package makes of the models, from nothing that was kept before."""
    files = [str(model.resolve()) for model in models]
    options = ["--dump", "--opt-level", str(opt_level)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")]),
        "TVM_CACHE_DIR": str(folder / "cache"),
    }
    command = [sys.executable, "-c", _RUN, __file__, str(folder), *files, *options]
    subprocess.run(command, check=True, env=environment, cwd=package)


def dump(path: Path, folder: Path, opt_level: int) -> None:
    """Write the graph and each kernel's texts."""
    import onnx

    import tvm
    from tvm import relay

    mod, params = relay.frontend.from_onnx(onnx.load(path))
    with tvm.transform.PassContext(opt_level=opt_level):
        lib = relay.build(mod, "llvm", params=params)
    folder.mkdir(parents=True)
    (folder / "graph.json").write_text(lib.get_graph_json())
    for name, info in lib.function_metadata.items():
        for func in info.tir_primfuncs.values():
            kernel = tvm.IRModule({name: func})
            (folder / f"{name}.tir").write_text(kernel.script())
            (folder / f"{name}.ll").write_text(tvm.build(kernel, "llvm").get_source("ll"))


def differences(folder: Path, model: str) -> int:
    """The number of texts that differ, each shown."""
    before, after = [folder / side / model for side in ("before", "after")]
    names = sorted({path.name for side in (before, after) for path in side.iterdir()})
    count = 0
    for name in names:
        texts = [lines_of(side / name) for side in (before, after)]
        if texts[0] == texts[1]:
            continue
        count += 1
        shown = list(difflib.unified_diff(*texts, "before", "after", lineterm="", n=1))
        print("\n  ".join([f"{model}: {name}", *[line[:160] for line in shown[:_SHOWN]]]))
    print(f"{model}: {len(names)} texts, {count} differ", flush=True)
    return count


def lines_of(path: Path) -> list[str]:
    """The text without what LLVM numbers by all that a process compiled; nothing for no file."""
    if not path.exists():
        return []
    return re.sub(r"(?<=_closure)\.\d+\b", "", path.read_text()).splitlines()


if __name__ == "__main__":
    main()
