"""Tables of converters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tvm.error import OpAttributeInvalid
from tvm.relay import var
from tvm.relay.frontend.converters import Converters
from tvm.relay.frontend.onnx.registry import BySignature, OnnxNode


def test_rows_serve_all_names_of_their_keys() -> None:
    table: Converters[Callable[..., Any]] = Converters("aten::")
    table.rows({"abs prims::abs": abs})
    assert dict(table) == {"aten::abs": abs, "prims::abs": abs}


def test_an_operator_has_one_converter() -> None:
    table: Converters[Callable[..., Any]] = Converters()
    table.op("Abs")(abs)
    with pytest.raises(AssertionError, match="Abs has a converter"):
        table.op("Abs")(abs)


def _onnx_node(inputs: list[Any], **attrs: Any) -> OnnxNode:
    return OnnxNode("Op", "n", inputs, attrs, 13, 1, {}, lambda graph, bound: [])


def test_converters_of_onnx_say_by_their_signature_what_they_take() -> None:
    def convert(
        a: Any, b: Any = None, alpha: float = 0.5, keep: bool = True, *, axis: Any = None, node: Any
    ) -> Any:
        return a, b, alpha, keep, axis, node.name

    x, y = var("x"), var("y")
    assert BySignature(convert)(_onnx_node([x])) == (x, None, 0.5, True, None, "n")
    found: Any = BySignature(convert)(_onnx_node([x, y], keep=0, axis=2, more=1))
    assert found == (x, y, 0.5, False, 2, "n")
    variadic: Any = BySignature(lambda *inputs, axis: (*inputs, axis))
    assert variadic(_onnx_node([x, None, y], axis=1)) == (x, y, 1)


def test_what_a_converter_of_onnx_requires_is_told() -> None:
    def convert(x: Any, *, axis: int) -> Any:
        return x, axis

    with pytest.raises(OpAttributeInvalid, match="Op n requires a tensor as input 0, got nothing"):
        BySignature(convert)(_onnx_node([], axis=1))
    with pytest.raises(OpAttributeInvalid, match="Op n requires the attribute 'axis'"):
        BySignature(convert)(_onnx_node([var("x")]))
