"""What stands for loops, blocks and numbers in a schedule: their values depend on the program and on samples."""

from __future__ import annotations

from typing import TypeAlias

from tvm.ir.expr import PrimExpr
from tvm.runtime.object import Object


class LoopRV(Object):
    """A loop of the program that is scheduled."""


class BlockRV(Object):
    """A block of the program that is scheduled."""


# a number: a variable that was sampled, or an expression of some
ExprRV: TypeAlias = PrimExpr
