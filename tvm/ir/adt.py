"""Algebraic data types: what a constructor takes, what constructors a type has."""

from __future__ import annotations

from typing import Any

from .expr import RelayExpr, call_global
from .node import child, ignored, reference
from .type import GlobalTypeVar, Type, TypeVar


def _tuple(items: Any) -> tuple[Any, ...]:
    return () if items is None else tuple(items)


class Constructor(RelayExpr, key="relay.Constructor"):
    """One way to build a value of an algebraic data type."""

    name_hint: str
    inputs: tuple[Type, ...] = child(convert=_tuple)
    belong_to: GlobalTypeVar = reference()
    tag: int = ignored(default=-1)

    def __call__(self, *args: RelayExpr) -> Any:
        """Build a value: a call of this constructor."""
        return call_global(self, args)  # type: ignore[arg-type]


def _numbered(constructors: Any) -> tuple[Constructor, ...]:
    """Constructors with the tags by which their values are told apart: places in the definition."""
    result = _tuple(constructors)
    for place, constructor in enumerate(result):
        if constructor.tag < 0:
            # programs hold the constructors already, so these very objects get their tags
            object.__setattr__(constructor, "tag", place)
    return result


class TypeData(Type, key="relay.TypeData"):
    """The definition of an algebraic data type."""

    header: GlobalTypeVar = reference()
    type_vars: tuple[TypeVar, ...] = child(convert=_tuple)
    constructors: tuple[Constructor, ...] = child(convert=_numbered)
