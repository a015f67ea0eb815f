"""Nodes that can be written as TVMScript, ``script()`` and ``show()``, and how.

The printer stands in a layer above, see `extension.script`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from tvm.error import suggest
from tvm.runtime.object import Object

from . import extension


class Scriptable:
    """What can be printed as a script that the parser reads back."""

    __slots__ = ()

    def script(self, **config: Any) -> str:
        """The text of this node in TVMScript.

        Parameters
        ----------
        config : keyword arguments
            Such as ``name`` (of a function), ``tir_prefix``, ``ir_prefix``, ``module_alias``,
            ``indent_spaces``, ``syntax_sugar``, ``print_line_numbers``.
        """
        writer = extension.script.function
        return repr(self) if writer is None else writer(self, **config)

    def show(
        self, style: str | None = None, black_format: bool | None = None, **config: Any
    ) -> None:
        """Print :meth:`script`.

        Parameters
        ----------
        style : str, optional
            Accepted for compatibility, as ``black_format`` is; the text is printed plainly.
        config : keyword arguments
            As of :meth:`script`.
        """
        del style, black_format
        print(self.script(**config))


@dataclass(frozen=True, kw_only=True)
class PrinterConfig(Object):
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


def script_with(node: Scriptable, config: PrinterConfig | None = None) -> str:
    """The text of a node with the options of a record."""
    options = {} if config is None else {f.name: getattr(config, f.name) for f in fields(config)}
    return node.script(**options)


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
