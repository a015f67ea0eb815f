"""``from tvm.script import ir as I``: the words of modules."""

from tvm.ir.expr import GlobalVar

from .parser.entry import ir_module
from .parser.functions import module_attrs

__all__ = ["GlobalVar", "ir_module", "module_attrs"]
