"""Functions that differ from another in their name and some defaults.

@with_defaults(pool2d, layout="NCW")
def pool1d() -> None:
    '''Pooling over windows of one axis.'''
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def with_defaults(
    function: Callable[P, R], **defaults: Any
) -> Callable[[Callable[[], None]], Callable[P, R]]:
    """A function with other defaults, under the name and the docstring of the decorated one."""

    def declare(named: Callable[[], None]) -> Callable[P, R]:
        assert isinstance(function, FunctionType)
        known = signature(function).parameters
        assert all(known[name].default is not Parameter.empty for name in defaults)
        values = [defaults.get(n, p.default) for n, p in known.items() if p.default is not p.empty]
        code, scope, cells = function.__code__, function.__globals__, function.__closure__
        made = FunctionType(code, scope, named.__name__, tuple(values), cells)
        made.__annotations__ = function.__annotations__
        return take_names(made, named)

    return declare


def with_values(
    function: Callable[..., R], **values: Any
) -> Callable[[Callable[[], None]], Callable[..., R]]:
    """A function with some parameters at these values, under the name of the decorated one."""

    def declare(named: Callable[[], None]) -> Callable[..., R]:
        whole = signature(function)
        rest = whole.replace(parameters=[p for n, p in whole.parameters.items() if n not in values])

        def made(*args: Any, **kwargs: Any) -> R:
            if len(args) > len(rest.parameters):
                raise TypeError(f"{named.__name__}() takes {len(rest.parameters)} arguments")
            return function(**dict(zip(rest.parameters, args, strict=False)), **kwargs, **values)

        made.__dict__["__signature__"] = rest
        made.__annotations__ = {n: p.annotation for n, p in rest.parameters.items()}
        return take_names(made, named)

    return declare


def take_names(function: F, source: Callable[..., Any]) -> F:
    """Give a function the name, the place and the docstring of another."""
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(function, name, getattr(source, name))
    return function
