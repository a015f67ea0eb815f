"""The names that a definition may use."""

from __future__ import annotations

from types import FrameType, FunctionType
from typing import Any

from .source import SourceText, closure_of, decorated_classes


def get_func_nonlocals(func: FunctionType) -> dict[str, Any]:
    """The variables of enclosing functions that a function uses."""
    return closure_of(func)


def locals_of(frame: FrameType) -> dict[str, Any]:
    """The variables of a function's frame; of a module's, none beside its globals."""
    return {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)


def inspect_function_capture(func: FunctionType, outer: FrameType | None = None) -> dict[str, Any]:
    """Globals, the scope around a function, its closure."""
    around = {} if outer is None else locals_of(outer)
    return {**func.__globals__, **around, **closure_of(func)}


def inspect_class_capture(cls: type, outer: FrameType) -> dict[str, Any]:
    """Globals, the scope around a class, the closures of its functions."""
    names = {**outer.f_globals, **locals_of(outer)}
    for value in vars(cls).values():
        if isinstance(value, FunctionType):
            names.update(closure_of(value))
    return names


def is_defined_in_class(source: SourceText, frame: FrameType) -> bool:
    """Whether a frame is the body of a class whose decorator reads it: ``ir_module``, ``rewriter``."""
    if "__qualname__" not in frame.f_locals:
        return False
    return frame.f_code.co_firstlineno in decorated_classes(source, "ir_module", "rewriter")


__all__ = [
    "get_func_nonlocals",
    "inspect_class_capture",
    "inspect_function_capture",
    "is_defined_in_class",
]
