"""What each pass of lowering leaves is checked."""

from collections.abc import Iterator

import pytest

from tvm import knobs


@pytest.fixture(autouse=True)
def stages_are_verified() -> Iterator[None]:
    with knobs.VERIFY_STAGES.scope(True):
        yield
