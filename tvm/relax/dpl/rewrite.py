"""Replacing what matches a pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.relax.analysis.order import definitions_first
from tvm.relax.analysis.unused import remove_all_unused
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Binding, BindingBlock, DataflowBlock, Function, Var
from tvm.relax.expr_functor import ExprMutator
from tvm.support import deep

from .context import PatternContext
from .pattern import DFPattern
from .rewriters import (
    Callback,
    ExprPatternRewriter,
    OrRewriter,
    PatternMatchingRewriter,
    TupleRewriter,
)
from .rounds import flattened

Matches = dict[DFPattern, RelayExpr]


def rewrite_call(pattern: DFPattern, rewriter: Callback, func: Function) -> Function:
    """A function with matches of a pattern replaced, until nothing changes any more.

    Parameters
    ----------
    pattern : DFPattern
    rewriter : callable
        ``f(expr, matches)`` from a match and what the parts of the pattern stand for to what is put in
        its place; ``expr`` itself for no replacement.
    func : Function
    """
    return PatternMatchingRewriter.from_pattern(pattern, rewriter).rewrite(func)


class _BlockRewriter(ExprMutator):
    def __init__(self, context: PatternContext, rewriter: Callable[..., Any]) -> None:
        super().__init__()
        self.context = context
        self.rewriter = rewriter

    def visit_dataflow_block_(self, block: BindingBlock) -> Any:
        """The block with matches replaced, until there is none."""
        current: Any = block
        while True:
            matches = self.context.match_dfb(current)
            values = {b.var: b.value for b in current.bindings}
            new = dict(self.rewriter(matches, values)) if matches is not None else {}
            if not new:
                break
            current = self._replaced(current, new)
        return super().visit_dataflow_block_(current)

    def _replaced(self, block: DataflowBlock, new: Mapping[Var, RelayExpr]) -> Any:
        bindings: Sequence[Binding] = [
            part
            for binding in block.bindings
            for part in (
                flattened(binding.replace(value=new[binding.var]))
                if binding.var in new
                else [binding]
            )
        ]
        made = block.replace(bindings=tuple(definitions_first(bindings)))
        normal: Any
        (normal,) = BlockBuilder().normalizer.block(made)
        return remove_all_unused(normal)


@deep
def rewrite_bindings(
    ctx: PatternContext,
    rewriter: Callable[[Matches, dict[Var, RelayExpr]], dict[Var, RelayExpr]],
    func: Function,
) -> Function:
    """A function with the values of bindings that match replaced, until nothing matches.

    Parameters
    ----------
    ctx : PatternContext
        The patterns, which are matched with each dataflow block.
    rewriter : callable
        ``f(matches, bindings)`` from the variables that the patterns stand for, and the values of the
        block's variables, to new values of some of them; an empty dict for no replacement.
    func : Function
    """
    new = _BlockRewriter(ctx, rewriter).visit_expr(func)
    found: Function = func if new is func else remove_all_unused(new)
    return found


__all__ = [
    "ExprPatternRewriter", "OrRewriter", "PatternMatchingRewriter", "TupleRewriter",
    "rewrite_bindings", "rewrite_call",
]  # fmt: skip
