"""Random schedules agree with the interpreter without optimization, too."""

import pytest

from tests.te.agreement import BATCH, disagreements


@pytest.mark.parametrize("first", [5000, 5000 + BATCH])
def test_unoptimized_code_agrees_with_the_interpreter(first: int) -> None:
    assert disagreements(range(first, first + BATCH), ["llvm -opt-level=0"]) == []
