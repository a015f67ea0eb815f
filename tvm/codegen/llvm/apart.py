"""Compilation in a process of its own, for options that LLVM has once for a whole process.

llvm -cl-opt=-unroll-threshold:uint=100    ->    another Python, LLVM's option set, code by pipe
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from dataclasses import dataclass

from tvm.error import LoweringError, suggest
from tvm.target import Target, cpu_info
from tvm.target.kind import TargetError
from tvm.target.llvm_tables import known_options

from .library import native_llvm
from .machine import Machine

_CHILD = "from tvm.codegen.llvm.apart import answer; answer()"
_TYPES = ("bool", "int", "uint", "string")


@dataclass(frozen=True)
class Results:
    """What the other process gives back."""

    optimized: str
    object_code: bytes
    assembly: str


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


def compile_apart(
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
            f"LLVM refuses {', '.join(options)}: {reason.splitlines()[0] if reason else child.returncode}"
        )
    found = pickle.loads(child.stdout)
    assert isinstance(found, Results)
    return found


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
