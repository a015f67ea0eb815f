"""Debug information: compiled instructions know the line of the lowered program that they come from.

    TVM_DEBUG_INFO=/tmp/lines    ->    /tmp/lines/add-1b2c3d4e.tir, and DWARF that points into it

A debugger steps through that text, and a backtrace names its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm.script.printer.lines import LineRecorder
from tvm.support.files import write_text
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Stmt

from .statements import Frame, FunctionWriter
from .types import byte_string

if TYPE_CHECKING:
    from .module import ModuleWriter


class DebugInfo:
    """The text of a module's functions, and the metadata that refers to it."""

    def __init__(
        self, module: ModuleWriter, functions: Mapping[str, PrimFunc], folder: Path
    ) -> None:
        self.module = module
        self.lines: dict[int, int] = {}
        self.first_lines: dict[str, int] = {}
        self._functions = functions  # keeps the statements alive whose identities are keys
        self._locations: dict[tuple[int, int], int] = {}
        text = self._print(functions)
        digest = blake2b(text.encode(), digest_size=4).hexdigest()
        path = folder.absolute() / f"{next(iter(functions), 'module')}-{digest}.tir"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
        self._file = self._node(
            f"!DIFile(filename: {_string(path.name)}, directory: {_string(str(path.parent))})"
        )
        self._unit = self._node(
            f'distinct !DICompileUnit(language: DW_LANG_Python, file: !{self._file}, producer: "tvm", '
            "isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)"
        )
        self._type = self._node("!DISubroutineType(types: !{})")

    def _print(self, functions: Mapping[str, PrimFunc]) -> str:
        parts: list[str] = []
        line = 1
        for name, func in functions.items():
            recorder = LineRecorder(func, name, line)
            text = recorder.text + "\n"
            self.lines |= recorder.found
            self.first_lines[name] = line
            parts.append(text)
            line += text.count("\n")
        return "".join(parts)

    def subprogram(self, name: str, line: int) -> int:
        """The metadata number of a function that begins at a line."""
        return self._node(
            f"distinct !DISubprogram(name: {_string(name)}, scope: !{self._file}, file: !{self._file}, "
            f"line: {line}, type: !{self._type}, scopeLine: {line}, spFlags: DISPFlagDefinition | "
            f"DISPFlagOptimized, unit: !{self._unit})"
        )

    def location(self, line: int, scope: int) -> str:
        """What to append to an instruction of a line of a function."""
        found = self._locations.get((line, scope))
        if found is None:
            text = f"!DILocation(line: {line}, column: 1, scope: !{scope})"
            found = self._locations[line, scope] = self._node(text)
        return f", !dbg !{found}"

    def module_flags(self) -> list[str]:
        """The metadata by which LLVM finds the rest."""
        version = self._node('!{i32 2, !"Debug Info Version", i32 3}')
        dwarf = self._node('!{i32 7, !"Dwarf Version", i32 4}')
        return [
            f"!llvm.dbg.cu = !{{!{self._unit}}}",
            f"!llvm.module.flags = !{{!{version}, !{dwarf}}}",
        ]

    def _node(self, text: str) -> int:
        return self.module.add_metadata(text)


def _string(text: str) -> str:
    return byte_string(text.encode())[1:]


class LocatedFunctionWriter(FunctionWriter):
    """Writes a function whose instructions have locations."""

    def __init__(
        self, module: ModuleWriter, name: str, frame: Frame, noalias: bool, info: DebugInfo
    ) -> None:
        super().__init__(module, name, frame, noalias)
        self.info = info
        self.line = info.first_lines[name]  # of the innermost statement that is being written
        self.scope = self._begin(frame, name, self.line)

    def _begin(self, frame: Frame, name: str, line: int) -> int:
        scope = self.info.subprogram(name, line)
        frame.code.signature += f" !dbg !{scope}"
        frame.code.location = self.info.location(line, scope)
        return scope

    @contextmanager
    def moved_to(self, frame: Frame) -> Iterator[None]:
        outer = self.scope
        self.scope = self._begin(frame, f"{self.name}_task", self.line)
        with super().moved_to(frame):
            yield
        self.scope = outer

    def visit(self, node: Any) -> Any:
        line = self.info.lines.get(id(node)) if isinstance(node, Stmt) else None
        if line is None:
            return super().visit(node)
        code, outer, outer_line = self.code, self.code.location, self.line
        self.line = line
        code.location = self.info.location(line, self.scope)
        try:
            return super().visit(node)
        finally:
            code.location, self.line = outer, outer_line
