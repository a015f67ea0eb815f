"""What is read from a text prints the same text, and what is printed is read to the same program."""

from __future__ import annotations

import pytest

from tvm import tir
from tvm.ir import assert_structural_equal
from tvm.script import from_source

from .goldens import GOLDENS

HEAD = "# from tvm.script import tir as T\n"


@pytest.mark.parametrize("name", GOLDENS)
def test_text_is_stable(name: str) -> None:
    program = from_source(GOLDENS[name])
    assert program.script() == HEAD + GOLDENS[name].rstrip("\n")


@pytest.mark.parametrize("name", GOLDENS)
def test_program_is_stable(name: str) -> None:
    program = from_source(GOLDENS[name])
    assert_structural_equal(program, from_source(program.script()))
    assert_structural_equal(program, from_source(program.script(syntax_sugar=False)))


def test_renewed_definitions_print_the_same() -> None:
    for text in GOLDENS.values():
        program = from_source(text)
        assert tir.stmt_functor.renew_defs(program).script() == program.script()
