"""Random legal schedules compute what the unscheduled program does, in the interpreter, LLVM and C."""

import pytest

from ..agreement import BATCH, disagreements


@pytest.mark.parametrize("first", range(0, 2000, BATCH))
def test_random_schedules_agree_with_the_unscheduled_programs(first: int) -> None:
    targets = ("llvm", "c") if first % 500 == 0 else ("llvm",)
    assert disagreements(range(first, first + BATCH), targets) == []
