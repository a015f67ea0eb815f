"""What is computed twice is computed once.

a = add(x, y); b = add(x, y); c = multiply(a, b)    ->    a = add(x, y); c = multiply(a, a)
"""

from __future__ import annotations

from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal, structural_hash
from tvm.ir.transform import Pass
from tvm.relax.expr import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.purity import contains_impure_call

from .pass_kinds import relax_pass


class _Deduplicator(ExprMutator):
    """Knows the values that are visible, by their hash."""

    def __init__(self, mod: IRModule | None, call_only: bool) -> None:
        super().__init__(mod)
        self.call_only = call_only
        self.known: dict[Any, list[tuple[Any, Any, Var]]] = {}
        self.same: dict[Any, Var] = {}  # identity of a variable: what it is the same as
        self.outputs: dict[Var, Var] = {}  # of the dataflow block, by its own variable

    def visit_var_(self, op: Var) -> Any:
        new = super().visit_var_(op)
        return self.same.get(new.vid, new)

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        outer = {key: list(values) for key, values in self.known.items()}
        found = super().visit_seq_expr_(op)
        self.known = outer
        return found

    def visit_function_(self, op: Function) -> Any:
        outer, self.known = self.known, {}
        found = super().visit_function_(op)
        self.known = outer
        return found

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        new: BindingBlock = super().visit_dataflow_block_(block)
        # its own variables are not visible behind it, where outputs stand for their values
        self.same = {key: var for key, var in self.same.items() if type(var) is Var}
        self.known = {
            key: [(*entry[:2], var) for entry in entries if (var := self._visible(entry[2]))]
            for key, entries in self.known.items()
        }
        self.outputs.clear()
        return new

    def _visible(self, var: Var) -> Var | None:
        """A variable that has the value of one of a dataflow block behind the block."""
        return self.outputs.get(var) if isinstance(var, DataflowVar) else var

    def _may_be_shared(self, value: Any) -> bool:
        if isinstance(value, (Function, If)) or contains_impure_call(value):
            return False
        if isinstance(value, Call):
            # a new tensor that is written to is another one than the next
            return not (isinstance(value.op, Op) and value.op.extra.get("FAllocator"))
        return not self.call_only and isinstance(value, (Tuple, TupleGetItem))

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        if not self._may_be_shared(value):
            self.reemit_binding(binding, value)
            return
        self._share(binding, value, None)

    def _share(self, binding: Any, value: Any, cast: Any) -> None:
        key = structural_hash((value, cast, binding.var.struct_info_), True)
        entries = self.known.setdefault(key, [])
        for other, other_cast, var in entries:
            same = structural_equal((other, other_cast), (value, cast))
            if same and var.struct_info_ == binding.var.struct_info_:
                self.reemit_binding(binding, var)
                self.same[binding.var.vid] = var
                if type(var) is DataflowVar and type(binding.var) is Var:
                    self.outputs.setdefault(var, self._remap.get(binding.var.vid, binding.var))
                return
        if isinstance(binding, VarBinding):
            self.reemit_binding(binding, value)
        else:
            super().visit_match_cast_(binding)
        entries.append((value, cast, self._remap.get(binding.var.vid, binding.var)))

    def visit_match_cast_(self, binding: MatchCast) -> None:
        value = self.visit_expr(binding.value)
        if self.call_only or contains_impure_call(value):
            super().visit_match_cast_(binding)
            return
        self._share(binding, value, self.visit_struct_info(binding.struct_info))


def eliminate_common_subexpr(func: Function, mod: IRModule, call_only: bool = False) -> Function:
    """The function with equal values computed once."""
    found: Function = _Deduplicator(mod, call_only).visit_expr(func)
    return found


def EliminateCommonSubexpr(call_only: bool = False) -> Pass:
    """Compute equal values once.

    Parameters
    ----------
    call_only : bool
        Whether only calls are shared.
    """
    return relax_pass(
        "EliminateCommonSubexpr", lambda f, mod: eliminate_common_subexpr(f, mod, call_only), 1
    )
