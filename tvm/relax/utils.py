"""Helpers of programs."""

from __future__ import annotations

from typing import Any

from .args_converter import args_converter
from .bind import copy_with_new_vars
from .expr import as_expr
from .te_call import gen_call_tir_inputs


def metadata_partitioner(rx_txt: str) -> list[str]:
    """The program and the metadata of a text, which ``script(show_meta=True)`` gave.

    Parameters
    ----------
    rx_txt : str

    Returns
    -------
    list of str
        The text of the program, then its metadata.
    """
    lines = rx_txt.split("\n")
    marks = [i for i, line in enumerate(lines) if line.startswith("metadata = ")]
    if not marks:
        return [rx_txt]
    start = marks[0]
    end = next((i for i in range(start, len(lines)) if '""")' in lines[i]), len(lines) - 1)
    program = "\n".join(lines[:start] + lines[end + 1 :])
    return [program, "\n".join(lines[start : end + 1])]


def convert_to_expr(value: Any) -> Any:
    """A value as an expression: numbers, texts, and sequences of such.

    Raises
    ------
    TypeError
        If it cannot.
    """
    return as_expr(value)


__all__ = [
    "args_converter",
    "convert_to_expr",
    "copy_with_new_vars",
    "gen_call_tir_inputs",
    "metadata_partitioner",
]
