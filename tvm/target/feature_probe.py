"""The features of a processor, asked of LLVM's inliner; a program that ``llvm_tables`` runs.

LLVM's C interface has the names of processors and of features, but not which has which. The inliner knows:
it inlines a function only where the caller has the features that the function asks for. So each feature
becomes a function, and one caller with the processor's features calls them all.

LLVM ends its process where features exclude each other, hence the forks.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

import llvmlite.binding as llvm


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor as LLVM's function attributes name it."""

    triple: str
    name: str
    mattr: str

    def attributes(self, feature: str = "") -> str:
        """The attributes of a function for this processor with one more feature given or taken."""
        features = ",".join([item for item in (self.mattr, feature) if item])
        return f'"target-cpu"="{self.name}" "target-features"="{features}"'

    def features(self, names: list[str]) -> list[str]:
        """Those of the features that it has."""
        found = _in_forks(self._accepted, names)
        ignored = set(_in_forks(self._ignored, found))
        return [name for name in found if name not in ignored]

    def _accepted(self, names: list[str]) -> list[str]:
        """The features that the inliner does not miss."""
        callees = [_callee(i, self.attributes(f"+{name}")) for i, name in enumerate(names)]
        calls = "\n".join([f"call void @callee{i}()" for i in range(len(names))])
        caller = f"define void @caller() {self.attributes()} {{\n{calls}\nret void\n}}"
        module = self._optimized([*callees, caller])
        body = str(module.get_function("caller"))
        return [name for i, name in enumerate(names) if f"@callee{i}()" not in body]

    def _ignored(self, names: list[str]) -> list[str]:
        """The features that the inliner does not miss where they are taken away: hints for tuning."""
        callers = [
            f"define void @caller{i}() {self.attributes(f'-{name}')} "
            "{\ncall void @callee0()\nret void\n}"
            for i, name in enumerate(names)
        ]
        module = self._optimized([_callee(0, self.attributes()), *callers])
        bodies = [str(module.get_function(f"caller{i}")) for i in range(len(names))]
        return [name for name, body in zip(names, bodies, strict=True) if "@callee0()" not in body]

    def _optimized(self, functions: list[str]) -> llvm.ModuleRef:
        text = "\n".join(
            [f'target triple = "{self.triple}"', "@g = external global i8", *functions]
        )
        module = llvm.parse_assembly(text)
        machine = llvm.Target.from_triple(self.triple).create_target_machine()
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return module


def _callee(number: int, attributes: str) -> str:
    """A function of which nothing but inlining can get rid."""
    body = f"store volatile i8 {number % 128}, ptr @g"
    return f"define internal void @callee{number}() {attributes} {{\n{body}\nret void\n}}"


def _in_forks(ask: Callable[[list[str]], list[str]], names: list[str]) -> list[str]:
    """The answer for names, without those on which LLVM ends its process."""
    answer = _in_fork(ask, names) if names else []
    if answer is not None:
        return answer
    half = len(names) // 2
    return _in_forks(ask, names[:half]) + _in_forks(ask, names[half:]) if half else []


def _in_fork(ask: Callable[[list[str]], list[str]], names: list[str]) -> list[str] | None:
    """The answer of a copy of this process, or None if that was ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with open(writing, "w", encoding="utf-8") as pipe:
            json.dump(ask(names), pipe)
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if status == 0 else None


if __name__ == "__main__":
    *_given, _names = json.load(sys.stdin)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    json.dump(Processor(*_given).features(_names), sys.stdout)
