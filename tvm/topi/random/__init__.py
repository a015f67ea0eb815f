"""Random numbers by Threefry."""

from ..argument_checks import guarded
from .kernel import (
    multinomial,
    normal,
    threefry_generate,
    threefry_split,
    threefry_test_wrapping,
    uniform,
)

__all__ = [
    "multinomial",
    "normal",
    "threefry_generate",
    "threefry_split",
    "threefry_test_wrapping",
    "uniform",
]

globals().update(guarded(__name__, globals()))
