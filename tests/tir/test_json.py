"""Programs as JSON, and pickled."""

from __future__ import annotations

import pickle

import pytest

from tests.script.goldens import GOLDENS
from tvm import tir
from tvm.ir import assert_structural_equal, load_json, save_json, structural_hash
from tvm.script import from_source


@pytest.mark.parametrize("name", GOLDENS)
def test_programs_survive_json(name: str) -> None:
    program = from_source(GOLDENS[name])
    again = load_json(save_json(program))
    assert_structural_equal(program, again)
    assert structural_hash(program) == structural_hash(again)
    assert again.script() == program.script()


@pytest.mark.parametrize("name", GOLDENS)
def test_programs_survive_pickling(name: str) -> None:
    program = from_source(GOLDENS[name])
    assert_structural_equal(program, pickle.loads(pickle.dumps(program)))


def test_classic_type_keys() -> None:
    assert tir.IntImm.type_key == "IntImm"
    assert tir.Add.type_key == "tir.Add"
    assert tir.For.type_key == "tir.For"
    assert tir.Range.type_key == "Range"
    assert tir.Buffer.type_key == "tir.Buffer"
    assert tir.Layout.type_key == "tir.Layout"
