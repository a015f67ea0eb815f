"""What LLVM has tables of: its back ends, their processors and the features of these."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from tvm.error import InternalError

# LLVM only prints the tables, to the error stream of its process
_PRINT = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu="help")
"""
_PRINT_OPTIONS = """
import llvmlite.binding as llvm
llvm.set_option("llvm", "--help-hidden")
"""
_ARCHITECTURES = (
    "aarch64 aarch64_32 aarch64_be amdgcn arm64 arm armeb avr bpf bpfeb bpfel hexagon lanai loongarch32 "
    "loongarch64 m68k mips mips64 mips64el mipsel msp430 nvptx nvptx64 ppc32 ppc32le ppc64 ppc64le "
    "r600 riscv32 riscv64 sparc sparcel sparcv9 spirv32 spirv64 systemz thumb thumbeb ve wasm32 wasm64 "
    "x86 x86-64 xcore"
)
# names of back ends that are not the first part of their triples
_TRIPLES = {"x86": "i686", "ppc32": "powerpc", "ppc32le": "powerpcle", "ppc64": "powerpc64",
            "ppc64le": "powerpc64le", "systemz": "s390x", "x86-64": "x86_64"}  # fmt: skip


def known_processors(triple: str) -> tuple[str, ...]:
    """LLVM's names of a triple's processors, empty if it does not tell."""
    return tuple(
        re.findall(r"^  (\S+)\s+- Select the \S+ processor", _tables(triple), re.MULTILINE)
    )


def known_features(triple: str) -> dict[str, str]:
    """LLVM's names of the features of a triple's processors, with what they are."""
    _, _, features = _tables(triple).partition("Available features")
    return dict(re.findall(r"^  (\S+)\s+- (.*)$", features, re.MULTILINE))


@cache
def processor_features(triple: str, name: str, mattr: str = "") -> frozenset[str]:
    """LLVM's names of the features of a processor, with what ``+sve,-neon`` and the like change."""
    known = known_features(triple)
    processors = known_processors(triple)
    # what selects how code is generated is no feature of a processor
    wanted = [
        feature
        for feature, meaning in known.items()
        if feature not in processors and not re.search(r"\bmode\b|rocessors?\.", meaning)
    ]
    return frozenset(_probe(triple, name, mattr, wanted))


def _probe(triple: str, name: str, mattr: str, wanted: list[str]) -> list[str]:
    # as a text: beside a file, its folder would be the first to import from
    command = [sys.executable, "-c", Path(__file__).with_name("feature_probe.py").read_text()]
    given = json.dumps([triple, name, mattr, wanted])
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InternalError(f"LLVM does not tell the features of {name}: {done.stderr.strip()}")
    return list(json.loads(done.stdout))


@cache  # a fact of the installed LLVM
def known_options() -> frozenset[str]:
    """The names of LLVM's options for a whole process."""
    command = [sys.executable, "-c", _PRINT_OPTIONS]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return frozenset(re.findall(r"^  --?([\w-]+)", found, re.MULTILINE))


@cache
def _tables(triple: str) -> str:
    command = [sys.executable, "-c", _PRINT, triple]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@cache
def known_targets() -> tuple[str, ...]:
    """The names of LLVM's back ends."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    found = []
    for name in _ARCHITECTURES.split():
        try:
            llvm.Target.from_triple(f"{_TRIPLES.get(name, name)}-unknown-unknown")
        except RuntimeError:
            continue
        found.append(name)
    return tuple(found)
