"""A decorator that checks the arguments of a function against its annotations.

@type_checked
def split(loop: LoopRV, factors: List[Optional[int]]) -> None: ...

split(loop, [1.5])      # TypeError: split requires factors[0] of type int or None, got a float
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import numbers
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tvm.error import RuntimeTypeError
from tvm.tir.expr import IntImm

F = TypeVar("F", bound=Callable[..., Any])

_SEQUENCES = (list, collections.abc.Sequence, collections.abc.Iterable)
_MAPPINGS = (dict, collections.abc.Mapping)


def type_checked(func: F) -> F:
    """The function, which raises TypeError for an argument of another type than its annotation."""
    signature = inspect.signature(func)
    hints: dict[str, Any] = {}

    @functools.wraps(func)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not hints:
            hints.update(typing.get_type_hints(func))
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return func(*args, **kwargs)  # Python says what is missing, and of which function
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].kind
            if name not in hints:
                continue
            if kind is inspect.Parameter.VAR_POSITIONAL:
                found = _first(
                    [_mismatch(f"{name}[{i}]", v, hints[name]) for i, v in enumerate(value)]
                )
            elif kind is inspect.Parameter.VAR_KEYWORD:
                found = _first([_mismatch(key, v, hints[name]) for key, v in value.items()])
            else:
                found = _mismatch(name, value, hints[name])
            if found is not None:
                place, expected, actual = found
                raise RuntimeTypeError(
                    f"{func.__qualname__} requires {place} of type {_text(expected)}, "
                    f"got a {type(actual).__name__}"
                )
        return func(*args, **kwargs)

    return typing.cast(F, checked)


Mismatch = tuple[str, Any, Any]  # where, the annotation, the value


def _first(found: Sequence[Mismatch | None]) -> Mismatch | None:
    return next((mismatch for mismatch in found if mismatch is not None), None)


def _mismatch(place: str, value: Any, expected: Any) -> Mismatch | None:
    """The first part of a value that is not what the annotation says; None if there is none."""
    origin, args = typing.get_origin(expected), typing.get_args(expected)
    if expected is Any or isinstance(expected, TypeVar):
        return None
    if expected is None or expected is type(None):
        return None if value is None else (place, expected, value)
    if origin in (typing.Union, types.UnionType):
        tried = [_mismatch(place, value, arg) for arg in args]
        return None if None in tried else (place, expected, value)
    if origin in _SEQUENCES:
        if isinstance(value, str) or not isinstance(value, collections.abc.Sequence):
            return place, expected, value
        return _first([_mismatch(f"{place}[{i}]", item, args[0]) for i, item in enumerate(value)])
    if origin in _MAPPINGS:
        if not isinstance(value, collections.abc.Mapping):
            return place, expected, value
        keys = [_mismatch(f"a key of {place}", key, args[0]) for key in value]
        return _first(
            [*keys, *[_mismatch(f"{place}[{k!r}]", item, args[1]) for k, item in value.items()]]
        )
    if origin is tuple:
        return _tuple_mismatch(place, value, expected, args)
    if origin is collections.abc.Callable or expected is typing.Callable:
        return None if callable(value) else (place, expected, value)
    kind = origin or expected
    is_right = not isinstance(kind, type) or isinstance(value, kind) or _is_number(value, kind)
    return None if is_right else (place, expected, value)


def _is_number(value: Any, kind: Any) -> bool:
    """Whether a value of another class is as good as a Python number: of numpy, or a constant expression."""
    if kind in (int, bool):
        return hasattr(type(value), "__index__") or type(value) is IntImm
    return kind is float and isinstance(value, numbers.Real)


def _tuple_mismatch(
    place: str, value: Any, expected: Any, args: tuple[Any, ...]
) -> Mismatch | None:
    is_sequence = isinstance(value, collections.abc.Sequence) and not isinstance(value, str)
    if not is_sequence:
        return place, expected, value
    kinds = [args[0]] * len(value) if args[1:] == (...,) else list(args)
    if len(kinds) != len(value):
        return place, expected, value
    pairs = zip(value, kinds, strict=True)
    return _first([_mismatch(f"{place}[{i}]", item, kind) for i, (item, kind) in enumerate(pairs)])


def _text(expected: Any) -> str:
    if typing.get_origin(expected) in (typing.Union, types.UnionType):
        return " or ".join([_text(arg) for arg in typing.get_args(expected)])
    if expected is type(None) or expected is None:
        return "None"
    if typing.get_origin(expected) is None and isinstance(expected, type):
        return expected.__name__
    return str(expected).replace("typing.", "")
