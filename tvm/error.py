"""Errors: who requires what, where in the IR, a hint.

ScheduleError: vectorize needs a constant extent, got n * 4
  in stage C, axis i:
      for i in vectorized(n * 4):
  hint: split the axis first and vectorize the inner part
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from typing import Any, TypeVar, overload

DISTRIBUTION = "classic-tvm"  # the name that pip knows; the package is imported as tvm


class TVMError(RuntimeError):
    """The base of all errors of this package.

    Parameters
    ----------
    message : str
        Who requires what, and what was found.
    at : node, optional
        The place, shown as IR text.
    hint : str, optional
        What to do about it.
    classic : str, optional
        The classic release's text of this error, which programs and search engines look for.
    """

    def __init__(
        self, message: str = "", *rest: Any, at: Any = None, hint: str = "", classic: str = ""
    ) -> None:
        super().__init__(message, *rest)
        self.at = at
        self.hint = hint
        self.classic = classic
        self.context: list[str] = []

    def add_context(self, line: str) -> TVMError:
        """Add one line on the way up: the pass, the function, the stage."""
        if line not in self.context:
            self.context.append(line)
        return self

    def __str__(self) -> str:
        lines = [super().__str__()]
        if self.context:
            lines.append(f"  in {', '.join(self.context)}")
        if self.at is not None:
            lines += [f"      {line}" for line in _excerpt(self.at)]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        if self.classic:
            lines.append(f"  in TVM 0.18: {self.classic}")
        return "\n".join(lines)


def _excerpt(node: Any, limit: int = 8) -> list[str]:
    lines = str(node).splitlines()
    return lines if len(lines) <= limit else [*lines[:limit], "..."]


def suggest(name: str, candidates: Iterable[str]) -> str:
    """A "did you mean" hint, or an empty text if nothing is similar."""
    similar = similar_names(name, candidates)[:3]
    return f"did you mean {' or '.join(repr(n) for n in similar)}?" if similar else ""


def similar_names(name: str, candidates: Iterable[str]) -> list[str]:
    """The candidates that a misspelt or incomplete ``name`` may stand for, the most similar first.

    Similar are names that differ in case and separators only, by one letter (or two that changed
    places), by few letters of a long name, and names of which at most the second half is missing.
    """
    words = _words(name)
    scored = [(_similarity(words, _words(text)), text) for text in map(str, candidates)]
    similar = [(score, text) for score, text in dict.fromkeys(scored) if score >= _SIMILAR]
    return [text for _, text in sorted(similar, key=lambda item: -item[0])]


_SIMILAR = 0.8  # of letters that two names have in common, in order
_SHORTEST = 3  # one letter in fewer would be similar to nearly everything


def _words(name: str) -> list[str]:
    """The parts of a dotted name, without case and separators."""
    parts = [re.sub(r"[\W_]+", "", part) for part in re.split(r"[.:/]+", name.casefold())]
    return [part for part in parts if part] or [name]


def _similarity(words: list[str], others: list[str]) -> float:
    """The likeness of two dotted names: of their most different parts, if they have as many."""
    if len(words) != len(others):
        return _likeness("".join(words), "".join(others))
    return min([_likeness(word, other) for word, other in zip(words, others, strict=True)])


def _likeness(word: str, other: str) -> float:
    """1 for the same name, and less the more they differ."""
    if word == other:
        return 1.0
    if min(len(word), len(other)) < _SHORTEST:
        has_one_more = word[:-1] == other or word == other[:-1]
        return _SIMILAR if has_one_more else 0.0
    if other.startswith(word) and 2 * len(word) >= len(other):
        return max(_SIMILAR, 2 * len(word) / (len(word) + len(other)))
    matcher = SequenceMatcher(None, word, other, autojunk=False)
    if matcher.real_quick_ratio() < _SIMILAR and abs(len(word) - len(other)) > 1:
        return 0.0
    return max(matcher.ratio(), _SIMILAR if _is_one_edit(word, other) else 0.0)


def _is_one_edit(word: str, other: str) -> bool:
    """Whether one letter is missing, too many or another one, or two neighbours changed places."""
    same = 0
    while same < min(len(word), len(other)) and word[same] == other[same]:
        same += 1
    rest, wanted = word[same:], other[same:]
    swapped = rest[1:2] + rest[:1] + rest[2:]
    return wanted in (rest[1:], swapped) or rest == wanted[1:] or rest[1:] == wanted[1:]


def install_hint(extra: str) -> str:
    """What installs the packages of an extra of this package (quoted, for shells that expand [])."""
    return f'pip install "{DISTRIBUTION}[{extra}]"'


def or_similar(name: str, candidates: Iterable[str]) -> str:
    """:func:`suggest` as the end of a sentence, for error classes that carry no hint."""
    similar = suggest(name, candidates)
    return f"; {similar}" if similar else ""


class InternalError(TVMError):
    """A promise of ours was broken: please report it."""


class RPCError(TVMError):
    """The remote side failed."""


class RPCSessionTimeoutError(RPCError, TimeoutError):
    """The remote side did not answer in time."""


class RuntimeValueError(TVMError, ValueError):
    """The runtime or compiled code was given a value that does not fit."""


class RuntimeTypeError(TVMError, TypeError):
    """The runtime or compiled code was given something of another type."""


class RuntimeIndexError(TVMError, IndexError):
    """The runtime was given an index out of range."""


class RuntimeAttributeError(TVMError, AttributeError):
    """The runtime was asked for a name that is not there."""


class OpError(TVMError):
    """An operator cannot be handled."""


class OpNotImplemented(OpError, NotImplementedError):
    """An operator is not there."""


class OpNotFound(OpNotImplemented, AttributeError):
    """No operator has the name."""


class OpAttributeRequired(OpError, AttributeError):
    """An operator lacks an attribute."""


class OpAttributeInvalid(OpError, AttributeError):
    """An operator's attribute has a bad value."""


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An operator's attribute value is not handled."""


class DiagnosticError(TVMError):
    """A program is wrong; the text shows where."""

    # the place in the user's source text, if the program came from one
    span: Any = None
    # whether a renderer of the user's has shown it
    is_reported = False


class TypeCheckError(DiagnosticError, TypeError):
    """Types do not fit."""


class ScheduleError(TVMError):
    """A schedule primitive cannot be applied."""


class VectorizeError(ScheduleError, InternalError):
    """A loop cannot be vectorized; an internal error by its classic class."""


class LoweringError(TVMError):
    """A program cannot be brought to the next stage."""


class IllFormedError(LoweringError, ValueError):
    """A program breaks a rule that every stage relies on."""


class ImpureFunctionError(LoweringError, AssertionError):
    """A function that must be pure has an effect."""


E = TypeVar("E", bound=type[BaseException])

ERROR_TYPE: dict[str, type[BaseException]] = {}


@overload
def register_error(func_name: str, cls: E) -> E: ...
@overload
def register_error(func_name: str) -> Callable[[E], E]: ...
@overload
def register_error(func_name: E) -> E: ...


def register_error(func_name: Any = None, cls: Any = None) -> Any:
    """Let native errors whose text starts with ``name:`` be raised as the class.

    Used as a decorator, with or without a name, or called with a name and the class.
    """
    if isinstance(func_name, type):
        ERROR_TYPE[func_name.__name__] = func_name
        return func_name

    def register(error_class: E) -> E:
        ERROR_TYPE[func_name or error_class.__name__] = error_class
        return error_class

    return register if cls is None else register(cls)
