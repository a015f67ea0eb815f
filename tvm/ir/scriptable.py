"""Nodes that can be written as TVMScript: ``script()`` and ``show()``.

The printer stands in a layer above and registers itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_WRITERS: list[Callable[..., str]] = []


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
        return _WRITERS[-1](self, **config) if _WRITERS else repr(self)

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


def register_script_writer(writer: Callable[..., str]) -> None:
    """Tell how :meth:`Scriptable.script` writes nodes."""
    _WRITERS[:] = [writer]
