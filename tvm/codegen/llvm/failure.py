"""Reports of failed assertions: a text, or a text with values that only the running program knows.

    assert n == 16, ("f: argument 0 needs shape[0] == 16, got ", n)

The values are formatted on the failing path, in one function a module shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tvm.ir.expr import PrimExpr
from tvm.tir.expr import EQ, Call, IntImm, StringImm
from tvm.tir.intrinsics import INTRINSICS

from .types import TYPES, is_constant

if TYPE_CHECKING:
    from .module import ModuleWriter
    from .statements import FunctionWriter

REPORT = "tvm.report"
IF_THEN_ELSE = INTRINSICS["if_then_else"]
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
    pattern, operands = format_of(
        message,
        w.module.options.word_format,
        lambda part: w.code.value(f"ptrtoint ptr {_text(w, part)} to i64"),
        lambda part: _as_int64(w, part),
    )
    operands += ["0"] * (MAX_VALUES - len(operands))
    define_report(w.module)
    word = w.module.options.word
    given = ", ".join([f"{word} {_as_word(w, o)}" for o in operands[:MAX_VALUES]])
    w.code.do(f"call void @{REPORT}(ptr {w.module.string(pattern)}, {given})")


def format_of(
    message: Call,
    number_format: str,
    text: Callable[[PrimExpr], str],
    number: Callable[[PrimExpr], str],
) -> tuple[str, list[str]]:
    """A message as a pattern of ``printf`` and what stands for its values, texts and numbers."""
    pattern, operands = "", []
    for part in message.args:
        if isinstance(part, StringImm):
            pattern += part.value.replace("%", "%%")
        elif part.dtype.is_handle:
            pattern += "%s"
            operands.append(text(part))
        else:
            pattern += number_format
            operands.append(number(part))
    return pattern, operands


def _text(w: FunctionWriter, part: PrimExpr) -> str:
    """A pointer to a text; one that depends on a number comes from a function the module shares."""
    names, number = text_choices(part)
    if number is None:
        return str(w.visit(part))
    *cases, (_, other) = names
    known = {value: text for value, text in cases if value is not None}
    symbol = name_function(w.module, known, other)
    return w.code.value(f"call ptr @{symbol}(i64 {_as_int64(w, number)})")


def text_choices(part: PrimExpr) -> tuple[list[tuple[int | None, str]], PrimExpr | None]:
    """The strings of ``if_then_else(number == 3, "three", if_then_else(...))``, and the number."""
    names: list[tuple[int | None, str]] = []
    number: PrimExpr | None = None
    while isinstance(part, Call) and part.op is IF_THEN_ELSE:
        test, text, part = part.args
        if not (
            isinstance(test, EQ) and isinstance(test.b, IntImm) and isinstance(text, StringImm)
        ):
            return [], None
        number = test.a
        names.append((test.b.value, text.value))
    if number is None or not isinstance(part, StringImm):
        return [], None
    return [*names, (None, part.value)], number


def name_function(module: ModuleWriter, names: Mapping[int, str], other: str) -> str:
    """The symbol of a function from a number to its name; equal ones are written once."""
    key = "|".join([*[f"{value}={text}" for value, text in names.items()], other])
    found = module.name_functions.get(key)
    if found is None:
        found = module.name_functions[key] = f"tvm.name.{len(module.name_functions)}"
        module.helpers.append(_name_definition(module, found, names, other))
    return found


def _name_definition(
    module: ModuleWriter, symbol: str, names: Mapping[int, str], other: str
) -> str:
    targets = " ".join([f"i64 {value}, label %c{i}" for i, value in enumerate(names)])
    texts = [f"c{i}:\n  ret ptr {module.string(text)}" for i, text in enumerate(names.values())]
    return "\n".join(
        [
            f"define internal ptr @{symbol}(i64 %number) cold noinline nounwind {{",
            f"  switch i64 %number, label %other [ {targets} ]",
            *texts,
            f"other:\n  ret ptr {module.string(other)}",
            "}",
            "",
        ]
    )


def _as_int64(w: FunctionWriter, e: PrimExpr) -> str:
    value = str(w.visit(e))
    if e.dtype.bits == 64:
        return value
    extend = "sext" if e.dtype.is_int else "zext"
    return w.code.value(f"{extend} {TYPES[e.dtype].text} {value} to i64")


def _as_word(w: FunctionWriter, operand: str) -> str:
    word = w.module.options.word
    if word == "i64" or is_constant(operand):
        return operand
    return w.code.value(f"trunc i64 {operand} to {word}")


def define_report(module: ModuleWriter) -> None:
    """Write the function that formats a message of up to four values, once a module."""
    if REPORT in module.results:
        return
    module.results[REPORT] = "void"
    slot = module.context_slot("TVMAPISetLastError")
    # strings and numbers are passed alike, as words of the size of a pointer
    word = module.options.word
    params = ", ".join([f"{word} %{name}" for name in "abcd"])
    module.helpers.append(f"""\
declare i32 @snprintf(ptr, {word}, ptr, ...)
define internal void @{REPORT}(ptr %format, {params}) cold noinline nounwind {{
  %text = alloca [512 x i8], align 1
  call i32 (ptr, {word}, ptr, ...) @snprintf(ptr %text, {word} 512, ptr %format, {params})
  %report = load ptr, ptr {slot}, align 8
  call void %report(ptr %text)
  ret void
}}
""")
