"""Runs of bindings without side effects become dataflow blocks.

y = add(x, x)                  with dataflow:
z = exp(y)               ->        y = add(x, x); z = exp(y); output(z)
print(z)                       print(z)
"""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.base import update_struct_info
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    Function,
    If,
    SeqExpr,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.purity import is_impure_call

from .canonicalize_bindings import canonicalize
from .pass_kinds import relax_pass


def _is_pure(binding: Binding) -> bool:
    value = binding.value
    if isinstance(value, If):
        return False
    return not (isinstance(value, Call) and is_impure_call(value))


class _Extractor(ExprMutator):
    def __init__(self, min_size: int) -> None:
        super().__init__()
        self.min_size = min_size

    def visit_seq_expr_(self, op: SeqExpr) -> SeqExpr:
        blocks: list[BindingBlock] = []
        run: list[Binding] = []
        had_dataflow = False

        def end() -> None:
            nonlocal had_dataflow
            if run:
                is_long = had_dataflow or len(run) >= self.min_size
                blocks.append((DataflowBlock if is_long else BindingBlock)(run))
                run.clear()
            had_dataflow = False

        for block in op.blocks:
            if isinstance(block, DataflowBlock):
                run.extend(block.bindings)
                had_dataflow = True
                continue
            for binding in block.bindings:
                if _is_pure(binding):
                    run.append(binding)
                else:
                    end()
                    blocks.append(BindingBlock([binding]))
        end()
        same = len(blocks) == len(op.blocks) and all(
            [
                type(a) is type(b) and len(a.bindings) == len(b.bindings)
                for a, b in zip(blocks, op.blocks, strict=True)
            ]
        )
        if same:
            return super().visit_seq_expr_(op)  # type: ignore[no-any-return]
        new = SeqExpr(blocks, op.body, op.span)
        update_struct_info(new, op.struct_info_)
        return super().visit_seq_expr_(new)  # type: ignore[no-any-return]


def convert_to_dataflow(func: Function, mod: IRModule, min_size: int = 2) -> Function:
    """The function with dataflow blocks for runs of so many bindings or more."""
    new: Function = _Extractor(min_size).visit_expr(func)
    return func if new is func else canonicalize(new, mod)


def ConvertToDataflow(min_size: int = 2) -> Pass:
    """Let runs of bindings without side effects be dataflow blocks.

    Parameters
    ----------
    min_size : int
        The fewest bindings that make one.
    """
    return relax_pass("ConvertToDataflow", lambda f, mod: convert_to_dataflow(f, mod, min_size))
