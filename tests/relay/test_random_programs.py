"""Random programs compute the same in every way to run them, and are read again from their text."""

from __future__ import annotations

import pytest

from .random_programs import check


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_programs_agree(first: int) -> None:
    for seed in range(first, first + 20):
        failure = check(seed)
        assert failure is None, f"seed {seed}, {failure.where}:\n{failure.text}"
