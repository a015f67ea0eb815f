"""Nodes that can be written as TVMScript, ``script()`` and ``show()``, and how.

The printer stands in a layer above, see `extension.script`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from tvm import knobs
from tvm.error import suggest
from tvm.runtime.object import Object

from . import extension

# a notebook that holds more lines of programs answers slowly
LAST_LINE_IN_NOTEBOOKS = 400


class ShownInNotebooks:
    """What notebooks show as its text, in colour."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        lines = str(self).splitlines()
        shown = extension.script_html.required("\n".join(lines[:LAST_LINE_IN_NOTEBOOKS]))
        left = len(lines) - LAST_LINE_IN_NOTEBOOKS
        return f"{shown}<p>{left} more lines, which print shows</p>" if left > 0 else shown


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
        """Print :meth:`script`, in colour where the output is a terminal or a notebook.

        Parameters
        ----------
        style : str, optional
            ``"light"``, ``"dark"``, ``"ansi"`` or the name of a Pygments style.
        black_format : bool, optional
            Format the text with black; by default as the knob ``TVM_BLACK_FORMAT`` says.
        config : keyword arguments
            As of :meth:`script`.
        """
        formats = knobs.BLACK_FORMAT.value if black_format is None else black_format
        extension.print_script.required(self.script(**config), style, formats)


@dataclass(frozen=True, kw_only=True)
class PrinterConfig(Object):
    """How a script is written.

    Parameters
    ----------
    name : str, optional
        The function's name, by default its ``global_symbol``.
    show_meta : bool
        Whether what has no text of its own is given in a line above, as JSON.
    ir_prefix, tir_prefix, relax_prefix, module_alias : str
        What the languages and the module are called.
    buffer_dtype, int_dtype, float_dtype : str
        The data types that need not be written.
    verbose_expr : bool
        Whether the variables of an expression are defined in lines above it.
    indent_spaces : int
        How far bodies are indented.
    print_line_numbers : bool
        Whether lines start with their numbers.
    num_context_lines : int, optional
        How many lines are shown around underlined ones; negative: all of them.
    syntax_sugar : bool
        Whether ``T.grid``, ``T.axis.remap``, buffers as parameters and the like are used.
    show_object_address : bool
        Whether names tell the identity of what they name.
    show_all_struct_info : bool
        Whether relax's types are written where they can be inferred.
    path_to_underline, obj_to_underline : sequence, optional
        What to underline: by paths from the node that is printed, or the very objects.
    path_to_annotate, obj_to_annotate : dict, optional
        Comments for statements, by path or by object.
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
    ValueError
        If a prefix is no name.
    """
    known = [field.name for field in fields(PrinterConfig)]
    for name in options:
        if name not in known:
            raise TypeError(f"script has no option {name!r}; {suggest(name, known)}")
    config = PrinterConfig(**options)
    for name in ("ir_prefix", "tir_prefix", "relax_prefix", "module_alias"):
        if name == "module_alias" and config.module_alias == "":
            continue  # functions are named by the module
        if not getattr(config, name).isidentifier():
            raise ValueError(f"script requires an identifier as {name}, got {options[name]!r}")
    return config
