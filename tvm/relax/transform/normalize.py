"""Normal form, and names of functions.

y = exp(add(x, x))    ->    gv = add(x, x); y = exp(gv)
"""

from __future__ import annotations

from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Function
from tvm.relax.global_names import with_symbol_names

from .pass_kinds import relax_pass, whole_module_pass


def normalize(func: Function, mod: IRModule) -> Function:
    """The function in normal form, with struct info."""
    found = BlockBuilder(mod).normalize(func)
    assert isinstance(found, Function)
    return found


def Normalize() -> Pass:
    """Bring functions into normal form: arguments are bound, struct info is known."""
    return relax_pass("Normalize", normalize, 1)


def NormalizeGlobalVar() -> Pass:
    """Let public functions have the name of their ``global_symbol``."""
    return whole_module_pass("NormalizeGlobalVar", with_symbol_names)
