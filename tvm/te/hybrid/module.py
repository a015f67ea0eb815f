"""Lowered schedules as hybrid scripts: text that runs in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tvm.support.files import write_text

from ..schedule.lower import lower_schedule
from ..schedule.schedule import Schedule
from ..tensor import Tensor
from .parser import source_to_op
from .runtime import HYBRID_GLOBALS
from .script import is_symbolic
from .writer import write_script


class HybridModule:
    """A script that can be saved, loaded, and called: with tensors or with arrays.

    Parameters
    ----------
    src : str, optional
        The text.
    name : str, optional
        The function in it; by default the first one.
    """

    def __init__(self, src: str | None = None, name: str | None = None) -> None:
        self.src_, self.name = src, name
        self.func_: Any = None
        if src is not None:
            self._compile(src)

    def _compile(self, src: str) -> None:
        names: dict[str, Any] = dict(HYBRID_GLOBALS)
        exec(compile(src, "<hybrid script>", "exec"), names)
        if self.name is None:
            self.name = src.split("def ", 1)[1].split("(", 1)[0]
        self.func_ = names[self.name]

    def __call__(self, *args: Any) -> Any:
        if self.func_ is None:
            raise ValueError("a HybridModule requires a source before it is called, got none")
        if any(is_symbolic(arg) for arg in args):
            return source_to_op(str(self.src_), args, {}, {})
        return self.func_(*args)

    def get_source(self) -> str | None:
        """The text."""
        return self.src_

    def save(self, path: str) -> None:
        """Write the text to a file; ``.py`` is added to names without it."""
        write_text(path if path.endswith(".py") else f"{path}.py", self.src_ or "")

    def load(self, path: str) -> None:
        """Read the text from a file."""
        self.src_ = Path(path).read_text(encoding="utf8")
        self._compile(self.src_)


def build(
    sch: Schedule, inputs: list[Any], outputs: list[Tensor], name: str = "hybrid_func"
) -> HybridModule:
    """The script that a schedule stands for.

    Parameters
    ----------
    sch : Schedule
    inputs : list of Tensor or Var
        The parameters.
    outputs : list of Tensor
        What the script returns.
    name : str
        The script's name.
    """
    func = lower_schedule(sch, [*inputs, *outputs], name)
    return HybridModule(write_script(func, len(inputs), name), name)
