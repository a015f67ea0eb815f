"""Errors of the parser: what is wrong, the line, a caret below the place."""

from __future__ import annotations

import textwrap

import pytest

from tvm.error import DiagnosticError
from tvm.script import from_source
from tvm.script import tir as T

CASES = {
    "an unknown name": (
        """
        A[0] = A[j] + 1
        """,
        "name 'j' is not defined",
        "A[0] = A[j] + 1",
        "         ^",
    ),
    "a wrong number of indices": (
        """
        A[0, 1] = 1
        """,
        "buffer A requires 1 indices, got 2",
        "A[0, 1] = 1",
        "^^^^^^^^^^^",
    ),
    "a store of another type": (
        """
        A[0] = A.data
        """,
        "a store to A requires int32, got handle; hint: convert it",
        "A[0] = A.data",
        "^^^^^^^^^^^^^",
    ),
    "an unknown word": (
        """
        x = T.foo(3)
        """,
        "T has no name 'foo'",
        "x = T.foo(3)",
        "    ^^^^^",
    ),
    "a loop over a list": (
        """
        for i in [1, 2]:
            A[i] = 1
        """,
        "a loop requires range, T.serial",
        "for i in [1, 2]:",
        "         ^^^^^^",
    ),
    "too many loop variables": (
        """
        for i, j in T.grid(4):
            A[i] = j
        """,
        "the loop requires 1 variables, got 2",
        "for i, j in T.grid(4):",
        "    ^^^^",
    ),
    "reads outside a block": (
        """
        T.reads(A[0])
        """,
        "T.reads requires T.block around it",
        "T.reads(A[0])",
        "^^^^^^^^^^^^^",
    ),
    "axes of what is no loop": (
        """
        with T.block("b"):
            v = T.axis.remap("S", [n])
            A[v] = 1
        """,
        "T.axis.remap requires variables of loops, got n",
        '    v = T.axis.remap("S", [n])',
        "        ^^^^^^^^^^^^^^^^^^^^^^",
    ),
    "a statement of another language": (
        """
        del A
        """,
        "a Delete statement is not part of the language",
        "del A",
        "^^^^^",
    ),
    "a condition that is none": (
        """
        if T.Cast("float32", n):
            A[0] = 1
        """,
        "a condition requires a bool, got float32",
        'if T.Cast("float32", n):',
        "   ^^^^^^^^^^^^^^^^^^^^",
    ),
    "a value without effect": (
        """
        T.int32
        """,
        "a statement requires an effect, got a value of DTypeCall",
        "T.int32",
        "^^^^^^^",
    ),
    "a division by zero": (
        """
        A[0] = n // 0
        """,
        "floordiv requires a divisor other than zero",
        "A[0] = n // 0",
        "       ^^^^^^",
    ),
    "a store to what is no buffer": (
        """
        n[0] = 1
        """,
        "a store requires a buffer, got Var",
        "n[0] = 1",
        "^^^^^^^^",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_errors_show_the_place(name: str) -> None:
    body, message, line, caret = CASES[name]
    head = 'def f(A: T.Buffer((16,), "int32"), n: T.int32):\n'
    program = f"@T.prim_func\n{head}{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"
    with pytest.raises(DiagnosticError) as info:
        from_source(program)
    text = str(info.value)
    assert text.startswith(message), text
    lines = text.splitlines()
    shown = next(i for i, item in enumerate(lines) if item.endswith(f"|     {line}"))
    bar = lines[shown].index("|")
    assert lines[shown + 1][bar:].rstrip() == f"|     {caret}", text
    assert "tvm/" not in text


def test_errors_of_a_decorated_function_name_its_file() -> None:
    with pytest.raises(DiagnosticError, match=r"test_parser_errors\.py:\d+:\d+"):

        @T.prim_func
        def f(A: T.Buffer((4,), "int32")):
            A[0] = missing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@T.prim_func\ndef f(A):\n    T.evaluate(0)", "parameter A requires a type"),
        ("@T.prim_func\ndef f(A: 3):\n    T.evaluate(0)", "parameter A requires a type"),
        ("x = 1", "a program requires a function or a class"),
        ("", "a program requires a function or a class, got none"),
        ("@T.prim_func\ndef f(:\n", "the script is no valid Python: "),
        ("@I.ir_module\nclass M:\n    for i in x: pass", "a module requires functions"),
    ],
)
def test_other_errors(text: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message):
        from_source(text)


def test_decorators_reject_other_things() -> None:
    with pytest.raises(TypeError, match=r"T\.prim_func requires a function, got int"):
        T.prim_func(3)


def test_words_need_a_function_around_them() -> None:
    with pytest.raises(ValueError, match="no IRBuilder is in scope"):
        T.evaluate(0)
