"""Random numbers by a generator whose state is a value."""

from .kernel import (
    MultinomialAttrs,
    NormalAttrs,
    ThreefryGenerateAttrs,
    UniformAttrs,
    multinomial,
    normal,
    threefry_generate,
    threefry_key,
    threefry_split,
    uniform,
)

__all__ = [
    "MultinomialAttrs",
    "NormalAttrs",
    "ThreefryGenerateAttrs",
    "UniformAttrs",
    "multinomial",
    "normal",
    "threefry_generate",
    "threefry_key",
    "threefry_split",
    "uniform",
]
