"""Loop programs that only copy elements in order become reshapes, which the runtime does without copying.

y = call_tir(reshape, (x,), Tensor((2, 4)))    ->    y = reshape(x, (2, 4))

The results of dataflow blocks stay, as they must be memory of their own.
"""

from __future__ import annotations

from typing import Any

from tvm.arith import Analyzer
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax import op
from tvm.relax.analysis.reshape import reshaped_parameter
from tvm.relax.expr import Binding, Call, DataflowVar, Function, Tuple, VarBinding
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.struct_info import ShapeExpr, TensorStructInfo
from tvm.tir import IntImm, PrimFunc

from .pass_kinds import relax_pass


class _Reshapes(ExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.sources: dict[GlobalVar, int | None] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        source = self._copied(binding)
        if source is None:
            super().visit_var_binding_(binding)
            return
        info: Any = binding.var.struct_info
        made = op.reshape(self.visit_expr(source), info.shape)
        self.reemit_binding(binding, self.builder_.normalize(made))

    def _copied(self, binding: Binding) -> RelayExpr | None:
        """What the binding's call reshapes."""
        call = binding.value
        if not isinstance(binding.var, DataflowVar) or not isinstance(call, Call):
            return None
        if call.op is not Op.get("relax.call_tir"):
            return None
        callee, args = call.args[:2]
        if not isinstance(args, Tuple) or not isinstance(callee, GlobalVar):
            return None
        place = self._source(callee)
        if place is None or place >= len(args.fields):
            return None
        source = args.fields[place]
        return source if _fits(source.struct_info, binding.var.struct_info) else None

    def _source(self, callee: GlobalVar) -> int | None:
        if callee not in self.sources:
            func = self.mod.functions.get(callee)
            self.sources[callee] = reshaped_parameter(func) if isinstance(func, PrimFunc) else None
        return self.sources[callee]


def _fits(source: Any, result: Any) -> bool:
    are_tensors = isinstance(source, TensorStructInfo) and isinstance(result, TensorStructInfo)
    if not are_tensors or source.dtype != result.dtype or source.vdevice is not result.vdevice:
        return False
    if not isinstance(source.shape, ShapeExpr) or not isinstance(result.shape, ShapeExpr):
        return False
    counts: list[Any] = []
    for shape in (source.shape, result.shape):
        total: Any = IntImm("int64", 1)
        for extent in shape.values:
            total = total * extent
        counts.append(total)
    return Analyzer().can_prove_equal(*counts)


def rewrite_dataflow_reshape(func: Function, mod: IRModule) -> Function:
    """The function with reshapes for loop programs that are such."""
    found: Function = _Reshapes(mod).visit_expr(func)
    return found


def RewriteDataflowReshape() -> Pass:
    """Let loop programs of dataflow blocks that are reshapes be calls of that operator."""
    return relax_pass("RewriteDataflowReshape", rewrite_dataflow_reshape)


__all__ = ["RewriteDataflowReshape"]
