"""What tests of static memory planning ask of a module."""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.tir.builtin import TVMBackendAllocWorkspace
from tvm.tir.expr import Call
from tvm.tir.function import PrimFunc
from tvm.tir.stmt_functor import post_order_visit

_ALLOCATES = TVMBackendAllocWorkspace.__name__


def is_tvm_backendallocworkspace_calls(mod: IRModule) -> bool:
    """Whether a function of the module allocates memory while it runs."""
    found = []

    def look(node: object) -> None:
        if isinstance(node, Call):
            names = [str(getattr(node.op, "name", "")), *[str(arg) for arg in node.args[:1]]]
            found.append(any(_ALLOCATES in name for name in names))

    for func in mod.functions.values():
        if isinstance(func, PrimFunc):
            post_order_visit(func.body, look)
    return any(found)
