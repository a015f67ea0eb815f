"""Attributes: typed records of an operator, and open dictionaries of functions and modules."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tvm.error import OpAttributeInvalid, or_similar, suggest

from .node import NODE_TYPES, Node, leaf


class AttrFieldInfo(NamedTuple):
    """One argument or attribute of an operator: its name, its declared type, what it is for."""

    name: str
    type_info: str
    description: str = ""


class Attrs(Node):
    """The base of operator attributes: declare one field an attribute, with its default.

    class SoftmaxAttrs(Attrs, key="relay.attrs.SoftmaxAttrs"):
        axis: int = -1
    """

    if TYPE_CHECKING:
        # records of operators have the fields that signatures declare

        def __getattr__(self, name: str) -> Any: ...

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise KeyError(
                f"{type(self).__name__} has the attributes {self.keys()}, got {name!r}"
                f"{or_similar(name, self.keys())}"
            )
        return getattr(self, name)

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def keys(self) -> list[str]:
        """The names of the attributes."""
        return [field.name for field in self.node_fields]

    def items(self) -> list[tuple[str, Any]]:
        """Names and values."""
        return [(name, getattr(self, name)) for name in self.keys()]

    def list_field_info(self) -> list[AttrFieldInfo]:
        """What the attributes are."""
        texts = {
            n: t for c in type(self).__mro__ for n, t in vars(c).get("__annotations__", {}).items()
        }
        return [AttrFieldInfo(name, str(texts.get(name, ""))) for name in self.keys()]

    def get_int(self, key: str) -> int:
        """An integer attribute."""
        return int(self[key])

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """A tuple of integers."""
        return tuple(int(value) for value in self[key])

    def get_str(self, key: str) -> str:
        """A text attribute."""
        return str(self[key])


class DictAttrs(Attrs):
    """Attributes by name, of functions and modules."""

    dict_: dict[str, Any] = leaf(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if name == "dict_":
            raise AttributeError(name)  # a node that is still being made
        if not name.startswith("_") and name in self.dict_:
            return self.dict_[name]
        raise AttributeError(f"no attribute {name!r}, there are {list(self.dict_)}")

    def __getitem__(self, name: str) -> Any:
        return self.dict_[name]

    def __contains__(self, name: object) -> bool:
        return name in self.dict_

    def __iter__(self) -> Iterator[str]:
        return iter(self.dict_)

    def __len__(self) -> int:
        return len(self.dict_)

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        """The names of the attributes."""
        return self.dict_.keys()

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """Names and values."""
        return self.dict_.items()

    def get(self, key: str, default: Any = None) -> Any:
        """The value, or ``default``."""
        return self.dict_.get(key, default)

    def with_values(self, values: Mapping[str, Any]) -> DictAttrs:
        """A copy with some attributes set."""
        return DictAttrs({**self.dict_, **values})

    def without(self, key: str) -> DictAttrs:
        """A copy without one attribute."""
        return DictAttrs({k: v for k, v in self.dict_.items() if k != key})


def as_dict_attrs(attrs: DictAttrs | Mapping[str, Any] | None) -> DictAttrs:
    """Function attributes from a mapping or None."""
    return attrs if isinstance(attrs, DictAttrs) else DictAttrs(dict(attrs or {}))


def make_node(type_key: str, **kwargs: Any) -> Any:
    """Build a node or an attribute record from its type key.

    Raises
    ------
    OpAttributeInvalid
        If no class has that key, or it has no such field.
    """
    cls = NODE_TYPES.get(type_key)
    if cls is None:
        raise OpAttributeInvalid(
            f"make_node requires a type key, got {type_key!r}", hint=suggest(type_key, NODE_TYPES)
        )
    if cls is DictAttrs:
        return DictAttrs({name: _as_node(value) for name, value in kwargs.items()})
    names = {field.name for field in cls.node_fields}
    if unknown := [name for name in kwargs if name not in names]:
        raise OpAttributeInvalid(
            f"{type_key} has the fields {sorted(names)}, got {unknown}",
            hint=suggest(unknown[0], names),
        )
    return cls(**kwargs)


def _as_node(value: Any) -> Any:
    """A number as the constant that classic attributes hold; other values as they are."""
    classes: Mapping[str, type[Any]] = NODE_TYPES
    if type(value) is int:
        return classes["IntImm"]("int32", value)
    return classes["FloatImm"]("float32", value) if type(value) is float else value
