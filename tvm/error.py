"""Errors: who requires what, where in the IR, a hint.

ScheduleError: vectorize needs a constant extent, got n * 4
  in stage C, axis i:
      for i in vectorized(n * 4):
  hint: split the axis first and vectorize the inner part
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, TypeVar, overload


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
    """

    def __init__(self, message: str = "", *rest: Any, at: Any = None, hint: str = "") -> None:
        super().__init__(message, *rest)
        self.at = at
        self.hint = hint
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
        return "\n".join(lines)


def _excerpt(node: Any, limit: int = 8) -> list[str]:
    lines = str(node).splitlines()
    return lines if len(lines) <= limit else [*lines[:limit], "..."]


def suggest(name: str, candidates: Iterable[str]) -> str:
    """A "did you mean" hint, or an empty text if nothing is near."""
    near = get_close_matches(name, [str(c) for c in candidates], n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(n) for n in near)}?" if near else ""


def or_near(name: str, candidates: Iterable[str]) -> str:
    """:func:`suggest` as the end of a sentence, for error classes that carry no hint."""
    near = suggest(name, candidates)
    return f"; {near}" if near else ""


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


class LoweringError(TVMError):
    """A program cannot be brought to the next stage."""


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
