"""Nodes: declared once, everything else generated.

    class Add(BinaryOp):                      def __init__(self, a, b, span=None):
        a: PrimExpr                    ->         self.a = a; self.b = b; self.span = span
        b: PrimExpr                               self.dtype = a.dtype
        dtype: DType = derived("a.dtype")     and __slots__, children, map_children, replace, ...

The metaclass reads the annotated fields, gives each a role and generates straight-line methods.
Equality, hashing, substitution, JSON, printers and visitors read the roles.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tvm.runtime.object import Object

from . import extension
from .codegen import generate_methods
from .fields import (
    Field,
    Role,
    Shape,
    binder,
    child,
    compared_fields,
    derived,
    ignored,
    inherited_fields,
    leaf,
    merge_fields,
    own_fields,
    reference,
)

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        return lambda cls: cls


__all__ = [
    "NODE_TYPES", "Field", "Node", "NodeMeta", "Role", "Shape", "binder", "check_nodes", "child",
    "derived", "generic_repr", "ignored", "leaf", "reference", "snake_case",
]  # fmt: skip

N = TypeVar("N", bound="Node")

NODE_TYPES: dict[str, type[Node]] = {}
_SNAKE_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# visitor method names that some class answers to
VISIT_NAMES: set[str] = set()


def snake_case(name: str) -> str:
    """``IfThenElse`` -> ``if_then_else``, ``EQ`` -> ``eq``."""
    return _SNAKE_BORDER.sub("_", name).lower()


def _default_key(name: str, module: str) -> str:
    """``tvm.tir.expr`` -> ``tir.<name>``; the kernel's own nodes have no prefix."""
    parts = module.split(".")
    package = parts[1] if parts[0] == "tvm" and len(parts) > 1 else parts[0]
    return name if package == "ir" else f"{package}.{name}"


def _install(cls: NodeMeta, methods: Mapping[str, Any], namespace: Mapping[str, Any]) -> None:
    for name, function in methods.items():
        if name not in namespace:
            setattr(cls, name, function)
    names = tuple(f.name for f in cls.node_fields if f.expression is None)
    if "__match_args__" not in namespace:
        setattr(cls, "__match_args__", names)  # noqa: B010 - not an attribute type checkers know


@dataclass_transform(
    frozen_default=True, field_specifiers=(child, leaf, binder, reference, ignored, derived)
)
class NodeMeta(type):
    """Turns annotated fields into slots and generated methods."""

    node_fields: tuple[Field, ...]
    compared: tuple[tuple[str, bool], ...]  # (field, whether it binds), binders first
    type_key: str
    visit_name: str

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], key: str | None = None
    ) -> NodeMeta:
        own = own_fields(namespace)
        inherited = inherited_fields(bases)
        fields = merge_fields(inherited, own)
        known = {field.name for field in inherited}
        for field in own:
            namespace.pop(field.name, None)
        slots = namespace.pop("__slots__", ())
        namespace["__slots__"] = (
            *slots,
            *(field.name for field in own if field.name not in known),
        )
        cls = super().__new__(mcs, name, bases, namespace)
        cls.node_fields = tuple(fields)
        cls.compared = compared_fields(fields)
        cls.type_key = key or _default_key(name, namespace["__module__"])
        cls.visit_name = f"visit_{snake_case(name)}"
        VISIT_NAMES.add(cls.visit_name)
        NODE_TYPES[cls.type_key] = typing.cast("type[Node]", cls)
        _install(cls, generate_methods(cls, cls.node_fields), namespace)
        return cls

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: Any):
        super().__init__(name, bases, namespace)


class Node(Object, metaclass=NodeMeta):
    """The base of all IR nodes: immutable, compared by identity unless a class says otherwise."""

    node_fields: ClassVar[tuple[Field, ...]]
    type_key: ClassVar[str]
    visit_name: ClassVar[str]
    _make: ClassVar[Callable[..., Any]]
    _init: ClassVar[Callable[..., None]]

    if TYPE_CHECKING:

        def __init_subclass__(cls, key: str | None = None) -> None: ...

        def children(self) -> list[Node]:
            """The nodes in child fields, in the order of declaration."""
            return []

        def map_children(self: N, f: Callable[[Any], Any]) -> N:
            """This node with ``f`` applied to its children; itself if none changed."""
            return self

    # (visitor, node) -> result, None for a class without children; the inline form stands for
    # visitors that do not override ``visit``
    rewrite_with: ClassVar[Callable[[Any, Any], Any] | None]
    rewrite_inline: ClassVar[Callable[[Any, Any], Any] | None]
    visit_with: ClassVar[Callable[[Any, Any], Any] | None]
    visit_inline: ClassVar[Callable[[Any, Any], Any] | None]
    # the expressions directly below a node, those that it binds among them and those inside its
    # parts in their places, and the node over others; None for a class without any
    operands: ClassVar[Callable[[Any], tuple[Any, ...]] | None]
    with_operands: ClassVar[Callable[[Any, Sequence[Any]], Any] | None]
    # what a node of the class is in another's field: "operand", "part" that holds some, or neither
    operand_kind: ClassVar[str] = ""

    def replace(self: N, **changes: Any) -> N:
        """A copy of this node with some fields changed."""
        names = [field.name for field in self.node_fields if field.expression is None]
        if unknown := changes.keys() - set(names):
            raise TypeError(
                f"{type(self).__name__}.replace requires fields of {names}, got {sorted(unknown)}"
            )
        return typing.cast(
            N,
            self._make(*[changes[n] if n in changes else getattr(self, n) for n in names]),
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(field.name for field in self.node_fields)]

    def __reduce__(self) -> tuple[Any, ...]:
        names = [field.name for field in self.node_fields if field.expression is None]
        return _rebuild, (type(self), [getattr(self, name) for name in names])

    def __getstate__(self) -> dict[str, Any]:
        """The fields by name."""
        names = [field.name for field in self.node_fields if field.expression is None]
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Give the node the fields of a state that another one had."""
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def __copy__(self: N) -> N:
        return self

    def __deepcopy__(self: N, memo: dict[int, Any]) -> N:
        return self

    def __repr__(self) -> str:
        if (printer := extension.printer.find(type(self))) is not None:
            return printer(self)
        return generic_repr(self)

    __str__ = __repr__


def generic_repr(node: Node) -> str:
    """``Class(field=value, ...)`` with references and ignored fields left out."""
    shown = [f for f in node.node_fields if f.role is not Role.IGNORED and f.expression is None]
    values = [f"{f.name}={getattr(node, f.name, '?')!r}" for f in shown]
    return f"{type(node).__name__}({', '.join(values)})"


def check_nodes() -> None:
    """From now on, assigning to a field of a finished node raises: the mode of the tests."""
    Node.__setattr__ = _guarded_setattr  # type: ignore[method-assign, assignment]


def are_nodes_checked() -> bool:
    """Whether that mode is on."""
    return Node.__setattr__ is _guarded_setattr


def _guarded_setattr(node: Node, name: str, value: Any) -> None:
    if hasattr(node, name) and not _may_be_reset(node, name):
        raise AttributeError(
            f"{type(node).__name__} is immutable, got an assignment to {name!r}; "
            "hint: build a changed copy with replace()"
        )
    object.__setattr__(node, name, value)


def _may_be_reset(node: Node, name: str) -> bool:
    return any(f.name == name and f.role is Role.IGNORED for f in node.node_fields) or not any(
        f.name == name for f in node.node_fields
    )


def _rebuild(cls: type[Node], values: list[Any]) -> Node:
    return typing.cast(Node, cls._make(*values))
