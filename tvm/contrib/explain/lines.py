"""Which line of the loop program each line of LLVM's text and of assembly comes from.

Kernels are compiled once more with debug information (`TVM_DEBUG_INFO`), whose locations point into the
text of the lowered program. They are read here and left out of what is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)", re.MULTILINE)
_USE = re.compile(r", !dbg !(\d+)| !dbg !\d+(?= \{)")
_METADATA = re.compile(r", ![a-z.]+ !\d+")
_DEFINITION = re.compile(r"^define .*@\"?([\w.$]+)\"?\(")
_LOC = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)")
_TYPE = re.compile(r"^\s*\.type\s+([\w.$]+)\s*,\s*[@%]function")
_SIZE = re.compile(r"^\s*\.size\s+([\w.$]+)\s*,")
# directives that say nothing about instructions, and labels that only they name
_NOISE = re.compile(r"^\s*\.(?:cfi_|p2align|file|type|size|globl|hidden)|^\.L(?:tmp|func_)\w+:")
_STORE = re.compile(r"^(\s*)(\w+)\[.*?\] = ")


def llvm_lines(text: str, kernel: str) -> tuple[str, list[int]]:
    """A kernel's functions in LLVM's text without debug information, and the line that each line is from."""
    lines_of = {int(number): int(line) for number, line in _LOCATION.findall(text)}
    kept: list[str] = []
    origins: list[int] = []
    inside = False
    for line in text.splitlines():
        if found := _DEFINITION.match(line):
            inside = found[1].startswith(kernel)
        if not inside:
            continue
        use = _USE.search(line)
        number = int(use[1]) if use and use[1] else -1
        origins.append(lines_of.get(number, 0))
        kept.append(_METADATA.sub("", _USE.sub("", line)))
        inside = line != "}"
    return "\n".join(kept), origins


def assembly_lines(text: str, kernel: str) -> tuple[str, list[int]]:
    """A kernel's functions in assembly without directives, and the line that each line is from."""
    kept: list[str] = []
    origins: list[int] = []
    inside, current = False, 0
    for line in text.splitlines():
        if found := _TYPE.match(line):
            inside, current = found[1].startswith(kernel), 0
        if _SIZE.match(line):
            inside = False
        if not inside:
            continue
        if found := _LOC.match(line):
            current = int(found[1])
            continue
        if _NOISE.match(line):
            continue
        kept.append(line.expandtabs(8))
        origins.append(0 if line.endswith(":") else current)
    return "\n".join(kept), origins


def stage_lines(text: str, first: Mapping[str, int]) -> list[int]:
    """The line of the schedule's text that each line of a loop program is from.

    A store belongs to the stage that its buffer is named after, a loop to the stage that all stores in
    it belong to, if that is one.
    """
    lines = text.splitlines()
    found = [0] * len(lines)
    stages = [_stage_of(line, first) for line in lines]
    indents = [len(line) - len(line.lstrip()) for line in lines]
    for number, stage in enumerate(stages):
        if stage:
            found[number] = stage
        elif lines[number].lstrip().startswith(("for ", "with T.block", "if ")):
            inner = set(_inside(number, indents, stages))
            found[number] = inner.pop() if len(inner) == 1 else 0
    return found


def _stage_of(line: str, first: Mapping[str, int]) -> int:
    store = _STORE.match(line)
    if store is None:
        return 0
    name = store[2]
    while name not in first:
        shorter = re.sub(r"_\d+$", "", name)
        if shorter == name:
            return 0
        name = shorter
    return first[name]


def _inside(number: int, indents: list[int], stages: list[int]) -> Iterable[int]:
    for inner in range(number + 1, len(indents)):
        if indents[inner] <= indents[number]:
            return
        if stages[inner]:
            yield stages[inner]
