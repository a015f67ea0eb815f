"""JSON of nodes: as release 0.18 reads it where that release knows all of them, else in a form of its own.

In that form shared nodes are written once, in the order that they are first complete.

    {"root": 2, "nodes": [{"type_key": "tir.Var", "attrs": {"name": "x", ...}}, ...],
     "arrays": [...], "attrs": {"tvm_version": "0.18.0"}}

A field that holds a node is ``{"node": index}``; tuples are lists; other values carry a tag. Objects
that are no nodes, such as schedules, are written like nodes if their classes are registered.
"""

from __future__ import annotations

import base64
import importlib
import io
import json
import math
import re
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from enum import Enum
from tokenize import TokenError
from typing import Any

import numpy as np

from tvm.error import TVMError, suggest
from tvm.runtime.csource import csource_module
from tvm.runtime.module import Module
from tvm.runtime.ndarray import array
from tvm.support import DType, ScalableLanes, deep, dtype

from .classic_json import is_classic, read_classic
from .classic_writer import write_classic
from .codegen import is_node
from .node import NODE_TYPES, Role
from .op import Op

FORMAT_VERSION = "0.18.0"

# what reading damaged text raises; the last two come from numpy's headers
_DAMAGE = (
    ValueError, LookupError, TypeError, AttributeError, RecursionError, SyntaxError, TokenError,
)  # fmt: skip

# what is written is nested by tuples in tuples alone, since nodes refer to each other by number
_DEEPEST = 500
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')

# classes beside the nodes, and the attributes of their objects
_STATE_TYPES: dict[str, type[Any]] = {}
_STATE_FIELDS: dict[type[Any], tuple[str, tuple[str, ...]]] = {}
_FORGOTTEN: dict[type[Any], tuple[str, ...]] = {}


def register_state(type_key: str, cls: type[Any], forgotten: tuple[str, ...] = ()) -> None:
    """Let objects of a class that is no node be saved, with all attributes that it declares.

    They are dataclasses or have ``__slots__``, and may hold lists, which nodes do not. Attributes in
    ``forgotten`` are not saved, and None when objects are loaded.
    """
    if is_dataclass(cls):
        names = tuple([field.name for field in dataclass_fields(cls)])
    else:
        names = tuple([name for base in cls.__mro__ for name in vars(base).get("__slots__", ())])
    _STATE_TYPES[type_key] = cls
    _STATE_FIELDS[cls] = (type_key, tuple([name for name in names if name not in forgotten]))
    _FORGOTTEN[cls] = forgotten


@deep
def save_json(node: Any) -> str:
    """The text of a node, or of a container of nodes; ``load_json`` gives it back.

    Loop-level functions, types, and relay's functions whose operators have no texts among their
    attributes are written as release 0.18 does, which can read them.
    """
    if (classic := write_classic(node, FORMAT_VERSION)) is not None:
        return json.dumps(classic, indent=2)
    writer = _Writer()
    root = writer.value(node)
    return json.dumps(
        {
            "root": root,
            "nodes": writer.nodes,
            "arrays": writer.arrays,
            "attrs": {"tvm_version": FORMAT_VERSION},
        },
        indent=2,
    )


@deep
def load_json(json_str: str) -> Any:
    """The node that ``save_json`` wrote, here or in a classic release.

    Raises
    ------
    TVMError
        If the text is no such JSON, or names unknown classes or fields.
    """
    try:
        document = _document(json_str)
        if is_classic(document):
            return read_classic(document)
        arrays = [_decode_array(text) for text in document["arrays"]]
        reader = _Reader(arrays)
        for item in document["nodes"]:
            reader.add(item)
        return reader.value(document["root"])
    except _DAMAGE as error:
        raise TVMError(f"load_json requires text that save_json wrote: {error}") from error


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.arrays: list[str] = []
        self.index: dict[int, int] = {}
        self.kept: list[Any] = []

    def value(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if is_node(value) or type(value) in _STATE_FIELDS:
            return {"node": self.node(value)}
        if isinstance(value, (tuple, list)):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {"map": [[self.value(k), self.value(v)] for k, v in value.items()]}
        return self.tagged(value)

    def tagged(self, value: Any) -> Any:
        if isinstance(value, DType):
            return {"dtype": str(value)}
        if type(value) is ScalableLanes:
            return {"scalable": value.factor}
        if isinstance(value, Enum):
            cls = type(value)
            return {"enum": [cls.__module__, cls.__qualname__, value.name]}
        if isinstance(value, str):
            return str(value)
        if isinstance(value, (np.integer, np.floating, np.bool_)):
            return value.item()
        if hasattr(value, "numpy") or isinstance(value, np.ndarray):
            array = value if isinstance(value, np.ndarray) else value.numpy()
            self.arrays.append(_encode_array(array))
            return {"array": len(self.arrays) - 1}
        if isinstance(value, Module) and value.type_key == "c":
            names = [list(value[name]()) for name in ("get_func_names", "get_const_vars")]
            imports = [self.value(module) for module in value.imported_modules]
            return {"c_module": [value.get_source(), value.format, *names, imports]}
        if hasattr(value, "name") and callable(getattr(type(value), "get", None)):
            cls = type(value)  # such as kinds of targets: there is one of a name
            return {"named": [cls.__module__, cls.__qualname__, value.name]}
        raise TVMError(f"save_json requires nodes and plain values, got {type(value).__name__}")

    def state(self, value: Any) -> Any:
        is_list = type(value) is list
        return {"list": [self.value(item) for item in value]} if is_list else self.value(value)

    def node(self, node: Any) -> int:
        known = self.index.get(id(node))
        if known is not None:
            return known
        if (state := _STATE_FIELDS.get(type(node))) is not None:
            key, names = state
            fields = {name: self.state(getattr(node, name)) for name in names}
        elif isinstance(node, Op):
            key, fields = node.type_key, {"name": node.name}
        else:
            key = node.type_key
            fields = {
                f.name: self.value(getattr(node, f.name))
                for f in node.node_fields
                if f.expression is None and not (f.role is Role.IGNORED and f.name[0] == "_")
            }
        self.nodes.append({"type_key": key, "attrs": fields})
        self.kept.append(node)
        index = self.index[id(node)] = len(self.nodes) - 1
        return index


def _document(json_str: str) -> dict[str, Any]:
    if (
        _nesting(json_str) > _DEEPEST
    ):  # the parser's own recursion is of C, which no limit guards here
        raise ValueError(f"it is nested more than {_DEEPEST} levels deep")
    document = json.loads(json_str)
    wanted = ("root", "nodes", "b64ndarrays" if "b64ndarrays" in document else "arrays")
    missing = [key for key in wanted if key not in document]
    if not isinstance(document, dict) or missing:
        kind = "an object" if isinstance(document, dict) else type(document).__name__
        raise ValueError(f"{kind} without {', '.join(missing) or 'nodes'}")
    return document


def _nesting(json_str: str) -> int:
    depth = deepest = 0
    for sign in _BRACKETS.findall(json_str):
        depth += (sign in ("[", "{")) - (sign in ("]", "}"))
        deepest = max(deepest, depth)
    return deepest


class _Reader:
    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = arrays
        self.nodes: list[Any] = []

    def add(self, item: dict[str, Any]) -> None:
        key = item["type_key"]
        if key in _STATE_TYPES:
            self.nodes.append(self.state(_STATE_TYPES[key], item["attrs"]))
            return
        cls = NODE_TYPES.get(key)
        if cls is None:
            raise TVMError(f"load_json found the type key {key!r}", hint=suggest(key, NODE_TYPES))
        values = {name: self.value(value) for name, value in item["attrs"].items()}
        if cls is Op:
            self.nodes.append(Op.get(values["name"]))
        elif key == "IRModule":
            self.nodes.append(cls(*values.values()))
        else:
            self.nodes.append(cls._make(**values))

    def state(self, cls: type[Any], attributes: dict[str, Any]) -> Any:
        key, names = _STATE_FIELDS[cls]
        if set(attributes) != set(names):
            raise ValueError(f"{key} needs {', '.join(names)}, got {', '.join(attributes)}")
        made = object.__new__(cls)
        for name, value in attributes.items():
            object.__setattr__(made, name, self.value(value))
        for name in _FORGOTTEN[cls]:
            object.__setattr__(made, name, None)
        return made

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple([self.value(item) for item in value])
        if not isinstance(value, dict):
            return value
        ((tag, content),) = value.items()
        if tag == "node":
            return self.nodes[content]
        if tag == "map":
            return {self.value(k): self.value(v) for k, v in content}
        if tag == "list":
            return [self.value(item) for item in content]
        if tag == "dtype":
            return dtype(content)
        if tag == "scalable":
            return ScalableLanes(content)
        if tag == "float":
            return float(content)
        if tag == "enum":
            module, name, member = content
            return _enumeration(module, name)[member]
        if tag == "named":
            module, name, member = content
            return _class(module, name).get(member)
        if tag == "array":
            return array(self.arrays[content])
        if tag == "c_module":
            *described, imports = content
            made = csource_module(*described)
            for module in imports:
                made.import_module(self.value(module))
            return made
        raise ValueError(f"unknown tag {tag!r}")


def _enumeration(module: str, name: str) -> type[Enum]:
    found = _class(module, name)
    if not issubclass(found, Enum):
        raise ValueError(f"there is no enumeration {module}.{name}")
    return found


def _class(module: str, name: str) -> type[Any]:
    try:
        found = getattr(importlib.import_module(module), name) if module[:4] == "tvm." else None
    except ImportError:
        found = None
    if not isinstance(found, type):
        raise ValueError(f"there is no class {module}.{name}")
    return found


def _encode_array(array: Any) -> str:
    stream = io.BytesIO()
    name = str(array.dtype)
    plain = array if array.dtype.kind != "V" else array.view(f"u{array.dtype.itemsize}")
    np.save(stream, plain)
    return f"{name}:{base64.b64encode(stream.getvalue()).decode()}"


def _decode_array(text: str) -> Any:
    name, _, data = text.partition(":")
    stream = io.BytesIO(base64.b64decode(data))
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array in an unknown form")
    shape, is_fortran, kind = np.lib.format.read_array_header_1_0(stream)
    content = stream.read()
    # the shape may be wrong: it must not decide how much memory is taken
    if kind.hasobject or len(content) != math.prod(shape) * kind.itemsize:
        raise ValueError(f"an array of shape {shape} with {len(content)} bytes")
    array = np.frombuffer(bytearray(content), kind).reshape(shape, order="F" if is_fortran else "C")
    return array if str(array.dtype) == name else array.view(np.dtype(name))
