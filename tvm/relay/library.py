"""The files of `std/`: definitions that modules import by name."""

from __future__ import annotations

from pathlib import Path

from tvm.error import TVMError, or_similar
from tvm.ir import extension
from tvm.ir.module import IRModule
from tvm.relay.parser import parse

FOLDER = Path(__file__).parent / "std"


def library(name: str) -> IRModule:
    """The typed definitions of a file."""
    known = sorted([path.name for path in FOLDER.glob("*.rly")])
    if name not in known:
        raise TVMError(
            f"the library has no file {name!r}, there are {known}{or_similar(name, known)}"
        )
    return parse((FOLDER / name).read_text(), name)


def add_library(mod: IRModule, name: str) -> None:
    """Add a file's definitions to a module; nothing if it has them already."""
    add_definitions(mod, library(name), name)


def add_definitions(mod: IRModule, found: IRModule, name: str) -> None:
    """Add the types and functions of another module, unless they were added before."""
    known = {header.name_hint for header in mod.type_definitions}
    there = [gvar.name_hint in mod for gvar in found.functions]
    if all(there or [header.name_hint in known for header in found.type_definitions]):
        return
    for header, data in found.type_definitions.items():
        if header.name_hint in known and header not in mod.type_definitions:
            raise TVMError(
                f"{name} cannot be added: the module has a type {header.name_hint} of its own"
            )
        mod[header] = data
    mod.update(found.functions)


extension.add_library.provide(add_library)
