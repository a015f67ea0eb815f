"""Nodes as global functions ``node.*``, under their classic names.

Attributes of native objects, which C++ libraries declare, are found by the same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm._ffi import _core, native_object
from tvm._ffi.registry import register_func
from tvm.error import suggest
from tvm.runtime.object import Object
from tvm.runtime.object_path import ObjectPath, ObjectPathPair

from .attrs import make_node
from .node import NODE_TYPES, Node
from .serialize import load_json, save_json
from .structural import (
    assert_structural_equal,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
)


def attribute_names(node: Any) -> list[str]:
    """The names of a node's fields or of a native object's attributes."""
    if isinstance(node, Node):
        return [field.name for field in type(node).node_fields]
    if isinstance(node, Object) and node._native is not None:
        return native_object.attribute_names(node)
    return []


def list_attribute_names(node: Any) -> Any:
    """A function of the index of a name; of -1, how many there are."""
    names = attribute_names(node)
    return _core.make_function(lambda index: len(names) if index < 0 else names[index])


def get_attribute(node: Any, name: str) -> Any:
    """The field or attribute of that name."""
    names = attribute_names(node)
    if name not in names:
        hint = suggest(name, names)
        text = f"{type(node).__name__} has no attribute {name!r}"
        raise AttributeError(f"{text}; {hint}" if hint else text)
    return getattr(node, name)


def make_from_attributes(type_key: str, *names_and_values: Any) -> Any:
    """The node, or native object, of that type key with these attributes."""
    if type_key not in NODE_TYPES:
        return native_object.make_native(type_key, *names_and_values)
    return make_node(
        type_key, **dict(zip(names_and_values[::2], names_and_values[1::2], strict=True))
    )


def _compare(lhs: Any, rhs: Any, assert_mode: bool = False, map_free_vars: bool = False) -> bool:
    if assert_mode:
        assert_structural_equal(lhs, rhs, map_free_vars)
        return True
    return structural_equal(lhs, rhs, map_free_vars)


def _mismatch(lhs: Any, rhs: Any, map_free_vars: bool = False) -> ObjectPathPair | None:
    paths = get_first_structural_mismatch(lhs, rhs, map_free_vars)
    return None if paths is None else ObjectPathPair(*paths)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "AsRepr": repr,
    "AsLegacyRepr": str,
    "NodeListAttrNames": list_attribute_names,
    "NodeGetAttr": get_attribute,
    "MakeNode": make_from_attributes,
    "SaveJSON": save_json,
    "LoadJSON": load_json,
    "StructuralEqual": _compare,
    "StructuralHash": structural_hash,
    "GetFirstStructuralMismatch": _mismatch,
    "ObjectPathRoot": ObjectPath.root,
    "ObjectPathEqual": ObjectPath.__eq__,
    "ObjectPathLength": ObjectPath.__len__,
    "ObjectPathGetParent": lambda path: path.parent,
    "ObjectPathGetPrefix": ObjectPath.get_prefix,
    "ObjectPathIsPrefixOf": ObjectPath.is_prefix_of,
    "ObjectPathAttr": ObjectPath.attr,
    "ObjectPathArrayIndex": ObjectPath.array_index,
    "ObjectPathMissingArrayElement": ObjectPath.missing_array_element,
    "ObjectPathMapValue": ObjectPath.map_value,
    "ObjectPathMissingMapEntry": ObjectPath.missing_map_entry,
    "ObjectPathPairLhsPath": lambda pair: pair.lhs_path,
    "ObjectPathPairRhsPath": lambda pair: pair.rhs_path,
}

for _name, _function in FUNCTIONS.items():
    register_func(f"node.{_name}", _core.make_function(_function), override=True)
