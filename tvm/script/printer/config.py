"""How a script is written."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from tvm.error import suggest


@dataclass(frozen=True)
class PrinterConfig:
    """The classic options; those that do nothing here are accepted.

    ``name`` is the function's name, by default its ``global_symbol``. ``buffer_dtype`` and
    ``int_dtype`` are the data types that need not be written.
    """

    name: str | None = None
    show_meta: bool = False
    ir_prefix: str = "I"
    tir_prefix: str = "T"
    relax_prefix: str = "R"
    module_alias: str = "cls"
    buffer_dtype: str = "float32"
    int_dtype: str = "int32"
    float_dtype: str = "void"
    verbose_expr: bool = False
    indent_spaces: int = 4
    print_line_numbers: bool = False
    num_context_lines: int | None = -1
    syntax_sugar: bool = True
    show_object_address: bool = False
    show_all_struct_info: bool = True
    path_to_underline: Any = None
    path_to_annotate: Any = None
    obj_to_underline: Any = None
    obj_to_annotate: Any = None


def config_of(options: dict[str, Any]) -> PrinterConfig:
    """The options as a record.

    Raises
    ------
    TypeError
        If there is no such option.
    """
    known = [field.name for field in fields(PrinterConfig)]
    for name in options:
        if name not in known:
            raise TypeError(f"script has no option {name!r}; {suggest(name, known)}")
    return PrinterConfig(**options)
