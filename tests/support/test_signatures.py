"""Functions that differ from another in their name and some defaults."""

from __future__ import annotations

from inspect import signature

import pytest

from tvm.support.signatures import with_defaults


def scaled(value: int, factor: int = 2, offset: int = 0) -> int:
    """value * factor + offset"""
    return value * factor + offset


@with_defaults(scaled, factor=3)
def tripled() -> None:
    """value * 3 + offset"""


def test_other_defaults_hold() -> None:
    assert tripled(5) == 15
    assert tripled(5, 2, 1) == 11
    assert scaled(5) == 10


def test_names_and_signature() -> None:
    assert (tripled.__name__, tripled.__doc__) == ("tripled", "value * 3 + offset")
    assert signature(tripled).parameters["factor"].default == 3
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'value'"):
        tripled()  # type: ignore[call-arg]
