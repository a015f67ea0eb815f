"""The processors LLVM knows for a triple; code for another name would end the process."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache

from tvm.error import suggest
from tvm.target.cpu import named_processors
from tvm.target.host import host_name
from tvm.target.kind import TargetError

# LLVM only prints the list, to the error stream of its process
_PRINT = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu="help")
"""


def check_processor(name: str, triple: str) -> None:
    """Refuse a processor that LLVM does not know."""
    if not name or name == host_name() or name in named_processors():
        return
    known = known_processors(triple)
    if known and name not in known:
        raise TargetError(
            f"-mcpu requires a processor of {triple}, got {name!r}", hint=suggest(name, known)
        )


@cache  # a fact of the installed LLVM
def known_processors(triple: str) -> tuple[str, ...]:
    """LLVM's names of a triple's processors, empty if it does not tell."""
    command = [sys.executable, "-c", _PRINT, triple]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return tuple(re.findall(r"^  (\S+)\s+- Select the \S+ processor", found.stderr, re.MULTILINE))
