"""Paddings as the operators' attributes have them."""

from __future__ import annotations

from collections.abc import Sequence

from ..attributes import names_arguments, padding_pairs


@names_arguments
def get_pad_tuple1d(padding: int | Sequence[int]) -> tuple[int, ...]:
    """(left, right), from one number or two."""
    return padding_pairs(padding, 1)


@names_arguments
def get_pad_tuple2d(padding: int | Sequence[int]) -> tuple[int, ...]:
    """(top, left, bottom, right), from one number, two or four."""
    return padding_pairs(padding, 2)


@names_arguments
def get_pad_tuple3d(padding: int | Sequence[int]) -> tuple[int, ...]:
    """(front, top, left, back, bottom, right), from one number, three or six."""
    return padding_pairs(padding, 3)
