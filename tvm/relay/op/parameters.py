"""Parameters of operators that follow those of another operator: for other ranks, in other layouts.

    @operator("nn.conv3d", ...)
    @same_parameters(conv2d, rank=3)
    def conv3d() -> None:              # conv3d(data, weight, strides=(1, 1, 1), ...)
        '''Convolution over three spatial axes.'''

A function names the parameters in which it differs. One that the other operator lacks stands behind the one
named before it, or at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from inspect import Parameter, signature, unwrap
from types import MappingProxyType
from typing import Annotated, Any, cast, get_type_hints

from tvm.support.docstrings import F, described_by
from tvm.support.signatures import take_names

from .operator import Attribute, OperatorFunction, P, R

_SPATIAL_AXES = {1: "W", 2: "HW", 3: "DHW"}


def same_parameters(
    base: OperatorFunction[P, R], rank: int | None = None
) -> Callable[[Callable[..., None]], Callable[P, R]]:
    """The parameters of another operator, with other defaults or for another number of spatial axes."""

    def declare(function: Callable[..., None]) -> Callable[P, R]:
        known = signature(base).parameters
        if unknown := [name for name in signature(function).parameters if name not in known]:
            raise TypeError(f"{function.__name__}: {base.__name__} has no {', '.join(unknown)}")
        return cast(Callable[P, R], _following(function, base, rank))

    return declare


def of_rank(
    declare: Callable[[Callable[P, R | None]], OperatorFunction[P, R]],
    base: OperatorFunction[P, R],
    rank: int,
    more: str = "",
) -> OperatorFunction[P, R]:
    """The operator over another number of spatial axes than two, such as `max_pool1d` of `max_pool2d`."""

    def function() -> None: ...

    function.__name__ = function.__qualname__ = base.__name__.replace("2d", f"{rank}d")
    function.__module__ = base.__module__
    axes = "along one axis" if rank == 1 else "over three axes"
    first = f"As `{base.__name__}`, {axes}; parameters as there."
    function.__doc__ = "\n\n".join([text for text in (first, more) if text])
    return declare(same_parameters(base, rank)(function))


def more_parameters(
    base: OperatorFunction[..., R], renamed: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Callable[..., None]], Callable[..., R]]:
    """The parameters of another operator, some under new names, and others beside them."""

    def declare(function: Callable[..., None]) -> Callable[..., R]:
        return _following(function, base, renamed=renamed)

    return declare


def documented_by(compute: Callable[..., Any]) -> Callable[[F], F]:
    """Describe the parameters that a docstring leaves out as topi's docstring does."""
    return described_by(compute, types={"te.Tensor": "relay.Expr"})


def _following(
    function: Callable[..., None],
    base: OperatorFunction[..., Any],
    rank: int | None = None,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Callable[..., Any]:
    """The function with the parameters of the other operator and its own."""
    origin = unwrap(base)
    theirs = list(signature(origin).parameters.values())
    hints = get_type_hints(origin, include_extras=True)
    if rank is not None:
        theirs = [_parameter_of_rank(parameter, rank) for parameter in theirs]
        hints = {name: _hint_of_rank(hint, rank) for name, hint in hints.items()}
    theirs = [p.replace(name=renamed.get(p.name, p.name)) for p in theirs]
    hints = {renamed.get(name, name): hint for name, hint in hints.items()}
    parameters = _merged(theirs, signature(function).parameters.values())
    taken = signature(origin).replace(parameters=parameters)

    def bind(*args: Any, **kwargs: Any) -> None:
        try:
            taken.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}") from None

    take_names(bind, function)
    bind.__annotations__ = hints | get_type_hints(function, include_extras=True)
    bind.__dict__["__signature__"] = taken
    # what is said of two axes may not hold for others
    return bind if rank else described_by(base)(bind)


def _merged(theirs: Iterable[Parameter], own: Iterable[Parameter]) -> list[Parameter]:
    found = list(theirs)
    position = len(found)
    for parameter in own:
        named = parameter.replace(kind=Parameter.POSITIONAL_OR_KEYWORD)
        names = [p.name for p in found]
        if parameter.name in names:
            position = names.index(parameter.name)
            found[position] = named
        else:
            found.insert(position, named)
        position += 1
    return found


def _parameter_of_rank(parameter: Parameter, rank: int) -> Parameter:
    """Defaults for so many spatial axes; annotations of a rank end with its number, as Spatial2."""
    default = parameter.default
    if parameter.name.endswith("layout"):
        default = re.sub("D?H?W", _SPATIAL_AXES[rank], default)
    elif isinstance(default, tuple):
        default = default[:1] * rank
    annotation = parameter.annotation
    if isinstance(annotation, str):
        annotation = re.sub(r"(?<=[a-z])[123]$", str(rank), annotation)
    return parameter.replace(default=default, annotation=annotation)


def _hint_of_rank(hint: Any, rank: int) -> Any:
    """The annotation whose conversion takes a rank, for another one."""
    for marker in getattr(hint, "__metadata__", ()):
        convert = marker.convert
        if (
            isinstance(marker, Attribute)
            and isinstance(convert, partial)
            and "rank" in convert.keywords
        ):
            return Annotated[hint.__origin__, replace(marker, convert=partial(convert, rank=rank))]
    return hint
