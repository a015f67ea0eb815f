"""Instruments watch passes: timing, printing, dumping, verifying."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from tvm import knobs
from tvm.error import TVMError

from .module import IRModule
from .pass_context import PassInfo


class PassInstrument:
    """The base of instruments; override what is of interest."""

    def enter_pass_ctx(self) -> None:
        """Called when the context is entered."""

    def exit_pass_ctx(self) -> None:
        """Called when the context is left."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass runs at all."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Called before each pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Called after each pass."""


def pass_instrument(pi_cls: Any = None) -> Any:
    """Class decorator: make an instrument of a class that has some of the methods."""

    def decorate(cls: Any) -> Any:
        if not inspect.isclass(cls):
            raise TypeError(f"pass_instrument requires a class, got {cls!r}")
        if issubclass(cls, PassInstrument):
            return cls
        return type(cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__})

    return decorate if pi_cls is None else decorate(pi_cls)


class PassTimingInstrument(PassInstrument):
    """Measures each pass, nested ones below the pass that runs them."""

    def __init__(self) -> None:
        self._rows: list[list[Any]] = []  # depth, name, seconds
        self._open: list[tuple[int, float]] = []

    def enter_pass_ctx(self) -> None:
        self._rows, self._open = [], []

    def exit_pass_ctx(self) -> None:
        self._rows, self._open = [], []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._rows.append([len(self._open), info.name, 0.0])
        self._open.append((len(self._rows) - 1, time.perf_counter()))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        row, start = self._open.pop()
        self._rows[row][2] = time.perf_counter() - start

    def render(self) -> str:
        """A table of times in microseconds, with each pass's share of the whole.

        Within the context: nothing is left of the times behind it.
        """
        total = sum(seconds for depth, _, seconds in self._rows if depth == 0) or 1.0
        return "\n".join(
            f"{'  ' * depth}{name}: {seconds * 1e6:.0f}us ({100 * seconds / total:.1f}%)"
            for depth, name, seconds in self._rows
        )


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after passes of certain names."""

    def __init__(
        self, print_before_pass_names: Iterable[str], print_after_pass_names: Iterable[str]
    ) -> None:
        self.before = set(print_before_pass_names)
        self.after = set(print_after_pass_names)

    def run_before_pass(self, mod: IRModule, pass_info: PassInfo) -> None:
        if pass_info.name in self.before:
            print(f"before {pass_info.name}:\n{mod}\n")

    def run_after_pass(self, mod: IRModule, pass_info: PassInfo) -> None:
        if pass_info.name in self.after:
            print(f"after {pass_info.name}:\n{mod}\n")


class PrintAfterAll(PassInstrument):
    """Prints the module after every pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        print("After Running Pass:", info)
        print(mod)


class PrintBeforeAll(PassInstrument):
    """Prints the module before every pass."""

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        print("Before Running Pass:", info)
        print(mod)


class DumpIR(PassInstrument):
    """Writes ``03_tir.UnrollLoop.txt`` after each pass that changed the text.

    Parameters
    ----------
    folder : str or Path
    refresh : bool
        Empty the folder of earlier dumps first.
    """

    def __init__(self, folder: str | Path, refresh: bool = False) -> None:
        self.folder = Path(folder)
        self.refresh = refresh
        self._count = 0
        self._text = ""

    def enter_pass_ctx(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.refresh:
            for old in self.folder.glob("*.txt"):
                if re.match(r"\d+_", old.name):
                    old.unlink()

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._text = str(mod)

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        text = str(mod)
        self._count += 1
        if text != self._text:
            name = re.sub(r"[^\w.]+", "_", info.name)
            (self.folder / f"{self._count:02}_{name}.txt").write_text(text)
            self._text = text


class StopAfter(PassInstrument):
    """Prints the module after a certain pass and ends the compilation there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name == self.name:
            print(mod)
            raise TVMError(f"compilation stops after {self.name}, as TVM_STOP_AFTER says")


class PrintTimes(PassTimingInstrument):
    """Prints a table of times each time that the outermost pass ends."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        super().run_after_pass(mod, info)
        if not self._open:
            print(self.render())
            self.enter_pass_ctx()


def environment_instruments() -> list[PassInstrument]:
    """What the knobs TVM_DUMP_IR, TVM_TIME_PASSES and TVM_STOP_AFTER ask for."""
    asked = (knobs.DUMP_IR.value, knobs.TIME_PASSES.value, knobs.STOP_AFTER.value)
    if asked == (None, False, ""):
        return []
    return _instruments_for(*asked)


@lru_cache(maxsize=8)
def _instruments_for(folder: Path | None, times: bool, last: str) -> list[PassInstrument]:
    """The same instruments as long as the knobs stay: they number and nest what they see."""
    made: list[PassInstrument] = []
    if times:
        made.append(PrintTimes())
    if folder is not None:
        made.append(DumpIR(folder))
    if last:
        made.append(StopAfter(last))
    for instrument in made:
        instrument.enter_pass_ctx()
    return made
