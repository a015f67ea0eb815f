"""Every pass, at every place of lowering, on a few programs."""

from __future__ import annotations

import pytest

from .every_pass import ZOO, check


@pytest.mark.parametrize("number", [0, 3, 11, 14])
def test_every_pass_leaves_a_program_that_computes_the_same(number: int) -> None:
    assert check(ZOO[number]) == []
