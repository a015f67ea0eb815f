"""The analyses behind `DataflowUseInplaceCalls`, for programs that look at them."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.analysis.dataflow import find_aliases, live_ranges
from tvm.relax.expr import Call, DataflowBlock, Function, Var
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.transform.pass_kinds import whole_module_pass
from tvm.relax.transform.use_inplace_calls import (
    InplaceOpportunity,
    inplace_opportunities,
    single_inplace_call,
)


def dataflow_liveness_analysis(block: DataflowBlock) -> dict[Var, tuple[int, int]]:
    """The bindings where each variable of a block is defined and last used.

    Parameters
    ----------
    block : DataflowBlock

    Returns
    -------
    dict of Var to (int, int)
        -1 is before the block, the number of bindings behind it.
    """
    return live_ranges(block)


def dataflow_alias_analysis(
    block: DataflowBlock, inputs: Sequence[Var]
) -> tuple[dict[Var, set[int]], dict[int, list[set[int]]]]:
    """Which values the variables of a block may be.

    Parameters
    ----------
    block : DataflowBlock
    inputs : list of Var
        Variables that are different values.

    Returns
    -------
    tuple
        By variable the numbers of values; by number of a tuple those of its fields. -1 is unknown.
    """
    found = find_aliases(block, inputs)
    return found.sets, found.tuples


def dataflow_inplace_analysis(
    block: DataflowBlock, inputs: Sequence[Var], mod: IRModule
) -> tuple[list[tuple[int, set[int]]], list[tuple[int, set[int]]]]:
    """Which calls may write over which arguments.

    Parameters
    ----------
    block : DataflowBlock
    inputs : list of Var
    mod : IRModule
        The module of the block.

    Returns
    -------
    tuple
        Pairs of a binding and its arguments: those with room for the result, and of the same shape.
    """

    def pairs(found: list[InplaceOpportunity]) -> list[tuple[int, set[int]]]:
        return [(one.binding, set(one.args)) for one in found]

    roomy, exact = inplace_opportunities(block, inputs)
    return pairs(roomy), pairs(exact)


def dataflow_single_inplace_call(
    mod: IRModule, call: Call, inplace_indices: Sequence[int]
) -> tuple[Call, IRModule]:
    """One call of an operator as one that writes over arguments.

    Parameters
    ----------
    mod : IRModule
    call : Call
    inplace_indices : list of int
        For each result the argument, or -1.

    Returns
    -------
    tuple
        The call, and the module with its loop program.
    """
    return single_inplace_call(mod, call, [int(i) for i in inplace_indices])


def ApplyEmptyCppMutator() -> Pass:
    """Visit every function with a mutator that changes nothing: operators normalise their calls.

    Returns
    -------
    Pass
    """

    def visited(mod: IRModule) -> IRModule:
        mutator = ExprMutator(mod)
        for var, func in mod.functions.items():
            if isinstance(func, Function):
                mutator.builder_.update_func(var, mutator.visit_expr(func))
        return mutator.builder_.get()

    return whole_module_pass("relax.testing.ApplyEmptyCppMutator", visited)
