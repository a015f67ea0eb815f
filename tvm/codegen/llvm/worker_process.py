"""Compilation in a process of its own.

For options that LLVM has once for a whole process, and for files of others, which may be damaged: LLVM ends the
process on some of them.

llvm -cl-opt=-unroll-threshold:uint=100    ->    another Python, LLVM's option set, code by pipe
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from tvm.error import LoweringError, suggest
from tvm.target import Target, cpu_info
from tvm.target.kind import TargetError
from tvm.target.llvm_tables import known_options
from tvm.target.triple import runs_here

from .library import native_llvm
from .machine import Machine

_CHILD = "from tvm.codegen.llvm.worker_process import answer; answer()"
_FILE_CHILD = "from tvm.codegen.llvm.worker_process import answer_file; answer_file()"
_TYPES = ("bool", "int", "uint", "string")


@dataclass(frozen=True)
class Results:
    """What the other process gives back."""

    optimized: str
    object_code: bytes
    assembly: str


@dataclass(frozen=True)
class FileResults:
    """What the other process makes of a file of LLVM text or bitcode."""

    text: str
    triple: str
    functions: list[str]
    variables: list[str]
    code: Results | None  # None if it is for another machine


def command_line_option(text: str) -> str:
    """LLVM's form of ``-name:type=value`` or, for a switch, ``-name``."""
    found = re.fullmatch(r"--?([\w-]+)(?::(\w+))?(?:=(.*))?", text)
    if found is None or (found[2] or "bool") not in _TYPES or (found[3] is None and found[2]):
        raise TargetError(
            f"-cl-opt requires options like -name:type=value with a type of {', '.join(_TYPES)}, "
            f"got {text!r}",
            hint="-cl-opt=-unroll-threshold:uint=100",
        )
    if (known := known_options()) and found[1] not in known:
        raise TargetError(
            f"-cl-opt requires an option of LLVM, got {found[1]!r}", hint=suggest(found[1], known)
        )
    return f"-{found[1]}" + (f"={found[3]}" if found[3] is not None else "")


def compile_in_worker(
    text: str, imports: tuple[str, ...], target: str, options: tuple[str, ...]
) -> Results:
    """Optimise and assemble a module in another process."""
    request = pickle.dumps((text, imports, target, options))
    child = subprocess.run(
        [sys.executable, "-c", _CHILD], input=request, capture_output=True, check=False
    )
    if child.returncode != 0:
        reason = child.stderr.decode(errors="replace").strip()
        raise LoweringError(
            f"LLVM rejects {', '.join(options)}: {reason.splitlines()[0] if reason else child.returncode}"
        )
    found = pickle.loads(child.stdout)
    assert isinstance(found, Results)
    return found


def compile_file_in_worker(
    data: bytes, is_bitcode: bool, target: str, opt_level: int
) -> FileResults:
    """Parse, verify, optimise and assemble LLVM text or bitcode in another process.

    Raises
    ------
    ValueError
        With LLVM's reason, if it rejects the data or ends the process.
    """
    request = pickle.dumps((data, is_bitcode, target, opt_level))
    child = subprocess.run(
        [sys.executable, "-c", _FILE_CHILD], input=request, capture_output=True, check=False
    )
    if child.returncode != 0:
        lines = child.stderr.decode(errors="replace").strip().splitlines()
        raise ValueError(lines[0] if lines else f"it ended with status {child.returncode}")
    found = pickle.loads(child.stdout)
    if isinstance(found, str):
        raise ValueError(found)
    assert isinstance(found, FileResults)
    return found


def answer_file() -> None:
    """The other process: read LLVM text or bitcode, write what it becomes, or LLVM's reason against it."""
    data, is_bitcode, target_text, opt_level = pickle.load(sys.stdin.buffer)
    try:
        found: FileResults | str = _compile_file(data, is_bitcode, target_text, opt_level)
    except (RuntimeError, UnicodeDecodeError, LoweringError) as error:
        found = str(error).strip().splitlines()[0]
    sys.stdout.buffer.write(pickle.dumps(found))


def _compile_file(data: bytes, is_bitcode: bool, target_text: str, opt_level: int) -> FileResults:
    llvm = native_llvm()
    module = llvm.parse_bitcode(data) if is_bitcode else llvm.parse_assembly(data.decode())
    module.verify()
    text = str(module)
    functions, variables = _public_names(module.functions), _public_names(module.global_variables)
    if module.triple and not runs_here(module.triple):
        return FileResults(text, module.triple, functions, variables, None)
    target = Target(target_text)
    machine = Machine(target, cpu_info(target), opt_level)
    optimized = machine.optimized(text)
    code = Results(str(optimized), machine.object_code(optimized), machine.assembly(optimized))
    return FileResults(text, module.triple, functions, variables, code)


def _public_names(values: Any) -> list[str]:
    return [
        value.name
        for value in values
        if not value.is_declaration and value.linkage.name not in ("internal", "private")
    ]


def answer() -> None:
    """The other process: read a request, set the options, write the results."""
    text, imports, target_text, options = pickle.load(sys.stdin.buffer)
    llvm = native_llvm()
    for option in options:
        llvm.set_option("llvm", option)
    target = Target(target_text)
    machine = Machine(target, cpu_info(target), int(target.attrs.get("opt-level", 3)))
    module = machine.optimized(text, imports)
    results = Results(str(module), machine.object_code(module), machine.assembly(module))
    sys.stdout.buffer.write(pickle.dumps(results))
