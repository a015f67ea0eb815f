"""Statements that a C function runs, such as one that runs them once for all calls.

attr coproc_uop_scope = "TVMBackendRunOnce":     ->    TVMBackendRunOnce(&handle, f_init, &captured, bytes)
    body

int f_init(captured*): body
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm.error import LoweringError
from tvm.tir.expr import StringImm
from tvm.tir.stmt import AttrStmt

from .code import Code
from .parallel import write_moved
from .types import quoted

if TYPE_CHECKING:
    from .statements import FunctionWriter

SCOPE = "coproc_uop_scope"  # attribute; its value names the function
_OF_THE_RUNTIME = "TVMBackendRunOnce"


def write_static_init(writer: FunctionWriter, stmt: AttrStmt) -> None:
    """Move the body to a function of its own, and give it to the one that is named."""
    if not isinstance(stmt.value, StringImm):
        raise LoweringError(f"{SCOPE} needs the name of a C function, got {stmt.value}", at=stmt)
    module, code, init = writer.module, writer.code, stmt.value.value
    name = module.new_symbol(f"{writer.name}_init")
    moved = Code(f"define internal i32 @{quoted(name)}(ptr %closure) #0")
    closure, type_ = write_moved(writer, stmt.body, name, moved, None)
    if init == _OF_THE_RUNTIME:
        function = code.value(f"load ptr, ptr {module.context_slot(init)}, align 8")
    else:
        function = f"@{quoted(init)}"
        module.declare(init, "i32", ["ptr", "ptr", "ptr", "i32"])
    size = f"ptrtoint (ptr getelementptr ({type_}, ptr null, i32 1) to i32)"
    given = f"ptr {module.static_handle()}, ptr @{quoted(name)}, ptr {closure}, i32 {size}"
    writer.return_if_failed(code.value(f"call i32 {function}({given})"))
