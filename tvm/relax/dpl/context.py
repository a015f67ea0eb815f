"""Patterns with constraints between them."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relax.expr import DataflowBlock
from tvm.runtime.object import Object
from tvm.support import deep

from .constraints import CURRENT, Constraints
from .graph_match import GraphMatcher
from .pattern import DFPattern


class PatternContext(Object):
    """The scope in which patterns are related: ``with PatternContext() as ctx: a >> b``.

    Parameters
    ----------
    incremental : bool
        Whether the constraints of the context around it hold too.
    """

    def __init__(self, incremental: bool = False) -> None:
        outer = CURRENT.current()
        self.constraints = outer.copy() if incremental and outer is not None else Constraints()
        self.constraints.owner = self

    def __enter__(self) -> PatternContext:
        CURRENT.push(self.constraints)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        CURRENT.pop()

    @staticmethod
    def current() -> PatternContext | None:
        """The innermost context, if there is one."""
        constraints = CURRENT.current()
        return None if constraints is None else constraints.owner

    @deep
    def match_dfb(self, dfb: DataflowBlock) -> dict[DFPattern, RelayExpr] | None:
        """Variables of a block that the patterns may stand for, each for another one.

        Parameters
        ----------
        dfb : DataflowBlock

        Returns
        -------
        dict of DFPattern to Var, or None
            The first way that there is.
        """
        values = {binding.var: binding.value for binding in dfb.bindings}
        return GraphMatcher(self.constraints, dfb.bindings, values).search()
