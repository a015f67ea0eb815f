"""Move regions that run on a device into functions of their own.

    def f(A):                    ->    def f(A):
        for i in thread(...):              call f_kernel(A)
            ...                        def f_kernel(A): ...

A function that runs on the CPU alone is its own host function and is left as it is.
"""

from __future__ import annotations

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, BufferStore, Evaluate
from tvm.tir.transform.common import prim_func_pass


class RegionFinder(Visitor):
    """Finds the first statement that binds a thread of a device."""

    def __init__(self) -> None:
        self.found: AttrStmt | None = None

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        if attr.attr_key in ("thread_extent", "device_scope"):
            self.found = self.found or attr
        else:
            self.visit_children(attr)

    def visit_prim_expr(self, e: PrimExpr) -> None:
        """Expressions hold no statements."""

    def visit_buffer_store(self, store: BufferStore) -> None:
        """Stores hold no statements."""

    def visit_evaluate(self, stmt: Evaluate) -> None:
        """Evaluations hold no statements."""


@prim_func_pass("tir.AnnotateDeviceRegions")
def annotate_device_regions(func: PrimFunc) -> PrimFunc:
    """Check that the function has no region for a device: its target must be one to have some."""
    finder = RegionFinder()
    finder.visit(func.body)
    if finder.found is not None:
        target = func.get_attr("target")
        raise LoweringError(
            f"thread binding needs a device target, got {target}",
            at=finder.found,
            hint="use s[op].parallel(axis) on a CPU, or build for a GPU target",
        )
    return func


@prim_func_pass("tir.SplitHostDevice")
def split_host_device(func: PrimFunc) -> PrimFunc:
    """Functions of the CPU have nothing to split off."""
    return annotate_device_regions(func)


AnnotateDeviceRegions = annotate_device_regions.factory
SplitHostDevice = split_host_device.factory
