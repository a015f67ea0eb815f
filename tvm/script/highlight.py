"""Scripts in colour: in terminals by escape sequences, in notebooks as HTML."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from tvm import knobs
from tvm.support.notebook_line import in_notebook


def cprint(printable: Any, style: str | None = None, black_format: bool = False) -> None:
    """Print a script in colour.

    Without Pygments, or where the output is neither a terminal nor a notebook and no style is
    given, the plain text is printed.

    Parameters
    ----------
    printable : str or node
        A text, or what has a ``script`` method.
    style : str, optional
        ``"light"``, ``"dark"``, ``"ansi"`` or the name of a Pygments style; the knob
        ``TVM_PYGMENTS_STYLE`` by default.
    black_format : bool
        Format the text with black first, if that is installed.
    """
    text = printable
    if callable(method := getattr(printable, "script", None)):
        text = method()
    if not isinstance(text, str):
        raise TypeError(f"cprint requires a text or a node, got {type(printable).__name__}")
    if black_format:
        text = _formatted(text)
    wanted = style or knobs.PYGMENTS_STYLE.value
    is_notebook = in_notebook()
    if not wanted and (is_notebook or sys.stdout.isatty()):
        wanted = "light" if is_notebook else "ansi"
    if not wanted:
        print(text)
    elif is_notebook:
        _display(text, wanted)
    else:
        print(_coloured(text, wanted))


def _formatted(text: str) -> str:
    try:
        import black
    except ImportError:
        warnings.warn("black is required to format scripts: pip install black", stacklevel=3)
        return text
    try:
        return str(black.format_str(text, mode=black.FileMode(line_length=100))).rstrip("\n")
    except ValueError:  # a part of a program
        return text


def _pygments_style(name: str) -> Any:
    """A style of Pygments, or one of the three that scripts have of their own."""
    from pygments import styles
    from pygments.style import Style
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    tokens = (Keyword, Operator, Number, String, Comment, Name.Decorator, Name.Class, Name.Function)
    palettes = {
        "ansi": (
            "bold ansigreen", "ansimagenta", "ansigreen", "ansired", "italic ansicyan",
            "ansimagenta", "bold ansiblue", "bold ansiblue",
        ),
        "light": (
            "bold #008000", "bold #AA22FF", "#008000", "#BA2121", "italic #007979",
            "#AA22FF", "bold #0000FF", "#0000FF",
        ),
        "dark": (
            "bold #c586c0", "#c586c0", "#b5cea8", "#ce9178", "italic #6a9955",
            "#c586c0", "#4ec9b0", "#dcdcaa",
        ),
    }  # fmt: skip
    if name not in palettes:
        return styles.get_style_by_name(name)
    colours = dict(zip(tokens, palettes[name], strict=True))
    return type(f"{name.title()}Style", (Style,), {"styles": colours})


def _coloured(text: str, style: str) -> str:
    try:
        from pygments import highlight
        from pygments.formatters import Terminal256Formatter
        from pygments.lexers import PythonLexer
    except ImportError:
        _warn_of_missing_package()
        return text
    formatter = Terminal256Formatter(style=_pygments_style(style))
    return str(highlight(text, PythonLexer(), formatter))


def _display(text: str, style: str) -> None:
    try:
        from IPython.display import HTML, display
    except ImportError:
        _warn_of_missing_package()
        print(text)
        return
    display(HTML(as_html(text, style)))


def as_html(text: str, style: str | None = None) -> str:
    """A program as HTML that is safe in a page, in the colours of Python.

    Parameters
    ----------
    text : str
        TVMScript, or the text of relay.
    style : str, optional
        As of :func:`cprint`; ``"light"`` unless the knob ``TVM_PYGMENTS_STYLE`` says otherwise.

    Returns
    -------
    str
        An element ``div`` that needs no style sheet.
    """
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    wanted = style or knobs.PYGMENTS_STYLE.value or "light"
    formatter = HtmlFormatter(style=_pygments_style(wanted), noclasses=True)
    return str(highlight(text, PythonLexer(), formatter))


def _warn_of_missing_package() -> None:
    warnings.warn("Pygments is required to colour scripts: pip install Pygments", stacklevel=4)


__all__ = ["as_html", "cprint"]
