"""How programs legalise operators of their own, or operators that are there in another way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.op import register_op_attr
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call, Expr

LegalizeFunc = Callable[[BlockBuilder, Call], Expr]


def register_legalize(op_name: str, legal_func: LegalizeFunc | None = None) -> Any:
    """Let ``LegalizeOps`` replace calls of an operator by what a function makes of them.

    Parameters
    ----------
    op_name : str
        The operator; it is made if there is none of that name.
    legal_func : callable, optional
        From the block builder and the call to an expression; by default this is a decorator of it.
    """

    def register(function: LegalizeFunc) -> LegalizeFunc:
        register_op_attr(op_name, "FLegalize", function)
        return function

    return register if legal_func is None else register(legal_func)


__all__ = ["LegalizeFunc", "register_legalize"]
