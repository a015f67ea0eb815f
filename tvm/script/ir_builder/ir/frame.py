"""The frame of a module."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule

from ..base import IRBuilder, IRBuilderFrame


class IRModuleFrame(IRBuilderFrame):
    """A module that is being built."""

    def __init__(self) -> None:
        super().__init__()
        self.global_var_map: dict[str, GlobalVar] = {}
        self.functions: dict[GlobalVar, BaseFunc | None] = {}  # None: declared alone
        self.attrs: dict[str, Any] = {}
        self.global_infos: dict[str, Any] = {}

    def finish(self) -> None:
        defined = {var: func for var, func in self.functions.items() if func is not None}
        undefined = [var.name_hint for var in self.functions if var not in defined]
        if undefined:
            raise ValueError(f"a module requires its functions to be defined, {undefined} are not")
        IRBuilder.current().set_result(IRModule(defined, None, self.attrs, self.global_infos))


__all__ = ["IRModuleFrame"]
