"""Algebraic data types: what a constructor takes, what constructors a type has."""

from __future__ import annotations

import zlib
from typing import Any

from . import extension
from .expr import RelayExpr
from .node import binder, child, ignored, reference
from .type import GlobalTypeVar, Type, TypeVar


def _tag(type_name: str, place: int) -> int:
    """A number that tells the constructors of all types of a module apart, the same in each run."""
    return (zlib.crc32(type_name.encode()) & 0x7FFFFF) << 8 | place


def _tuple(items: Any) -> tuple[Any, ...]:
    return () if items is None else tuple(items)


class Constructor(RelayExpr, key="relay.Constructor"):
    """One way to build a value of an algebraic data type."""

    name_hint: str
    inputs: tuple[Type, ...] = child(convert=_tuple)
    belong_to: GlobalTypeVar = reference()
    tag: int = ignored(default=-1)
    # of the definition, for types found without a module
    type_vars: tuple[TypeVar, ...] = binder("inputs", default=())

    def __call__(self, *args: RelayExpr) -> Any:
        """Build a value: a call of this constructor."""
        return extension.global_call.required(self, args)


class TypeData(Type, key="relay.TypeData"):
    """The definition of an algebraic data type."""

    header: GlobalTypeVar = reference()
    type_vars: tuple[TypeVar, ...] = child(convert=_tuple)
    constructors: tuple[Constructor, ...] = child(convert=_tuple)

    def __init__(self, header: Any, type_vars: Any, constructors: Any) -> None:
        self._init(header, _tuple(type_vars), _tuple(constructors))
        for place, constructor in enumerate(self.constructors):
            # programs hold the constructors already, so these very objects learn what they belong to
            object.__setattr__(constructor, "type_vars", self.type_vars)
            if constructor.tag < 0:
                object.__setattr__(constructor, "tag", _tag(header.name_hint, place))
