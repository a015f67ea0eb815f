"""The tensors of random relax programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

EXACT, ROUGH = True, False


@dataclass
class Operand:
    """A tensor of a program, and its elements."""

    expr: Any
    array: np.ndarray
    is_exact: bool  # so that comparisons and roundings of it are reliable


Draw = Callable[[Any], "Operand | None"]


def is_float(x: Operand) -> bool:
    return x.array.dtype.kind == "f"


def is_number(x: Operand) -> bool:
    return x.array.dtype.kind in "fi"


def is_exact_number(x: Operand) -> bool:
    return is_number(x) and x.is_exact


def has_axes(x: Operand) -> bool:
    return x.array.ndim > 0
