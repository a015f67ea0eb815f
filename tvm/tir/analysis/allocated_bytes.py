"""How much memory a function allocates."""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.ir.visitor import Visitor
from tvm.tir.expr import Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AllocateConst


def calculate_allocated_bytes(
    func_or_mod: PrimFunc | IRModule,
) -> dict[str, int] | dict[str, dict[str, int]]:
    """The greatest number of bytes allocated at one time, by storage scope; for a module, by function."""
    if isinstance(func_or_mod, PrimFunc):
        return peaks(func_or_mod)
    return {
        gvar.name_hint: peaks(func)
        for gvar, func in func_or_mod.functions.items()
        if isinstance(func, PrimFunc)
    }


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int) -> int:
    """The greatest number of bytes of workspace, each allocation rounded up to the alignment."""
    counter = WorkspaceCounter(workspace_byte_alignment)
    counter.visit(func.body)
    return counter.peak.get("global", 0)


def calculate_constant_bytes(func: PrimFunc, constant_byte_alignment: int) -> int:
    """The bytes of all constants of a function, each rounded up to the alignment."""
    counter = ConstantCounter(constant_byte_alignment)
    counter.visit(func.body)
    return counter.total


def peaks(func: PrimFunc, alignment: int = 1) -> dict[str, int]:
    """The greatest number of bytes in use by storage scope."""
    counter = AllocationCounter(alignment)
    counter.visit(func.body)
    return counter.peak


class AllocationCounter(Visitor):
    """Adds allocations up on the way down. Those of variable size count as nothing."""

    def __init__(self, alignment: int) -> None:
        self.alignment = alignment
        self.in_use: dict[str, int] = {}
        self.peak: dict[str, int] = {}

    def visit_allocate(self, alloc: Allocate) -> None:
        nbytes = (alloc.constant_size() or 0) * alloc.dtype.itemsize
        scope = self.scope_of(alloc.buffer_var)
        size = rounded_up(nbytes, self.alignment)
        self.in_use[scope] = self.in_use.get(scope, 0) + size
        self.peak[scope] = max(self.peak.get(scope, 0), self.in_use[scope])
        self.visit_children(alloc)
        self.in_use[scope] -= size

    def scope_of(self, var: Var) -> str:
        """The scope that an allocation counts in."""
        return scope_of(var)


class WorkspaceCounter(AllocationCounter):
    """Takes workspace of executors and other global memory together."""

    def scope_of(self, var: Var) -> str:
        scope = scope_of(var)
        return "global" if scope == "global.workspace" else scope


class ConstantCounter(Visitor):
    """Adds up constants."""

    def __init__(self, alignment: int) -> None:
        self.alignment = alignment
        self.total = 0

    def visit_allocate_const(self, alloc: AllocateConst) -> None:
        nbytes = (alloc.constant_size() or 0) * alloc.dtype.itemsize
        self.total += rounded_up(nbytes, self.alignment)
        self.visit_children(alloc)


def scope_of(var: Var) -> str:
    """Where the memory of a pointer lies."""
    return getattr(var.type_annotation, "storage_scope", "") or "global"


def rounded_up(nbytes: int, alignment: int) -> int:
    """The next multiple of the alignment."""
    return -(-nbytes // alignment) * alignment
