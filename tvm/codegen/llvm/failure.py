"""Reports of failed assertions: a text, or a text with values that only the running program knows.

    assert n == 16, ("f: argument 0 needs shape[0] == 16, got ", n)

The values are formatted on the failing path, in one function a module shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm.ir.expr import PrimExpr
from tvm.tir.expr import Call, StringImm

from .types import TYPES

if TYPE_CHECKING:
    from .module import ModuleWriter
    from .statements import FunctionWriter

REPORT = "tvm.report"
MAX_VALUES = 4


def write_report(w: FunctionWriter, message: PrimExpr) -> None:
    """Set the runtime's last error."""
    if isinstance(message, Call):
        _report_values(w, message)
        return
    slot = w.module.context_slot("TVMAPISetLastError")
    report = w.code.value(f"load ptr, ptr {slot}, align 8")
    text = message.value if isinstance(message, StringImm) else str(message)
    w.code.do(f"call void {report}(ptr {w.module.string(text)})")


def _report_values(w: FunctionWriter, message: Call) -> None:
    pattern, operands = "", []
    for part in message.args:
        if isinstance(part, StringImm):
            pattern += part.value.replace("%", "%%")
        elif part.dtype.is_handle:
            pattern += "%s"
            operands.append(w.code.value(f"ptrtoint ptr {w.visit(part)} to i64"))
        else:
            pattern += "%lld"
            operands.append(_as_int64(w, part))
    operands += ["0"] * (MAX_VALUES - len(operands))
    _define_report(w.module)
    given = ", ".join([f"i64 {operand}" for operand in operands[:MAX_VALUES]])
    w.code.do(f"call void @{REPORT}(ptr {w.module.string(pattern)}, {given})")


def _as_int64(w: FunctionWriter, e: PrimExpr) -> str:
    value = str(w.visit(e))
    if e.dtype.bits == 64:
        return value
    extend = "sext" if e.dtype.is_int else "zext"
    return w.code.value(f"{extend} {TYPES[e.dtype].text} {value} to i64")


def _define_report(module: ModuleWriter) -> None:
    if REPORT in module.results:
        return
    module.results[REPORT] = "void"
    slot = module.context_slot("TVMAPISetLastError")
    module.definitions.append(f"""\
declare i32 @snprintf(ptr, i64, ptr, ...)
define internal void @{REPORT}(ptr %format, i64 %a, i64 %b, i64 %c, i64 %d) cold noinline nounwind {{
  %text = alloca [512 x i8], align 1
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %text, i64 512, ptr %format, i64 %a, i64 %b, i64 %c, i64 %d)
  %report = load ptr, ptr {slot}, align 8
  call void %report(ptr %text)
  ret void
}}
""")
