"""The pieces that scripts are read by, under their classic names."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tvm import te, tir
from tvm.te.hybrid import calls, parser, preprocessor, utils

TEXT = """
def scaled(a):
    b = output_tensor((8,), "float32")
    for i in range(8):
        t = a[i] * factor
        b[i] = t + t
    return b
"""


def usage_of(text: str, **symbols: Any) -> Any:
    return preprocessor.determine_variable_usage(ast.parse(text), [None], symbols, {})


def test_parse_python_gives_the_parser_with_the_body() -> None:
    found = parser.parse_python(TEXT, [te.placeholder((8,), name="a")], {"factor": 2.0}, {})
    assert isinstance(found, parser.HybridParser)
    assert isinstance(found.parsed_body, tir.For) and found.func_name == "scaled"
    assert [tensor.shape[0].value for tensor in found.tensors()] == [8]


def test_usage_tells_scopes_and_uses() -> None:
    usage = usage_of(TEXT, factor=2.0)
    assert list(usage) == ["b", "t"]
    store, scope, uses = usage["t"]
    assert store.lineno == 5 and isinstance(scope, ast.For) and uses == {ast.Load}
    assert isinstance(usage["b"][1], ast.FunctionDef)


@pytest.mark.parametrize("body, message", [
    ("for i in range(8):\n  i = 3", "a store into i"),
    ("for i in range(8):\n  t = 1\n t = t + 1", "variables inside the loop that defines them"),
    ("t += 1", "defined before they are changed"),
    ("t = nobody", "nobody"),
])  # fmt: skip
def test_usage_rejects_variables_that_cannot_be(body: str, message: str) -> None:
    with pytest.raises(te.hybrid.HybridError, match=message):
        usage_of(f"def f(a):\n {body}\n return a")


def test_variables_that_were_not_determined_are_rejected() -> None:
    read = parser.HybridParser([te.placeholder((8,))], {}, {"factor": 2.0}, {})
    with pytest.raises(te.hybrid.HybridError, match="variables that were determined"):
        read.visit(ast.parse(TEXT))


def test_symbols_are_of_their_kind() -> None:
    read = parser.HybridParser([], None, {}, {})
    buffer = tir.decl_buffer((4,), name="m")
    read.add_symbol("m", parser.Symbol.GlobalBuffer, buffer)
    assert read.visit(ast.parse("m[1]").body[0].value).buffer is buffer
    with pytest.raises(TypeError, match="requires a Buffer"):
        read.add_symbol("n", parser.Symbol.Input, 3)


def test_calls_take_their_name_and_arguments() -> None:
    n = tir.Var("n", "int32")
    axis, low, extent, kind = calls.bind("bind", ["threadIdx.x", n])
    assert (axis.thread_tag, low.value, extent, kind) == ("threadIdx.x", 0, n, None)
    assert calls.len("len", [tir.decl_buffer((5, 2))]).value == 5
    assert str(calls.ceil_div("ceil_div", [n, 4])) == "(n + 4 - 1) // 4"
    assert calls.inf("inf", ["int8"]).value == 127 and calls.ninf("ninf", ["int8"]).value == -128
    assert calls.max_num_threads("max_num_threads", []).value == 1
    with pytest.raises(TypeError, match="ceil_div requires 2 arguments, got 1"):
        calls.ceil_div("ceil_div", [n])


def test_bodies_read_and_write_other_buffers() -> None:
    body = parser.parse_python(TEXT, [te.placeholder((8,))], {"factor": 2.0}, {})
    (_, given), other = body.inputs[0], tir.decl_buffer((8,), name="other")
    changed = utils.replace_io(body.parsed_body, {given: other})
    assert "other" in str(changed) and "other" not in str(body.parsed_body)
    assert utils.is_docstring(ast.parse("'text'").body[0])
    assert isinstance(utils.make_nop(), tir.Evaluate)


def test_lists_of_statements_become_one() -> None:
    memory = tir.decl_buffer((1,), "int32")
    store = lambda node: tir.BufferStore(memory, node.value.value, [0])  # noqa: E731
    made = parser.visit_list_to_block(store, ast.parse("1\n2").body)
    assert isinstance(made, tir.SeqStmt)
    assert [part.value.value for part in made.seq] == [1, 2]


def test_functions_inside_of_scripts_are_rejected() -> None:
    @te.hybrid.script
    def outer(a: Any) -> Any:
        def inner() -> None:
            pass

        return a

    with pytest.raises(te.hybrid.HybridError, match="FunctionDef statement"):
        outer(te.placeholder((8,)))
