"""Values as objects."""

from __future__ import annotations

from typing import Any

import pytest

import tvm
from tvm.runtime import ObjectGeneric, convert


class Number(ObjectGeneric):
    """Stands for an itervar or a tensor's slice, which become expressions."""

    def asobject(self) -> Any:
        return tvm.tir.const(7, "int32")


def test_containers() -> None:
    array, mapping = convert([1, [2.5], "x"]), convert({"a": [1]})
    assert isinstance(array, tvm.ir.Array) and array[-1] == "x" and array[:2] == [1, (2.5,)]
    assert isinstance(mapping, tvm.ir.Map) and mapping["a"] == (1,)


def test_generic_objects_become_objects() -> None:
    assert convert(Number()).value == 7
    assert convert(lambda value: value)(Number()).value == 7


def test_unknown_values_are_rejected() -> None:
    with pytest.raises(ValueError, match="convert needs numbers"):
        convert(object())
