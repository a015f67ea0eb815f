"""Random numbers by Threefry."""

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
