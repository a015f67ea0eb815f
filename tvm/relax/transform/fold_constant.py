"""Calls of constants are computed at compile time.

lv = call_tir(add, (c0, c1))    ->    lv = c2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from tvm import nd
from tvm.driver import build
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.analysis.unused import remove_all_unused
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    Call,
    Constant,
    DataflowBlock,
    Function,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    Var,
    const,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.op.legalize import has_known_shape
from tvm.relax.struct_info import TensorStructInfo
from tvm.tir import IntImm, PrimFunc

from .pass_kinds import whole_module_pass


class _Folder(ExprMutator):
    """Evaluates loop programs; each is built once."""

    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self.mod = mod
        self.built: dict[Any, Any] = {}
        self.in_dataflow = False

    def visit_var_(self, op: Var) -> Any:
        new = super().visit_var_(op)
        value = self.lookup_binding(new)
        if isinstance(value, ShapeExpr) and all([isinstance(d, IntImm) for d in value.values]):
            return value
        return value if isinstance(value, Constant) else new

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        outer, self.in_dataflow = self.in_dataflow, True
        new = super().visit_dataflow_block_(block)
        self.in_dataflow = outer
        return new

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        if not isinstance(call.op, Op):
            return call
        if call.op.name == "relax.call_tir":
            found = self._call_tir(call)
            return call if found is None else found
        # outside of dataflow blocks operators stay for passes that look for them
        return self._operator(call) if self.in_dataflow else call

    def _call_tir(self, call: Call) -> Constant | None:
        info = call.sinfo_args[0]
        args = call.args[1].fields if isinstance(call.args[1], Tuple) else ()
        func = self.mod.functions.get(call.args[0]) if isinstance(call.args[0], GlobalVar) else None
        if len(call.args) > 2 or not isinstance(func, PrimFunc):
            return None
        return self._evaluate(func, args, info)

    def _evaluate(self, func: PrimFunc, args: Sequence[RelayExpr], info: Any) -> Constant | None:
        """What a loop program makes of constants."""
        arrays = [a.data for a in args if isinstance(a, Constant)]
        if len(arrays) < len(args):
            return None
        if not isinstance(info, TensorStructInfo) or info.dimensions is None:
            return None
        shape = [d.value if isinstance(d, IntImm) else None for d in info.dimensions]
        if any([d is None for d in shape]):
            return None
        runs = self.built.get(func)
        if runs is None:
            runs = self.built[func] = build(
                func.with_attr("global_symbol", "folded"), target="llvm"
            )
        out = nd.empty(shape, info.dtype)
        runs(*arrays, out)
        return Constant(out)

    def _operator(self, call: Call) -> Any:
        """An operator of constants, by its loop program."""
        op = call.op
        assert isinstance(op, Op)
        if op.name == "relax.shape_to_tensor" and isinstance(call.args[0], ShapeExpr):
            dims = call.args[0].values
            values = [d.value for d in dims if isinstance(d, IntImm)]
            if len(values) == len(dims):
                return const(values, "int64")
        if op.name == "relax.tensor_to_shape" and isinstance(call.args[0], Constant):
            return ShapeExpr(call.args[0].data.numpy().tolist())
        rule = op.extra.get("FLegalize")
        kept = (Constant, ShapeExpr, PrimValue, StringImm)
        is_constant = call.args and all(
            [isinstance(a, kept) or _is_constants(a) for a in call.args]
        )
        has_tensor = any([isinstance(a, Constant) or _is_constants(a) for a in call.args])
        if rule is None or not is_constant or not has_tensor or not op.extra.get("FPurity"):
            return call
        info = call.struct_info_ or self.builder_.infer(call)
        if not all([has_known_shape(i) for i in [info, *[a.struct_info for a in call.args]]]):
            return call
        call = cast("Call", self.builder_.normalize(call))
        local = BlockBuilder()
        local.begin_block(is_dataflow=False)
        made = rule(local, call)
        if local.end_block().bindings or not isinstance(made, Call):
            return made if isinstance(made, Constant) else call
        is_tir = isinstance(made.op, Op) and made.op.name == "relax.call_tir"
        if not is_tir or not isinstance(made.args[1], Tuple) or len(made.args) > 2:
            return call
        func = local.get()[made.args[0]]
        found = self._evaluate(func, made.args[1].fields, made.sinfo_args[0])
        return call if found is None else found


def _is_constants(arg: Any) -> bool:
    return isinstance(arg, Tuple) and all(
        [isinstance(f, (Constant, PrimValue)) for f in arg.fields]
    )


def fold_constant(mod: IRModule) -> IRModule:
    """The module with what depends on constants alone computed."""
    folder = _Folder(mod)

    def folded(_: GlobalVar, func: Any) -> Any:
        new = folder.visit_expr(func) if isinstance(func, Function) else func
        return func if new is func else remove_all_unused(new)

    return mod.map_functions(folded)


def FoldConstant() -> Pass:
    """Compute calls of constants."""
    return whole_module_pass("FoldConstant", fold_constant)
