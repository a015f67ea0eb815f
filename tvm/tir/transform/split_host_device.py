"""Move regions that run on a device into functions of their own.

    def f(A):                    ->    def f(A):
        attr(target, "target"):            call f_kernel(A, n)
            ... n ...                  def f_kernel(A, n): ...

A function that runs on the CPU alone is its own host function and is left as it is.
"""

from __future__ import annotations

from typing import Any

from tvm.error import LoweringError
from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.supply import GlobalVarSupply
from tvm.ir.transform import ModulePass, PassInfo
from tvm.ir.visitor import Rewriter
from tvm.tir.builtin import VOID
from tvm.tir.expr import Call, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, BufferStore, Evaluate, Stmt
from tvm.tir.stmt_functor import free_vars, renew_defs
from tvm.tir.transform.common import prim_func_pass

REGION_KEYS = ("thread_extent", "pipeline_exec_scope", "device_scope")


class RegionAnnotator(Rewriter):
    """Puts the device's target around the outermost statements that run there."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == "target":
            return attr
        if attr.attr_key not in REGION_KEYS:
            return self.rewrite_children(attr)
        if self.target is None or self.target.runs_on_processor:
            raise LoweringError(
                f"thread binding needs a device target, got {self.target}",
                at=attr,
                hint="use s[op].parallel(axis) on a CPU, or build for a GPU target",
            )
        return AttrStmt(self.target.replace(host=None), "target", const(0, "int32"), attr)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        return store

    def visit_evaluate(self, stmt: Evaluate) -> Stmt:
        return stmt


class RegionSplitter(Rewriter):
    """Replaces regions by calls, and keeps the functions."""

    def __init__(self, name: str, names: GlobalVarSupply) -> None:
        self.name = name
        self.names = names
        self.kernels: dict[GlobalVar, PrimFunc] = {}

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key != "target":
            return self.rewrite_children(attr)
        params = sorted(free_vars(attr.body), key=lambda var: not var.dtype.is_handle)
        kernel = PrimFunc(params, attr.body).with_attrs({"target": attr.node, "tir.noalias": True})
        gvar = self.names.fresh_global(f"{self.name}_kernel", add_prefix=False)
        self.kernels[gvar] = renew_defs(kernel)
        return Evaluate(Call(VOID, gvar, params))

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e


@prim_func_pass("tir.AnnotateDeviceRegions")
def annotate_device_regions(func: PrimFunc) -> PrimFunc:
    """Mark the regions of a function that run on its target's device."""
    return func.with_body(RegionAnnotator(func.get_attr("target")).visit(func.body))


def split_host_device(mod: IRModule, _: PassContext) -> IRModule:
    """Make functions of the regions that are marked with a target."""
    names = GlobalVarSupply(mod)
    functions: dict[Any, Any] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, PrimFunc):
            splitter = RegionSplitter(gvar.name_hint, names)
            func = func.with_body(splitter.visit(func.body))
            functions |= splitter.kernels
        functions[gvar] = func
    return mod.with_functions(functions)


AnnotateDeviceRegions = annotate_device_regions.factory


_SPLIT_HOST_DEVICE = PassInfo(0, "tir.SplitHostDevice")


def SplitHostDevice() -> ModulePass:
    """The pass."""
    return ModulePass(split_host_device, _SPLIT_HOST_DEVICE)
