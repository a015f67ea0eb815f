"""The step of the classic post-processing that writes tensor-core instructions for marked loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tvm.error import OpNotImplemented
from tvm.ir.visitor import Visitor
from tvm.tir.stmt import AttrStmt, Stmt

if TYPE_CHECKING:
    from .schedule import Schedule


def rewrite_for_tensor_core(
    stmt: Stmt, schedule: Schedule, extern_buffer: Mapping[Any, Any]
) -> Stmt:
    """The statement itself; loops with the pragma ``tensor_core`` have no target here."""
    finder = _MarkFinder()
    finder.visit(stmt)
    if finder.marks:
        raise OpNotImplemented(
            "tensor_core requires a GPU with tensor cores, which no back end here is for",
            hint="leave the pragma out, or tensorize with an intrinsic of your own",
        )
    return stmt


class _MarkFinder(Visitor):
    def __init__(self) -> None:
        self.marks = 0

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        self.marks += attr.attr_key == "pragma_tensor_core"
        self.visit_children(attr)
