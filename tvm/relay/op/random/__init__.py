"""Random numbers by a generator whose state is a value."""

from .kernel import (
    multinomial,
    normal,
    threefry_generate,
    threefry_key,
    threefry_split,
    uniform,
)
