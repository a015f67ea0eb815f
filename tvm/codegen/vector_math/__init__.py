"""Mathematical functions of float vectors as TIR expressions.

Each is a range reduction and a polynomial, at most 2 units in the last place off (pow 4), and right for
infinities, NaN and denormals. They hold for any number of lanes. ``docs/vector_math.md`` has the errors.
"""

from .bits import float_of, processor_without
from .neighbour import next_short_float
from .table import FLOAT32_FUNCTIONS, FLOAT64_FUNCTIONS, MathFunction

__all__ = [
    "FLOAT32_FUNCTIONS",
    "FLOAT64_FUNCTIONS",
    "MathFunction",
    "float_of",
    "next_short_float",
    "processor_without",
]
