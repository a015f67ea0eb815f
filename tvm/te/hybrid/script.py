"""The decorator of hybrid scripts."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.support.scope import deep
from tvm.tir.expr import IterVar

from ..tensor import Tensor
from .error import HybridError
from .parser import Source, parse_function
from .runtime import HYBRID_GLOBALS

__all__ = ["HybridError", "script"]


def script(pyfunc: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of the hybrid subset of Python build an operation.

    Called with tensors it returns the tensors that it computes; with arrays, it runs in Python.

    In the subset are: loops over ``range``, ``serial``, ``parallel``, ``vectorize``, ``unroll``,
    ``bind`` and ``const_range``; ``allocate`` and ``output_tensor``; assignments to elements and to
    scalars, augmented ones too; ``if``/``else``, conditional expressions, ``assert``; arithmetic,
    comparisons, ``and``, ``or``, ``not``; ``max``, ``min``, ``len`` and mathematical functions; casts
    such as ``float32(x)``; numbers and tuples of them from around the function; calls of other
    scripts, assigned to names.
    """

    @wraps(pyfunc)
    def wrapper(*args: Any) -> Any:
        if any(is_symbolic(arg) for arg in args):
            return _build(pyfunc, args)
        return _in_python(pyfunc)(*args)

    # by which other scripts find what to put in place of a call
    wrapper.__hybrid_source__ = lambda: _source(pyfunc)  # type: ignore[attr-defined]
    return wrapper


def is_symbolic(arg: Any) -> bool:
    """Whether a script called with it builds an operation."""
    if isinstance(arg, (list, tuple)):
        return any(is_symbolic(item) for item in arg)
    return isinstance(arg, (Tensor, PrimExpr, IterVar))


@deep
def _build(pyfunc: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    outputs = parse_function(_source(pyfunc), args)
    return outputs[0] if len(outputs) == 1 else list(outputs)


def _source(pyfunc: Callable[..., Any]) -> Source:
    lines, first = inspect.getsourcelines(pyfunc)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef):
        raise HybridError(pyfunc.__name__, first, "a function", "no def")
    return Source(function, _names_around(pyfunc), first - 1)


def _names_around(pyfunc: Callable[..., Any]) -> dict[str, Any]:
    around = inspect.getclosurevars(pyfunc)
    return {**around.globals, **around.nonlocals}


def _in_python(pyfunc: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with Python meanings of the subset's names."""
    assert isinstance(pyfunc, FunctionType)
    names = {**HYBRID_GLOBALS, **pyfunc.__globals__}
    return FunctionType(
        pyfunc.__code__, names, pyfunc.__name__, pyfunc.__defaults__, pyfunc.__closure__
    )
