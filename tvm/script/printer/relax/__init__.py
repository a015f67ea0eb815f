"""How relax programs are written."""

from __future__ import annotations

from tvm.ir import extension
from tvm.ir.type import Type
from tvm.relax import expr as rx
from tvm.relax.base import ExprWithOp, StructInfo

from ..script import script
from . import binding, expression, function, struct_info

__all__ = ["binding", "expression", "function", "struct_info"]

for _kind in (StructInfo, ExprWithOp, rx.Binding, rx.BindingBlock, rx.Function, rx.ExternFunc):
    extension.printer.provide(_kind, script)
for _type in struct_info.TYPES:
    extension.printer.provide(_type, script)


def _relax_script(kind: Type) -> str:
    """A type that relay has too, in relax's words."""
    return struct_info.type_text(kind)


setattr(Type, "_relax_script", _relax_script)  # noqa: B010 - relax adds it to all types
