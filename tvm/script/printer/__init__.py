"""TVMScript from nodes: ``node.script()``, ``str(node)``."""

from tvm._ffi.registry import register_func
from tvm.ir.module import IRModule
from tvm.ir.node import register_printer
from tvm.runtime.script_printer import (
    PrinterConfig,
    config_of,
    register_script_writer,
    script_with,
)
from tvm.tir.buffer import Buffer
from tvm.tir.expr import CommReducer, IterVar, PrimExprWithOp, Range
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BufferRegion, Stmt

from .function import script

__all__ = ["PrinterConfig", "script"]

register_script_writer(script)
for _kind in (PrimFunc, Stmt, PrimExprWithOp, Buffer, BufferRegion, IterVar, Range, IRModule,
              CommReducer):  # fmt: skip
    register_printer(_kind, script)

# a record of options from a mapping of them; the text of a node
register_func("node.PrinterConfig", lambda options: config_of(dict(options)), override=True)
register_func("node.TVMScriptPrinterScript", script_with, override=True)
