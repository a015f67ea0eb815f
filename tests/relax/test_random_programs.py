"""A few random programs; `python -m tests.relax.random_programs` runs as many as one likes."""

from __future__ import annotations

import pytest

from .random_programs import check


@pytest.mark.parametrize("seed", range(14))
def test_random_programs_give_what_numpy_gives(seed: int) -> None:
    check(seed)
