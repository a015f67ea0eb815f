"""Writes the JSON of nodes that release 0.18 reads, where that release knows all of them.

The reader, `classic_json`, shows the form; nodes stand in the order in which they are first met.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.runtime.params import save_array
from tvm.support import DType, ScalableLanes

from .classic_schema import (
    BOXES,
    CLASSIC_ATTRIBUTES,
    FOUND_AGAIN,
    NODES_OF_NUMBERS,
    enumeration_of,
    is_plain,
    number_of,
)
from .codegen import is_node
from .env_func import EnvFunc
from .expr import RelayExpr
from .fields import Field
from .node import NODE_TYPES
from .op import Op
from .span import SourceName

_CLASSES: Mapping[str, type[Any]] = NODE_TYPES
_NUMBERS = (int, float, bool, np.integer, np.floating, np.bool_)
_NAMED = (Op, EnvFunc, SourceName)
_INT32 = range(-(2**31), 2**31)


class NotClassic(Exception):
    """Release 0.18 does not know a node, or a value of its fields."""


@dataclass(frozen=True)
class _Item:
    """A node of classic releases for which there is no class here."""

    type_key: str
    parts: Mapping[str, Any]


def write_classic(root: Any, version: str) -> dict[str, Any] | None:
    """The document of a node or a container of nodes; None if that release cannot read it."""
    writer = _ClassicWriter()
    try:
        number = writer.number(root)
    except NotClassic:
        return None
    return {
        "root": number,
        "nodes": writer.items,
        "b64ndarrays": writer.arrays,
        "attrs": {"tvm_version": version},
    }


class _ClassicWriter:
    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = [{"type_key": ""}]
        self.arrays: list[str] = []
        self.known: dict[Any, int] = {}  # by identity, texts by their value
        self.kept: list[Any] = []

    def number(self, value: Any) -> int:
        """The number of the node that stands for a value."""
        if value is None:
            return 0
        key = str(value) if isinstance(value, str) else id(value)
        if (found := self.known.get(key)) is not None:
            return found
        item: dict[str, Any] = {}
        self.items.append(item)
        self.kept.append(value)
        number = self.known[key] = len(self.items) - 1
        item |= self._item(value)
        return number

    def _item(self, value: Any) -> dict[str, Any]:
        if isinstance(value, DType):
            raise NotClassic
        if isinstance(value, str):
            return _named("runtime.String", value)
        if isinstance(value, (tuple, list)):
            return _with_data({"type_key": "Array"}, [self.number(v) for v in value])
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, _NUMBERS):
            return self._boxed(value)
        if isinstance(value, _Item):
            return {"type_key": value.type_key, "attrs": self._numbers(value.parts)}
        if not is_node(value):
            raise NotClassic
        if isinstance(value, _NAMED):
            return _named(value.type_key, value.name)
        return {"type_key": value.type_key, "attrs": self._attributes(value)}

    def _mapping(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        item: dict[str, Any] = {"type_key": "Map"}
        if not all([isinstance(key, str) for key in value]):
            return _with_data(item, [self.number(v) for pair in value.items() for v in pair])
        if value:
            item["keys"] = [str(key) for key in value]
        return _with_data(item, [self.number(v) for v in value.values()])

    def _boxed(self, value: Any) -> dict[str, Any]:
        kind = type(value.item()) if isinstance(value, np.generic) else type(value)
        keys = [key for key, (boxed, _) in BOXES.items() if boxed is kind]
        if not keys:
            raise NotClassic
        return {"type_key": keys[0], "attrs": {"value": _text_of(value)}}

    def _attributes(self, node: Any) -> dict[str, str]:
        key = node.type_key
        if key == "DictAttrs":
            return {"__dict__": str(self.number(dict(node.items())))}
        if key == "IRModule":
            return self._module(node)
        if key not in CLASSIC_ATTRIBUTES or getattr(node, "type_annot", None) is not None:
            raise NotClassic
        fields = {field.name: field for field in node.node_fields}
        attributes = {
            name: self._value(node, fields[name], getattr(node, name))
            for name in CLASSIC_ATTRIBUTES[key]
        }
        if key == "relay.Var":
            identity = _Item("relay.Id", {"name_hint": node.name_hint})
            attributes["vid"] = str(self.number(identity))
        if isinstance(node, RelayExpr):
            attributes |= dict.fromkeys(FOUND_AGAIN, "0")
        return attributes

    def _module(self, module: Any) -> dict[str, str]:
        if module.type_definitions or module.global_infos:
            raise NotClassic
        sources = {
            name: _Item("Source", {"source_name": name, "source": text})
            for name, text in module.source_map.source_map.items()
        }
        parts = {
            "functions": dict(module.functions),
            "type_definitions": {},
            "global_var_map_": {gvar.name_hint: gvar for gvar in module.functions},
            "global_type_var_map_": {},
            "source_map": _Item("SourceMap", {"source_map": sources}),
            "attrs": module.attrs,
            "global_infos": {},
        }
        return self._numbers(parts)

    def _numbers(self, parts: Mapping[str, Any]) -> dict[str, str]:
        return {name: str(self.number(part)) for name, part in parts.items()}

    def _value(self, node: Any, field: Field, value: Any) -> str:
        """The text that stands for a field's value."""
        kind = field.annotation
        if field.name in NODES_OF_NUMBERS.get(node.type_key, ()) or field.name == "lanes":
            return str(self.number(_as_node(value)))
        if kind == "DType" or (kind == "str" and "dtype" in field.name):
            return str(value)
        if kind == "NDArray":
            self.arrays.append(base64.b64encode(save_array(value)).decode())
            return str(len(self.arrays) - 1)
        if kind in ("int", "float", "bool"):
            return _text_of(value)
        if enumeration_of(type(node), kind) is not None:
            return str(number_of(value))
        return str(self.number(_as_node(value) if is_plain(kind) else value))


def _named(key: str, text: str) -> dict[str, Any]:
    """A node that its text says all of."""
    if text.isascii() and text.isprintable():
        return {"type_key": key, "repr_str": str(text)} if text else {"type_key": key}
    return {"type_key": key, "repr_b64": base64.b64encode(text.encode()).decode()}


def _with_data(item: dict[str, Any], numbers: list[int]) -> dict[str, Any]:
    return item | ({"data": numbers} if numbers else {})


def _text_of(value: Any) -> str:
    """A number as a text; streams of C++ read no infinities."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, float):
        if not math.isfinite(number):
            raise NotClassic
        return repr(number)
    return str(int(number))


def _as_node(value: Any) -> Any:
    """Numbers of Python as the expressions that classic fields hold."""
    if isinstance(value, tuple):
        return tuple([_as_node(v) for v in value])
    if isinstance(value, ScalableLanes):
        raise NotClassic
    if isinstance(value, (bool, np.bool_)):
        return _CLASSES["IntImm"]("bool", int(value))
    if isinstance(value, (int, np.integer)):
        return _CLASSES["IntImm"]("int32" if int(value) in _INT32 else "int64", int(value))
    return (
        _CLASSES["FloatImm"]("float32", value) if isinstance(value, (float, np.floating)) else value
    )
