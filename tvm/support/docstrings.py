"""Parameters that several functions have are described once.

@described_by(dense)
def dense_pack(data, weight, columns):
    '''A dense layer with a packed weight.

    Parameters
    ----------
    columns : int
        The width of a panel.
    '''

help(dense_pack)      # data and weight too, as of `dense`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import cleandoc, signature
from textwrap import indent
from types import MappingProxyType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_HEAD = "Parameters\n----------\n"
# names, perhaps a type, and the indented lines below
_ENTRY = re.compile(r"^(\w+(?:, \w+)*)( *:.*)?\n((?:[ ]+\S.*(?:\n|$))+)", re.MULTILINE)
_RETURNS = re.compile(r"^(?:Returns|Yields)\n-+$", re.MULTILINE)
_SECTION = re.compile(r"^\w+\n-+$", re.MULTILINE)


def described_by(
    *sources: Callable[..., Any], types: Mapping[str, str] = MappingProxyType({})
) -> Callable[[F], F]:
    """Describe the parameters that a docstring leaves out as the docstrings of other functions do.

    Parameters
    ----------
    sources
        The other functions; the first that describes a parameter counts.
    types : mapping
        Names of types there, and what they are here.
    """

    def complete(function: F) -> F:
        if function.__doc__ is not None:  # under -OO there are none
            texts = [cleandoc(source.__doc__ or "") for source in sources]
            for theirs, here in types.items():
                texts = [text.replace(theirs, here) for text in texts]
            names = list(signature(function).parameters)
            function.__doc__ = _completed(cleandoc(function.__doc__), names, texts)
        return function

    return complete


def returns(kind: str, what: str | None) -> Callable[[F], F]:
    """Add what a function returns to a docstring that does not say so.

    Parameters
    ----------
    kind : str
        The type.
    what : str, optional
        What it is; without it nothing is added.
    """

    def complete(function: F) -> F:
        if function.__doc__ is not None and what:
            doc = cleandoc(function.__doc__)
            if not _RETURNS.search(doc):
                text = indent(cleandoc(what), "    ")
                before, own, after = _sections(doc)
                section = f"Returns\n-------\n{kind}\n{text}"
                params = _HEAD + own.strip("\n") if own else ""
                parts = [before.strip(), params, section, after.strip()]
                function.__doc__ = "\n\n".join([part for part in parts if part]) + "\n"
        return function

    return complete


def _completed(doc: str, names: Sequence[str], sources: Sequence[str]) -> str:
    before, own, after = _sections(doc)
    entries: dict[str, str] = {}
    described: set[str] = set()
    for i, text in enumerate([own, *[_sections(source)[1] for source in sources]]):
        for match in _ENTRY.finditer(text):
            theirs = match[1].split(", ")
            missing = [n for n in theirs if i == 0 or (n in names and n not in described)]
            if missing:
                described.update(missing)
                title = f"{', '.join(missing)}{match[2] or ''}"
                entries[missing[0]] = f"{title}\n{match[3].rstrip()}\n"
    order = sorted(entries, key=lambda name: names.index(name) if name in names else len(names))
    section = _HEAD + "".join([entries[name] for name in order]) if entries else ""
    return "\n\n".join([part.strip() for part in (before, section, after) if part.strip()]) + "\n"


def _sections(doc: str) -> tuple[str, str, str]:
    """What stands before the parameters, their entries, and the sections behind them."""
    before, head, rest = doc.partition(_HEAD)
    text = rest if head else before
    section = _SECTION.search(text)
    end = section.start() if section else len(text)
    return (before, rest[:end], rest[end:]) if head else (before[:end], "", before[end:])
