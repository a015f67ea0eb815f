"""Which compiler links code of another machine, for errors that name it."""

from __future__ import annotations

import os
import platform
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class _Machine:
    """A machine, a compiler for it, and how names of such compilers begin."""

    name: str
    compiler: str
    prefixes: tuple[str, ...]

    @staticmethod
    def of_linux(name: str, triple: str, *prefixes: str) -> _Machine:
        """Compilers have the names that Debian gives them."""
        program = f"{triple.replace('x86-64', 'x86_64')}-gcc"
        return _Machine(name, f"{program} (package gcc-{triple})", prefixes)

    def is_made_by(self, compiler: str) -> bool:
        """Whether a compiler makes code for the machine, as far as its name tells.

        One whose name tells nothing makes code for the machine that it runs on.
        """
        program = os.path.basename(compiler).lower()
        if program.startswith(_PREFIXES):
            return program.startswith(self.prefixes)
        return platform.machine().lower().startswith(self.prefixes)


_ELF = {  # by its number of the machine
    3: _Machine.of_linux("x86", "i686-linux-gnu", "i386", "i486", "i586", "i686"),
    21: _Machine.of_linux("PowerPC 64", "powerpc64le-linux-gnu", "powerpc64", "ppc64"),
    22: _Machine.of_linux("s390x", "s390x-linux-gnu", "s390x"),
    40: _Machine.of_linux("Arm", "arm-linux-gnueabihf", "arm-", "armv"),
    62: _Machine.of_linux("x86-64", "x86-64-linux-gnu", "x86_64", "x86-64", "amd64"),
    183: _Machine.of_linux("AArch64", "aarch64-linux-gnu", "aarch64", "arm64"),
    243: _Machine.of_linux("RISC-V", "riscv64-linux-gnu", "riscv"),
    258: _Machine.of_linux("LoongArch", "loongarch64-linux-gnu", "loongarch"),
}
_OTHERS = {  # by their first bytes
    b"\xcf\xfa\xed\xfe": _Machine("macOS", "a clang for it", ("o64-", "oa64-")),
    b"\0asm": _Machine("WebAssembly", "emcc (package emscripten)", ("emcc", "em++")),
}
_PREFIXES = tuple([p for machine in (*_ELF.values(), *_OTHERS.values()) for p in machine.prefixes])
_ELSEWHERE = (
    'or write the objects, to be linked where the model runs: export_library("model.tar"), '
    "tvmc compile -f tar"
)


def linking_hint(compiler: str, objects: Sequence[str]) -> str:
    """What to do about a compiler that is missing or made for another machine than the objects.

    Empty if they fit each other, or nothing is known of the objects.
    """
    found = [machine for path in objects if (machine := _machine_of(path)) is not None]
    if not found or found[0].is_made_by(compiler):
        return ""
    machine = found[0]
    return (
        f"the objects are code for {machine.name}, which {compiler} does not link: install {machine.compiler} and "
        "pass it as export_library(..., cc=...) or tvmc compile --cross-compiler, "
        f"{_ELSEWHERE}"
    )


def missing_hint(compiler: str) -> str:
    """Which package has a cross compiler; empty if its name does not tell."""
    name = os.path.basename(compiler)
    found = re.fullmatch(r"([\w.]+-linux-gnu\w*)-(gcc|g\+\+)", name)
    if found is None:
        return ""
    triple, program = found.groups()
    return f"install {name} (package {program}-{triple.replace('_', '-')}), {_ELSEWHERE}"


def _machine_of(path: str) -> _Machine | None:
    """The machine that an object is for; None for other files."""
    try:
        with Path(path).open("rb") as file:
            header = file.read(20)
    except OSError:
        return None
    if len(header) < 20 or header[:4] != b"\x7fELF":
        return _OTHERS.get(header[:4])
    order = ">" if header[5] == 2 else "<"
    return _ELF.get(struct.unpack(f"{order}H", header[18:])[0])
