"""The fields of a node class: their roles, and how declarations are read.

loop_var: Var = binder("body")     bound in ``body``, not walked
extent: PrimExpr                   the annotation names a node class: a child
kind: ForKind                      anything else: a leaf
span: Span | None = ignored(default=None)
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal


class Role(Enum):
    """What a field is to the node that has it."""

    CHILD = "child"  # walked and rewritten
    LEAF = "leaf"  # a plain value
    BINDER = "binder"  # variables bound in other fields of the same node
    REFERENCE = "reference"  # a node defined elsewhere: compared, not walked
    IGNORED = "ignored"  # neither compared nor walked


class Shape(Enum):
    """How the values of a child field are held."""

    ONE = "one"
    OPTIONAL = "optional"
    SEQUENCE = "sequence"
    MAPPING = "mapping"
    NESTED = "nested"  # any mixture, found out at run time


@dataclass(frozen=True)
class Field:
    """One declared field of a node class."""

    name: str = ""
    role: Role = Role.LEAF
    shape: Shape = Shape.ONE
    default: Any = ...  # an Ellipsis: required
    default_factory: Callable[[], Any] | None = None
    convert: Callable[[Any], Any] | None = None
    expression: str | None = None  # derived from the parameters
    binds: tuple[str, ...] = ()
    role_is_given: bool = False
    annotation: str = ""

    @property
    def required(self) -> bool:
        return self.default is ... and self.default_factory is None


def child(
    *, default: Any = ..., convert: Callable[[Any], Any] | None = None, shape: Shape | None = None
) -> Any:
    """A field walked by visitors; only needed to add a default or a conversion."""
    return Field(
        role=Role.CHILD, role_is_given=True, default=default, convert=convert,
        shape=shape or Shape.ONE,
    )  # fmt: skip


def leaf(
    *,
    default: Any = ...,
    default_factory: Callable[[], Any] | None = None,
    convert: Callable[[Any], Any] | None = None,
    kw_only: bool = False,
) -> Any:
    """A plain value: compared, not walked; ``kw_only`` as of :func:`ignored`."""
    del kw_only
    return Field(
        role=Role.LEAF, role_is_given=True, default=default, default_factory=default_factory,
        convert=convert,
    )  # fmt: skip


def binder(*fields: str, default: Any = ..., convert: Callable[[Any], Any] | None = None) -> Any:
    """Variables bound in the named fields; the variables themselves are not children."""
    return Field(
        role=Role.BINDER, role_is_given=True, default=default, convert=convert, binds=fields
    )


def reference(*, default: Any = ..., convert: Callable[[Any], Any] | None = None) -> Any:
    """A node defined elsewhere (a Buffer, a GlobalVar, an Op): compared but not walked."""
    return Field(role=Role.REFERENCE, role_is_given=True, default=default, convert=convert)


def ignored(
    *,
    default: Any = ...,
    default_factory: Callable[[], Any] | None = None,
    convert: Callable[[Any], Any] | None = None,
    kw_only: bool = False,
) -> Any:
    """Left out of equality and hashing: spans, name hints, memoised facts.

    ``kw_only`` tells type checkers alone that the field goes behind those of subclasses.
    """
    del kw_only
    return Field(
        role=Role.IGNORED, role_is_given=True, default=default, default_factory=default_factory,
        convert=convert,
    )  # fmt: skip


def derived(expression: str, *, init: Literal[False] = False) -> Any:
    """Not a parameter: a Python expression over the parameters, in the class's module."""
    del init
    return Field(role=Role.LEAF, role_is_given=True, expression=expression)


def own_fields(namespace: Mapping[str, Any]) -> list[Field]:
    result = []
    for name, annotation in namespace.get("__annotations__", {}).items():
        text = annotation if isinstance(annotation, str) else _annotation_text(annotation)
        if text.startswith(("ClassVar", "typing.ClassVar")) or name == "__slots__":
            continue
        value = namespace.get(name, ...)
        field = value if isinstance(value, Field) else Field(default=value)
        if not field.role_is_given:
            field = replace(field, role=_role_of(text, namespace))
        if field.role is not Role.LEAF and field.shape is Shape.ONE:
            field = replace(field, shape=_shape_of(text, optional=field.default is None))
        result.append(replace(field, name=name, annotation=text))
    return result


def _annotation_text(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def inherited_fields(bases: Sequence[type]) -> list[Field]:
    merged: dict[str, Field] = {}
    for base in reversed(bases):
        for field in getattr(base, "node_fields", ()):
            merged[field.name] = field
    return list(merged.values())


def merge_fields(inherited: list[Field], own: list[Field]) -> list[Field]:
    """Required ones first, in order of declaration; inherited defaults go last (``span``)."""
    renewed = {field.name for field in own}
    kept = [field for field in inherited if field.name not in renewed]
    required = [f for f in (*kept, *own) if f.required or f.expression is not None]
    own_defaults = [f for f in own if not f.required and f.expression is None]
    kept_defaults = [f for f in kept if not f.required and f.expression is None]
    return [*required, *own_defaults, *kept_defaults]


def compared_fields(fields: Sequence[Field]) -> tuple[tuple[str, bool], ...]:
    """(name, whether it binds) of what equality reads; binders come before their scope."""
    compared = [f for f in fields if f.role is not Role.IGNORED and f.expression is None]
    binders = [f for f in compared if f.role is Role.BINDER]
    # first those in whose scope other binders are
    order = sorted(binders, key=lambda f: not any(other.name in f.binds for other in binders))
    rest = [f for f in compared if f.role is not Role.BINDER]
    return (*[(f.name, True) for f in order], *[(f.name, False) for f in rest])


_CONTAINERS = {
    "tuple", "list", "dict", "Mapping", "Sequence", "Optional", "Union", "None", "typing",
    "collections", "abc",
}  # fmt: skip


def _role_of(annotation: str, namespace: Mapping[str, Any]) -> Role:
    """CHILD if the annotation names a node class or a name not defined yet, else LEAF."""
    module = sys.modules[namespace["__module__"]].__dict__
    for name in re.findall(r"[A-Za-z_][A-Za-z0-9_]*", annotation):
        if name in _CONTAINERS:
            continue
        found = module.get(name, getattr(builtins, name, None))
        if found is None or hasattr(found, "visit_name"):
            return Role.CHILD
    return Role.LEAF


def _shape_of(annotation: str, optional: bool) -> Shape:
    text = annotation.replace(" ", "").replace("typing.", "")
    if re.fullmatch(r"(tuple|Sequence|list)\[[\w.]+(,\.\.\.)?\]", text):
        return Shape.SEQUENCE
    if re.fullmatch(r"(dict|Mapping)\[[\w.]+,[\w.]+\]", text):
        return Shape.MAPPING
    if "[" in text:
        return Shape.NESTED
    return Shape.OPTIONAL if optional or "None" in text or "Optional" in text else Shape.ONE
