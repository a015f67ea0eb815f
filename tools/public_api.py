"""The public names of the package, and which of their docstrings lack a section.

usage: python tools/public_api.py [--write]

`docstrings.txt` beside this file lists what is missing; it may only get shorter. Prints what the
docstrings lack that the list does not allow, and what it allows without need; ``--write`` writes it
anew, and refuses to make it longer.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator

LIST = Path(__file__).with_name("docstrings.txt")

# A name that several packages have belongs to the first of them.
PACKAGES = (
    "tvm", "tvm.error", "tvm.ir", "tvm.transform", "tvm.instrument", "tvm.script",
    "tvm.runtime", "tvm.runtime.vm", "tvm.runtime.executor", "tvm.contrib.graph_executor",
    "tvm.contrib.debugger.debug_executor", "tvm.rpc",
    "tvm.target", "tvm.arith", "tvm.tir", "tvm.tir.transform", "tvm.tir.analysis", "tvm.tir.schedule",
    "tvm.tir.stmt_functor", "tvm.te",
    "tvm.topi", "tvm.topi.nn", "tvm.topi.image", "tvm.topi.vision", "tvm.topi.sparse", "tvm.topi.utils",
    "tvm.topi.generic", "tvm.topi.x86",
    "tvm.relay", "tvm.relay.nn", "tvm.relay.image", "tvm.relay.vision", "tvm.relay.random", "tvm.relay.qnn.op",
    "tvm.relay.transform", "tvm.relay.analysis", "tvm.relay.frontend", "tvm.relay.vm",
    "tvm.relay.dataflow_pattern", "tvm.relay.quantize",
    "tvm.relax", "tvm.relax.op", "tvm.relax.op.nn", "tvm.relax.op.image", "tvm.relax.transform",
    "tvm.relax.analysis", "tvm.relax.frontend", "tvm.relax.frontend.nn", "tvm.relax.frontend.torch",
    "tvm.relax.frontend.onnx", "tvm.relax.dpl", "tvm.relax.training",
    "tvm.autotvm", "tvm.auto_scheduler",
    "tvm.driver", "tvm.driver.tvmc", "tvm.verify", "tvm.torch_compile", "tvm.micro", "tvm.testing",
    "tvm.contrib.cc", "tvm.contrib.utils", "tvm.contrib.explain", "tvm.contrib.relay_viz", "tvm.contrib.dlpack",
    "tvm.contrib.nvcc", "tvm.contrib.popen_pool", "tvm.contrib.pipeline_executor",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the list anew")
    found, allowed = missing_sections(), read_list()
    more, fewer = sorted(found - allowed), sorted(allowed - found)
    if parser.parse_args().write and (not more or not allowed):
        LIST.write_text(as_list(found), encoding="utf8")
        return 0
    for name, section in more:
        print(f"{name}: the docstring lacks {section}")
    for name, section in fewer:
        print(f"{name}: has {section} now; python tools/public_api.py --write")
    return 1 if more or fewer else 0


@cache
def owned_names() -> dict[str, dict[str, Any]]:
    """For each of PACKAGES, its public classes and functions by their names in it."""
    owned: dict[str, dict[str, Any]] = {}
    seen: set[int] = set()
    for package in PACKAGES:
        new = {n: o for n, o in public_names(package).items() if id(o) not in seen}
        seen.update(map(id, new.values()))
        owned[package] = new
    return owned


def public_names(package: str) -> dict[str, Any]:
    """The classes and functions that a package or a module of the package gives to its users."""
    module = find(package)
    names = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    objects = {name: getattr(module, name) for name in sorted(names)}
    return {name: o for name, o in objects.items() if is_ours(o) and is_of(o, module)}


def find(package: str) -> ModuleType:
    """A module by its dotted name, those that are attributes of packages too."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError:
        parent, _, name = package.rpartition(".")
        module = getattr(importlib.import_module(parent), name)
        assert isinstance(module, ModuleType)
        return module


def is_ours(value: Any) -> bool:
    """Whether a value is a class or function of this package."""
    module = getattr(value, "__module__", None) or ""
    return (inspect.isclass(value) or inspect.isroutine(value)) and module.startswith("tvm")


def is_of(value: Any, module: ModuleType) -> bool:
    """Whether a module gives a value to its users: a file only what it defines or names in ``__all__``."""
    return (
        hasattr(module, "__path__")
        or hasattr(module, "__all__")
        or value.__module__ == module.__name__
    )


def missing_sections() -> set[tuple[str, str]]:
    """(name, section) for all that the public docstrings lack."""
    return {
        (name, section)
        for package, names in owned_names().items()
        for short, value in names.items()
        for name, member in [(f"{package}.{short}", value), *members(f"{package}.{short}", value)]
        for section in lacking(member)
    }


def members(name: str, value: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods that a class defines."""
    if inspect.isclass(value):
        for short, member in vars(value).items():
            function = getattr(member, "__func__", member)
            is_public = short[0] != "_" and not short.startswith("visit_")
            if is_public and inspect.isfunction(function) and is_written(function):
                yield f"{name}.{short}", function


def is_written(function: Any) -> bool:
    """Whether a function stands in a file; nodes make theirs when they are first used."""
    return not function.__code__.co_filename.startswith("<")


def lacking(value: Any) -> Iterator[str]:
    """The sections that the docstring of a function or class should have and does not."""
    if not inspect.getdoc(value):
        yield "docstring"
        return
    if inspect.isclass(value) and "__init__" not in vars(value):
        return
    doc = Validator(get_doc_object(value))
    # the stars of ``*args`` may be left out
    wanted, told = [{name.strip("*\\") for name in names}
                    for names in (doc.signature_parameters, doc.doc_all_parameters)]  # fmt: skip
    if wanted != told:
        yield "Parameters"
    returned = inspect.signature(value).return_annotation
    if not inspect.isclass(value) and returned not in (None, "None", "NoReturn"):
        if not doc.returns and not doc.yields:
            yield "Returns"


def read_list() -> set[tuple[str, str]]:
    """The (name, section) pairs of the list."""
    allowed: set[tuple[str, str]] = set()
    package = section = ""
    for line in LIST.read_text(encoding="utf8").splitlines() if LIST.exists() else ():
        if line.startswith("["):
            package, section = line.strip("[]").split()
        else:
            allowed |= {(f"{package}.{name}", section) for name in line.split()}
    return allowed


def as_list(found: set[tuple[str, str]]) -> str:
    """The text of the list: names by package and section."""
    blocks = []
    for package in PACKAGES:
        for section in ("docstring", "Parameters", "Returns"):
            names = sorted(name for name, s in found if s == section and owner(name) == package)
            short = " ".join(name.removeprefix(package + ".") for name in names)
            if names:
                blocks.append(f"[{package} {section}]\n{textwrap.fill(short, 100)}\n")
    return "\n".join(blocks)


def owner(name: str) -> str:
    """The package of a name of `missing_sections`."""
    return max((p for p in PACKAGES if name.startswith(p + ".")), key=len)


if __name__ == "__main__":
    sys.exit(main())
