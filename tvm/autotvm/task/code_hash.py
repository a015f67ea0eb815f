"""A hash of a template's text, kept in schedules and records: it changes when the template does."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any
from zlib import crc32


def attach_code_hash(s: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a schedule the hash of the decorated function, which schedules it.

    Parameters
    ----------
    s : te.Schedule
        The schedule.
    """

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            result = func(*args, **kwargs)
            s.code_hash = _hash_of(func)
            return result

        return wrapped

    return decorate


def attach_code_hash_to_arg(
    arg_idx: int = 1,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give the schedule among the arguments the hash of the decorated function.

    Parameters
    ----------
    arg_idx : int
        Which argument is the schedule.
    """

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            result = func(*args, **kwargs)
            args[arg_idx].code_hash = _hash_of(func)
            return result

        return wrapped

    return decorate


def _hash_of(func: Callable[..., Any]) -> str:
    text = "".join(inspect.getsourcelines(func)[0])
    return f"{crc32(text.encode()):x}"
