"""External functions that need memory for their work get one tensor, which all of them share.

def f(x): ... {"WorkspaceSize": 64}              def f(x, workspace): ...
main(x): y = f(x)                       ->       main(x): workspace = alloc_tensor((64,), "uint8")
                                                          y = f(x, workspace)
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.base import update_struct_info
from tvm.relax.expr import (
    BindingBlock,
    Call,
    DataTypeImm,
    Function,
    PrimValue,
    SeqExpr,
    StringImm,
    Var,
    VarBinding,
    relax_functions,
)
from tvm.relax.expr_functor import ExprMutator, ExprVisitor
from tvm.relax.struct_info import ShapeExpr, TensorStructInfo
from tvm.support.dtype import dtype as as_dtype

from .binding_rewriter import op_call
from .pass_kinds import whole_module_pass

_SIZE = "WorkspaceSize"


class _SizeFinder(ExprVisitor):
    """The largest workspace that a function or one inside it asks for."""

    def __init__(self) -> None:
        self.size = 0

    def visit_function_(self, op: Function) -> None:
        self.size = max(self.size, int(op.attrs.get(_SIZE, 0)))
        super().visit_function_(op)


def _size_of(func: Function) -> int:
    finder = _SizeFinder()
    finder.visit_expr(func)
    return finder.size


class _Taker(ExprMutator):
    """Adds the workspace to the parameters of functions that ask for one, and to calls of them."""

    def __init__(self, info: TensorStructInfo) -> None:
        super().__init__()
        self.info = info
        self.workspace: Var | None = None

    def visit_function_(self, op: Function) -> Any:
        if not _size_of(op):
            return super().visit_function_(op)
        outer, self.workspace = self.workspace, Var("workspace", self.info)
        params = [*op.params, self.workspace]
        body = self.visit_with_new_scope(op.body, params)
        self.workspace = outer
        return Function(params, body, op.ret_struct_info, op.is_pure, op.attrs, op.span)

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        value: Any = op.op
        if isinstance(value, Var):
            value = self.lookup_binding(self.get_var_remap(value.vid) or value)
        if self.workspace is not None and isinstance(value, Function) and _size_of(value):
            return Call(call.op, [*call.args, self.workspace], call.attrs, call.sinfo_args)
        return call


class _Giver(ExprMutator):
    """Allocates the workspace where a function calls those that take it."""

    def __init__(
        self, mod: IRModule, takers: dict[GlobalVar, None], info: TensorStructInfo
    ) -> None:
        super().__init__(mod)
        self.takers, self.info = takers, info
        self.workspace = Var("workspace", info)
        self.is_used = False

    def run(self, func: Function) -> Function:
        new: Function = self.visit_expr(func)
        if not self.is_used:
            return func
        assert isinstance(self.info.shape, ShapeExpr)
        args = (self.info.shape, DataTypeImm(self.info.dtype), PrimValue(0), StringImm("global"))
        made = op_call("relax.builtin.alloc_tensor", *args, info=self.info)
        block = BindingBlock([VarBinding(self.workspace, made)])
        seq = SeqExpr([block, *new.body.blocks], new.body.body)
        update_struct_info(seq, new.body.struct_info_)
        return new.replace(body=seq)

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        if call.op not in self.takers:
            return call
        self.is_used = True
        return Call(call.op, [*call.args, self.workspace], call.attrs, call.sinfo_args)


def allocate_workspace(mod: IRModule) -> IRModule:
    """The module with one workspace for all functions that ask for one."""
    sizes = {g: _size_of(f) for g, f in relax_functions(mod).items()}
    largest = max(sizes.values(), default=0)
    if not largest:
        return mod
    info = TensorStructInfo((largest,), as_dtype("uint8"))
    takers = {g: None for g, size in sizes.items() if size}
    new = mod.map_functions(
        lambda g, f: _Taker(info).visit_expr(f) if isinstance(f, Function) and g in takers else f
    )
    for gvar in takers:
        gvar.struct_info_ = new[gvar].struct_info_
    return new.map_functions(
        lambda g, f: (
            _Giver(new, takers, info).run(f) if isinstance(f, Function) and g not in takers else f
        )
    )


def AllocateWorkspace() -> Pass:
    """Allocate the memory that external functions ask for by the attribute ``WorkspaceSize``."""
    return whole_module_pass("AllocateWorkspace", allocate_workspace)


__all__ = ["AllocateWorkspace"]
