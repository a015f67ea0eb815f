"""Passes that replace calls, each by a rule that sees the call and the definitions of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.analysis.unused import remove_all_unused
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call, Function, Var
from tvm.relax.expr_functor import ExprMutator

from .canonicalize_bindings import canonicalize
from .common_subexpr import eliminate_common_subexpr
from .pass_kinds import whole_module_pass

# from a call in normal form and the block builder to what is put in its place; None: the call
Rule = Callable[[Call, BlockBuilder], "RelayExpr | None"]
# from a function and its module to its rule
RuleOf = Callable[[Function, IRModule], Rule]


def definition(expr: RelayExpr, builder: BlockBuilder) -> RelayExpr:
    """What an argument is bound to."""
    while isinstance(expr, Var):
        found = builder.lookup_binding(expr)
        if found is None:
            break
        expr = found
    return expr


class _Rewriter(ExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.rule: Rule | None = None

    def visit_call_(self, op: Call) -> Any:
        call = self.visit_expr_post_order(op)
        if self.rule is None or not isinstance(call, Call):
            return call
        found = self.rule(call, self.builder_)
        return call if found is None else self.builder_.normalize(found)


def rewriting_pass(name: str, rule_of: RuleOf, is_repeated: bool = True) -> Pass:
    """A pass over calls.

    Parameters
    ----------
    name : str
    rule_of : callable
        From a function and its module to its rule.
    is_repeated : bool
        Whether the rule may find something in what it made.
    """

    def run(mod: IRModule) -> IRModule:
        rewriter = _Rewriter(mod)
        for gvar, func in mod.functions.items():
            if not isinstance(func, Function):
                continue
            new, old = func, None
            while new is not old:
                old, rewriter.rule = new, rule_of(new, mod)
                found = rewriter.visit_expr(new)
                if found is new:
                    break
                new = remove_all_unused(canonicalize(found, mod))
                if not is_repeated:
                    break
                new = eliminate_common_subexpr(new, rewriter.builder_.get())
            if new is not func:
                rewriter.builder_.update_func(gvar, new)
        made = rewriter.builder_.get()
        same = len(made.functions) == len(mod.functions) and all(
            [func is made.functions.get(gvar) for gvar, func in mod.functions.items()]
        )
        return mod if same else made

    return whole_module_pass(name, run)
