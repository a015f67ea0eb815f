"""Random networks compute at level 3 what they compute at level 0."""

from __future__ import annotations

import pytest

from .random_networks import check


@pytest.mark.parametrize("is_quantised", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_random_networks_agree(seed: int, is_quantised: bool) -> None:
    text = check(seed, is_quantised)
    assert text is None, text
