"""Paths from objects to their parts."""

from __future__ import annotations

import pytest

import tvm
from tvm.runtime.object_path import (
    ArrayIndexPath,
    AttributeAccessPath,
    ObjectPath,
    RootPath,
    UnknownAttributeAccessPath,
)


def test_steps_show_in_the_text() -> None:
    root = ObjectPath.root()
    assert str(root) == "<root>"
    assert str(root.attr("body").array_index(1).map_value("k")) == '<root>.body[1]["k"]'
    assert str(root.attr(None)) == "<root>.<unknown attribute>"
    assert str(root.missing_array_element(3)) == "<root>[<missing element #3>]"
    assert str(root.missing_map_entry()) == "<root>[<missing entry>]"
    assert str(ObjectPath.root("mod").attr("x")) == "mod.x"


def test_steps_have_classes_parents_and_lengths() -> None:
    root = ObjectPath.root()
    path = root.attr("body").array_index(2)
    assert isinstance(root, RootPath)
    assert isinstance(path, ArrayIndexPath)
    assert isinstance(path.parent, AttributeAccessPath)
    assert isinstance(root.attr(None), UnknownAttributeAccessPath)
    assert (len(root), len(path)) == (1, 3)
    assert root.parent is None


def test_equal_steps_make_equal_paths() -> None:
    paths = [ObjectPath.root().attr("a").array_index(0) for _ in range(2)]
    assert paths[0] == paths[1]
    assert hash(paths[0]) == hash(paths[1])
    assert paths[0] != ObjectPath.root().attr("a").array_index(1)
    assert paths[0] != ObjectPath.root().attr("a").map_value(0)


def test_prefixes() -> None:
    path = ObjectPath.root().attr("a").array_index(0)
    assert path.get_prefix(2) == ObjectPath.root().attr("a")
    assert path.get_prefix(2).is_prefix_of(path)
    assert not path.is_prefix_of(path.get_prefix(2))
    assert not ObjectPath.root().attr("b").is_prefix_of(path)
    for length, message in ((0, "Prefix length must be"), (4, "prefix longer than the path")):
        with pytest.raises(IndexError, match=message):
            path.get_prefix(length)


def test_the_global_functions_give_paths() -> None:
    root = tvm.get_global_func("node.ObjectPathRoot")(None)
    path = tvm.get_global_func("node.ObjectPathAttr")(root, "body")
    assert str(path) == "<root>.body"
    assert tvm.get_global_func("node.ObjectPathLength")(path) == 2
    mismatch = tvm.get_global_func("node.GetFirstStructuralMismatch")([1], [2], False)
    assert str(mismatch.lhs_path) == "<root>[0]"
