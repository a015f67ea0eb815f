"""Damaged files never change an answer, and killed writers leave the old content or the new one."""

from __future__ import annotations

import pytest

from tests.fuzz import kills, silent

# those that load code have a child for some hundred cases
CASES = {
    "params": 20_000, "executable": 10_000, "graph": 10_000, "archive": 3_000, "package": 2_000,
    "library": 3_000, "own_linker": 3_000, "aot": 2_000, "object_file": 1_000, "stripped": 1_000,
}  # fmt: skip
KILLS = {"model.so": 3, "model.params": 8, "files.tar": 8, "entry": 8, "tuning.log": 8}


def test_every_kind_is_tried() -> None:
    assert CASES.keys() == silent.KINDS.keys()


@pytest.mark.parametrize("kind", CASES)
def test_damage_never_changes_an_answer(kind: str) -> None:
    outcomes = silent.count(kind, CASES[kind], seed=1)
    assert outcomes.keys() <= {silent.Rejected, silent.SAME}
    assert outcomes[silent.Rejected] > CASES[kind] // 2


@pytest.mark.parametrize("name", KILLS)
def test_a_killed_writer_leaves_a_complete_file(name: str) -> None:
    assert kills.check(name, KILLS[name], seed=1) >= 0
