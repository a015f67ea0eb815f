"""Passes for hardware that no built-in code generator is for.

Programs without what such a pass is about are left as they are; the others are rejected, by the name of
the back end that is missing, rather than compiled wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.error import LoweringError
from tvm.ir.transform import Pass
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, Block, For
from tvm.tir.transform.common import contains, prim_func_pass

Question = Callable[[Any], bool]


def marked(*keys: str) -> Question:
    """Whether a node has such an attribute or annotation."""

    def asks(node: Any) -> bool:
        if isinstance(node, AttrStmt):
            return node.attr_key in keys
        return isinstance(node, (Block, For)) and any([key in node.annotations for key in keys])

    return asks


def raising(name: str, about: Question, what: str, backend: str) -> Callable[..., Pass]:
    """The constructor of a pass that takes only programs without ``what``."""

    @prim_func_pass(f"tir.{name}")
    def reject(func: PrimFunc) -> PrimFunc:
        if contains(func.body, about):
            raise LoweringError(
                f"{name} needs the {backend} back end for {what}, which is not built in"
            )
        return func

    return reject.factory


CoProcSync = raising(
    "CoProcSync", marked("coproc_scope", "coproc_uop_scope"), "co-processor scopes", "VTA"
)
