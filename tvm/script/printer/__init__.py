"""TVMScript from nodes: ``node.script()``, ``str(node)``."""

from tvm.ir.module import IRModule
from tvm.ir.node import register_printer
from tvm.ir.scriptable import register_script_writer
from tvm.tir.buffer import Buffer
from tvm.tir.expr import CommReducer, IterVar, PrimExprWithOp, Range
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import BufferRegion, Stmt

from .config import PrinterConfig
from .function import script

__all__ = ["PrinterConfig", "script"]

register_script_writer(script)
for _kind in (PrimFunc, Stmt, PrimExprWithOp, Buffer, BufferRegion, IterVar, Range, IRModule,
              CommReducer):  # fmt: skip
    register_printer(_kind, script)
