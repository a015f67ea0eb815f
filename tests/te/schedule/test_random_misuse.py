"""Whatever is written, a schedule is rejected with an error of ours or computes the right numbers."""

import pytest

from ..random_misuse import outcome


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_wild_schedules_are_rejected_or_right(first: int) -> None:
    assert [text for seed in range(first, first + 30) if (text := outcome(seed))] == []
