"""How much memory the tensors of functions take, before and after planning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relax.expr import Call, DataTypeImm, Function, relax_functions
from tvm.relax.struct_info import ShapeExpr
from tvm.tir.expr import IntImm

from .variables import bindings_of


@dataclass
class _Allocations:
    count: int = 0
    size: int = 0
    dynamic: int = 0

    def add(self, size: int | None) -> None:
        if size is None:
            self.dynamic += 1
            return
        self.count += 1
        self.size += size


def _constant_product(shape: Any) -> int | None:
    if not isinstance(shape, ShapeExpr):
        return None
    total = 1
    for extent in shape.values:
        if not isinstance(extent, IntImm):
            return None
        total *= extent.value
    return total


def _allocations(func: Function) -> tuple[_Allocations, _Allocations]:
    """Those of tensors one by one, and those that planning left."""
    tensors, planned = _Allocations(), _Allocations()
    for binding in bindings_of(func):
        value = binding.value
        if not isinstance(value, Call) or not isinstance(value.op, Op):
            continue
        if value.op.name == "relax.memory.alloc_storage":
            planned.add(_constant_product(value.args[0]))
            continue
        places = {"relax.builtin.alloc_tensor": (0, 1), "relax.memory.alloc_tensor": (2, 3)}
        if (place := places.get(value.op.name)) is None:
            continue
        elements, element = _constant_product(value.args[place[0]]), value.args[place[1]]
        assert isinstance(element, DataTypeImm)
        kind = element.value
        size = None if elements is None else elements * ((kind.bits * kind.lanes + 7) // 8)
        tensors.add(size)
        if place == (0, 1):
            planned.add(size)
    return tensors, planned


def _report(name: str, func: Function) -> str:
    tensors, planned = _allocations(func)
    if not (tensors.count or tensors.dynamic):
        return ""
    lines = [
        f" * Function {name}:",
        f"   - Without memory planning, there are {tensors.count} constant-size memory "
        f"allocation(s) with total size {tensors.size / 2**30:.4} GB.",
        f"   - With memory planning, there are {planned.count} constant-size memory "
        f"allocation(s) with total size {planned.size / 2**30:.4} GB.",
    ]
    if tensors.size:
        lines.append(
            "   - Memory planning reduces constant memory size to "
            f"{planned.size / tensors.size:.1%}."
        )
    if tensors.dynamic:
        lines.append(
            f"   - Without memory planning, there are {tensors.dynamic} dynamic memory "
            f"allocation(s); with it, {planned.dynamic}."
        )
    return "\n".join(lines) + "\n"


def estimate_memory_usage(mod: IRModule | Function) -> str:
    """What the tensors of a module's functions take, before and after ``StaticPlanBlockMemory``.

    Parameters
    ----------
    mod : IRModule or Function
        After that pass, and before ``LowerAllocTensor``.

    Returns
    -------
    str
        A few lines for each function that allocates tensors.
    """
    if isinstance(mod, Function):
        mod = IRModule.from_expr(mod)
    reports = [_report(g.name_hint, f) for g, f in relax_functions(mod).items()]
    text = "".join(reports)
    return "Memory usage estimation:\n" + text if text else ""
