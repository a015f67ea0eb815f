"""TVMScript from nodes: ``node.script()``, ``str(node)``."""

from tvm._ffi.registry import register_func
from tvm.ir import extension
from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.ir.script_printer import (
    PrinterConfig,
    config_of,
    script_with,
)
from tvm.tir.buffer import Buffer
from tvm.tir.expr import CommReducer, IterVar, PrimExprWithOp, Range
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BufferRegion, MatchBufferRegion, Stmt

from ..highlight import as_html, cprint
from . import module, values
from .script import script
from .tir import block, buffer, expr, function, stmt

__all__ = [
    "PrinterConfig", "block", "buffer", "expr", "function", "module", "script", "stmt", "values",
]  # fmt: skip

extension.script.provide(script)
extension.print_script.provide(cprint)
extension.script_html.provide(as_html)
for _kind in (PrimFunc, Stmt, PrimExprWithOp, Buffer, BufferRegion, MatchBufferRegion, IterVar,
              Range, IRModule, CommReducer, GlobalVar):  # fmt: skip
    extension.printer.provide(_kind, script)

# a record of options from a mapping of them; the text of a node
register_func("node.PrinterConfig", lambda options: config_of(dict(options)), override=True)
register_func("node.TVMScriptPrinterScript", script_with, override=True)
