"""What each pass changed and how long it took.

While passes run only the functions before and after them are kept; a function that a pass returns unchanged
is the same object. Texts and differences are made afterwards, so that they are in nobody's time.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm.ir.instrument import PassInstrument
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassInfo
from tvm.tir.function import PrimFunc

from .record import Change, PassRun

_MOST_LINES = 400  # of a difference
_LOOPS = "tir."
_SPAN = re.compile(r"\s*span=[^*]*?(?= ?\*/)")
_CONSTANT = re.compile(r"meta\[relay\.Constant\]\[\d+\](?: /\* ty=(.*?) \*/)?")


@dataclass
class _Run:
    name: str
    depth: int
    before: Mapping[Any, Any]
    after: Mapping[Any, Any] = field(default_factory=dict)
    seconds: float = 0.0
    inner: int = 0  # passes right inside


class PassTrace(PassInstrument):
    """Keeps what passes were given and what they made of it, and their times."""

    def __init__(self) -> None:
        self.runs: list[_Run] = []
        self._open: list[tuple[_Run, float]] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        run = _Run(info.name, len(self._open), dict(mod.functions))
        if self._open:
            self._open[-1][0].inner += 1
        self.runs.append(run)
        self._open.append((run, time.perf_counter()))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        run, start = self._open.pop()
        run.seconds = time.perf_counter() - start
        run.after = dict(mod.functions)

    def passes(self, shown: Collection[str]) -> list[PassRun]:
        """The passes on graphs in order, each time they ran; then those on loops, all their runs together.

        Parameters
        ----------
        shown : collection of str
            The kernels whose loop programs are compared. Graphs always are.
        """
        found: list[PassRun] = []
        loops: dict[tuple[str, int], PassRun] = {}
        texts: dict[int, str] = {}
        for run in self.runs:
            if not run.name.startswith(_LOOPS):
                record = PassRun(run.name, run.depth, run.seconds)
                found.append(record)
            else:
                record = loops.setdefault(
                    (run.name, run.depth), PassRun(run.name, run.depth, 0.0, 0)
                )
                record.runs += 1
                record.seconds += run.seconds
            _add_changes(record, run, shown, texts)
        return [*found, *loops.values()]


def _add_changes(record: PassRun, run: _Run, shown: Collection[str], texts: dict[int, str]) -> None:
    names = {var.name_hint: var for var in (*run.before, *run.after)}
    before = {var.name_hint: func for var, func in run.before.items()}
    after = {var.name_hint: func for var, func in run.after.items()}
    for name in names:
        old, new = before.get(name), after.get(name)
        if old is new:
            continue
        is_loops = isinstance(new or old, PrimFunc)
        record.changed += is_loops
        if run.inner or (is_loops and name not in shown):
            continue  # the passes inside show it
        diff = _difference(_text(old, texts), _text(new, texts))
        if not diff:
            continue
        record.changed += not is_loops
        record.changes.append(
            Change(name, "\n".join(diff[:_MOST_LINES]), is_cut=len(diff) > _MOST_LINES)
        )


def _difference(old: str, new: str) -> list[str]:
    if old == new:
        return []
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    return [line for line in lines if not line.startswith(("---", "+++"))]


def _text(func: Any, texts: dict[int, str]) -> str:
    if func is None:
        return ""
    found = texts.get(id(func))
    if found is None:
        found = func.script() if isinstance(func, PrimFunc) else stable_text(str(func))
        texts[id(func)] = found
    return found


def stable_text(text: str) -> str:
    """A graph's text whose values are named after the imported calls they come from.

    Numbers in order of appearance would be others behind each change.
    """
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    lines = text.splitlines()
    for line in lines:
        head = re.match(r"^\s*%(\d+) = (?:fn |([\w.]+)\()?", line)
        if head is None:
            continue
        span = re.search(r"span=#(\d+):", line)
        base = f"{(head[2] or 'f').split('.')[-1]}{'_' + span[1] if span else ''}"
        counts[base] = counts.get(base, 0) + 1
        names[head[1]] = base if counts[base] == 1 else f"{base}.{counts[base]}"
    shown = []
    for line in lines:
        line = _CONSTANT.sub(lambda found: f"const {found[1] or ''}".rstrip(), _SPAN.sub("", line))
        shown.append(re.sub(r"%(\d+)\b", lambda found: f"%{names.get(found[1], found[1])}", line))
    return "\n".join(shown)
