"""Reads the JSON of nodes that classic releases wrote, from 0.6 to 0.18.

{"root": 1, "nodes": [{"type_key": ""},
                      {"type_key": "tir.Var", "attrs": {"dtype": "int32", "name": "2", ...}},
                      {"type_key": "runtime.String", "repr_str": "x"}],
 "b64ndarrays": [...], "attrs": {"tvm_version": "0.17.0"}}

The value of every attribute is a text: a number, a name, or the number of a node, 0 standing for none.
Which one it is follows from the field of the node's class. Attributes that no class has any more are
left out, fields that a release did not know yet have their defaults.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from tvm.error import TVMError, suggest
from tvm.runtime.container import Map
from tvm.runtime.params import load_array
from tvm.support import dtype

from .classic_schema import (
    BOXES,
    NODES_OF_NUMBERS,
    enumeration_of,
    in_module_of,
    is_plain,
    member_of,
)
from .fields import Field
from .node import NODE_TYPES
from .op import Op

_CLASSES: Mapping[str, type[Any]] = NODE_TYPES
# names of release 0.6
_RENAMED = {
    "Variable": "tir.Var",
    "relay.Op": "Op",
    "relay.Module": "IRModule",
    "relay.SourceName": "SourceName",
    "relay.Span": "Span",
    "StrMap": "Map",
}
_VARIABLES = ("Variable", "tir.Var")
_NUMBER = re.compile(r"\d+")
_TRIPLE = re.compile(r"(\d+)\.(\d+)")
# since this release the lanes of vectors are expressions
_LANES_ARE_NODES = (0, 16)


def is_classic(document: Mapping[str, Any]) -> bool:
    """Whether a document has the form of classic releases."""
    return "b64ndarrays" in document and isinstance(document.get("root"), int)


def read_classic(document: Mapping[str, Any]) -> Any:
    """The root of a document."""
    return _ClassicReader(document).node(document["root"])


class _ClassicReader:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self.items: list[Mapping[str, Any]] = document["nodes"]
        self.arrays = [load_array(base64.b64decode(a)) for a in document["b64ndarrays"]]
        version = _TRIPLE.match(str(document.get("attrs", {}).get("tvm_version", "")))
        self.version = tuple([int(n) for n in version.groups()]) if version else (0, 0)
        self.made: dict[int, Any] = {}
        self.open: set[int] = set()

    def node(self, index: int) -> Any:
        """The object of a number."""
        if index == 0:
            return None
        if index not in self.made:
            if index in self.open or index < 0:
                raise ValueError(f"node {index} contains itself")
            self.open.add(index)
            self.made[index] = self._make(self.items[index])
            self.open.discard(index)
        return self.made[index]

    def _make(self, item: Mapping[str, Any]) -> Any:
        key = item["type_key"]
        key = _RENAMED.get(key, key)
        if key == "runtime.String":
            return _text_in(item) or ""
        if key in ("Array", "runtime.ADT"):
            return tuple([self.node(i) for i in item.get("data", ())])
        if key == "Map":
            return self._mapping(item)
        if key in BOXES:
            return BOXES[key][1](item["attrs"]["value"])
        name = _text_in(item, "global_key")
        if name is not None:
            return self._named(key, name)
        attrs = item.get("attrs", {})
        if key == "relay.Id":
            return self._text(attrs["name_hint"])
        if key == "Source":
            return self.node(int(attrs["source"]))
        if key == "DictAttrs":
            return _CLASSES[key](dict(self.node(int(attrs["__dict__"])) or {}))
        cls = _class_of(key)
        if cls.type_key == "IRModule":
            return self._module(cls, attrs)
        return self._of_class(cls, attrs)

    def _mapping(self, item: Mapping[str, Any]) -> Map:
        values = [self.node(i) for i in item.get("data", ())]
        if "keys" in item:
            return Map(zip(item["keys"], values, strict=True))
        return Map(zip(values[::2], values[1::2], strict=True))

    def _named(self, key: str, name: str) -> Any:
        """What there is one of, by its name."""
        if key == "Op":
            return Op.get(name)
        if key in ("EnvFunc", "SourceName"):
            return _CLASSES[key](name)
        if key == "TargetKind":
            return in_module_of(_CLASSES["Target"], key).get(name)
        raise ValueError(f"the name {name!r} of a {key}")

    def _module(self, cls: type[Any], attrs: Mapping[str, str]) -> Any:
        def mapping(name: str) -> dict[Any, Any]:
            return dict(self.node(int(attrs.get(name, 0))) or {})

        found = self.node(int(attrs.get("attrs", 0)))
        return cls(
            mapping("functions"),
            mapping("type_definitions"),
            attrs=found,
            global_infos=mapping("global_infos"),
            source_map=self.node(int(attrs.get("source_map", 0))),
        )

    def _of_class(self, cls: type[Any], attrs: Mapping[str, str]) -> Any:
        given = {_field_name(cls, name): text for name, text in attrs.items()}
        fields = [f for f in cls.node_fields if f.expression is None and f.name[0] != "_"]
        values = {f.name: self._value(cls, f, given[f.name]) for f in fields if f.name in given}
        absent = [f.name for f in fields if f.required and f.name not in values]
        if absent:
            raise ValueError(f"a {cls.type_key} without {', '.join(absent)}")
        return cls._make(**values)

    def _value(self, cls: type[Any], field: Field, text: str) -> Any:
        """What the text of an attribute stands for."""
        kind = field.annotation
        if field.name in NODES_OF_NUMBERS.get(cls.type_key, ()) and self._is_number(text):
            number = self.node(int(text)).value
            return bool(number) if kind == "bool" else number
        if kind == "str":
            return self._text(text)
        if kind == "DType":
            return dtype(text)
        if kind == "bool":
            return bool(int(text))
        if kind == "int":
            if field.name == "lanes" and self.version >= _LANES_ARE_NODES:
                return self._lanes(int(text))
            return int(text)
        if kind == "float":
            return float(text)
        if kind == "NDArray":
            return self.arrays[int(text)]
        enumeration = enumeration_of(cls, kind)
        if enumeration is not None:
            return member_of(enumeration, int(text))
        value = self.node(int(text))
        if value is None and ("None" not in kind and kind not in ("Any", "object")):
            # classic nodes may be incomplete
            return _empty(field)
        return _as_plain(value) if is_plain(kind) else value

    def _is_number(self, text: str) -> bool:
        """Whether the text of an attribute is the number of a node that holds an integer."""
        index = int(text)
        return 0 < index < len(self.items) and self.items[index]["type_key"] == "IntImm"

    def _lanes(self, index: int) -> Any:
        lanes = self.node(index)
        value = getattr(lanes, "value", None)
        if value is None:  # a product with vscale()
            return _CLASSES["tir.Ramp"](0, 1, lanes).lanes
        return int(value)

    def _text(self, text: str) -> str:
        """A name in the text itself, as in old releases and attributes of operators, or a node's."""
        if _NUMBER.fullmatch(text) and 0 < int(text) < len(self.items):
            item = self.items[int(text)]
            if item["type_key"] == "runtime.String":
                return _text_in(item) or ""
            if item["type_key"] == "relay.Id":
                return str(self.node(int(text)))
            if item["type_key"] in _VARIABLES:  # release 0.6 had types named by variables
                return str(self.node(int(text)).name)
        return text


def _text_in(item: Mapping[str, Any], older: str = "") -> str | None:
    """The text that says all of a node, if there is one; unprintable ones are encoded."""
    if (blob := item.get("repr_b64")) is not None:
        return base64.b64decode(blob).decode()
    text: str | None = item.get("repr_str", item.get(older))
    return text


def _class_of(key: str) -> type[Any]:
    """The class of a type key; those of release 0.6 were without prefix, or relay's."""
    for name in (key, f"tir.{key}", key.removeprefix("relay."), f"relay.{key}"):
        if name in _CLASSES:
            return _CLASSES[name]
    raise TVMError(f"load_json found the type key {key!r}", hint=suggest(key, _CLASSES))


def _field_name(cls: type[Any], name: str) -> str:
    """The field of an attribute of an old name."""
    names = {f.name for f in cls.node_fields}
    if name in ("var", "vid", "name") and name not in names and "name_hint" in names:
        return "name_hint"
    return name


def _as_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple([_as_plain(v) for v in value])
    return getattr(value, "value", value)


def _empty(field: Field) -> Any:
    if field.default is not ...:
        return field.default
    if field.default_factory is not None:
        return field.default_factory()
    if field.annotation.startswith("tuple"):
        return ()
    return {} if field.annotation.startswith("dict") else None
