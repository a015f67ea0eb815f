"""From loops of an accelerator to C text: ours, with what the accelerator's functions need."""

from __future__ import annotations

from collections.abc import Callable

from tvm import tir
from tvm.driver import build_lowered
from tvm.error import TVMError
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.runtime.module import Module
from tvm.target import Target
from tvm.tir import PrimFunc


class UMACodegen:
    """The text in front of an accelerator's functions.

    Parameters
    ----------
    target_name : str
        The accelerator's target kind.
    """

    def __init__(self, target_name: str) -> None:
        self.target_name = target_name
        self.fmt = "c"
        self.includes: Callable[[], str] | None = None

    def set_format(self, fmt: str, includes: Callable[[], str] | None) -> None:
        """Set the language, and the function that returns the text in front."""
        if fmt != "c":
            raise TVMError(f'UMA requires the code format "c", got {fmt!r}')
        self.fmt, self.includes = fmt, includes

    def __call__(self, mod: IRModule, target: Target) -> Module:
        """The C text of the functions of a module."""
        del target  # the text is for the machine that it runs on
        if self.includes is not None:
            head = tir.StringImm(self.includes().rstrip() + "\n")
            mod = mod.map_functions(lambda _, func: _importing(func, head))
        return build_lowered(mod, Target("c"))


def _importing(func: BaseFunc, text: tir.StringImm) -> BaseFunc:
    """The function, with C text in front of its module."""
    assert isinstance(func, PrimFunc)
    nothing = tir.const(0, "int32")
    return func.with_body(tir.AttrStmt(nothing, "pragma_import_c", text, func.body))
