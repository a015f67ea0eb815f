"""Sums of products in Einstein's notation."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from tvm import te
from tvm.error import RuntimeValueError

from .utils import dims


def einsum(subscripts: str, *operand: te.Tensor) -> te.Tensor:
    """The sum of products that numpy's notation describes.

    Parameters
    ----------
    subscripts : str
        Such as "bij,bjk->bik"; "..." stands for axes that broadcast.
    operand : te.Tensor
        The factors.
    """
    terms, output = einsum_letters(subscripts, [len(x.shape) for x in operand])
    extents = einsum_extents(terms, [dims(x.shape) for x in operand], subscripts)
    summed = [c for c in dict.fromkeys("".join(terms)) if c not in output]
    axes = [te.reduce_axis((0, extents[c]), name=f"k{c}") for c in summed]

    def element(*i: Any) -> Any:
        at = dict(zip(output, i, strict=True)) | {
            c: axis.var for c, axis in zip(summed, axes, strict=True)
        }
        value: Any = None
        for x, term in zip(operand, terms, strict=True):
            # an axis of extent 1 broadcasts
            index = [0 if e == 1 else at[c] for c, e in zip(term, dims(x.shape), strict=True)]
            factor = x(*index)
            value = factor if value is None else value * factor
        return te.sum(value, axis=axes) if axes else value

    return te.compute([extents[c] for c in output], element, name="T_einsum", tag="einsum")


def einsum_letters(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """One letter an axis for each operand and the result, ellipses written out.

    Raises
    ------
    ValueError
        If the notation does not fit the ranks.
    """
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise RuntimeValueError(
            f"einsum {subscripts!r} takes {len(terms)} operands, got {len(ranks)}"
        )
    free = [c for c in string.ascii_letters if c not in subscripts]
    extra = max([r - len(t) + 3 for t, r in zip(terms, ranks, strict=True) if "..." in t] + [0])
    dots = "".join(free[:extra])
    found = []
    for term, rank in zip(terms, ranks, strict=True):
        full = (
            term.replace("...", dots[extra - (rank - len(term) + 3) :]) if "..." in term else term
        )
        if len(full) != rank:
            raise RuntimeValueError(
                f"einsum {subscripts!r} names {len(full)} axes of a tensor of rank {rank}"
            )
        found.append(full)
    letters = "".join(found)
    if not arrow:
        named = [c for c in sorted(set(letters) - set(dots)) if letters.count(c) == 1]
        right = "..." * bool(dots) + "".join(named)
    output = right.replace("...", dots)
    unknown = set(output) - set(letters)
    if unknown or len(set(output)) != len(output):
        raise RuntimeValueError(
            f"einsum {subscripts!r} requires each letter of the result once in a factor"
        )
    return found, output


def einsum_extents(
    terms: Sequence[str], shapes: Sequence[Sequence[Any]], subscripts: str
) -> dict[str, Any]:
    """The extent of each letter.

    Raises
    ------
    ValueError
        If two factors do not agree on one.
    """
    extents: dict[str, Any] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, extent in zip(term, shape, strict=True):
            have = extents.get(letter, 1)
            both = isinstance(have, int) and isinstance(extent, int)
            if both and have != extent and 1 not in (have, extent):
                raise RuntimeValueError(
                    f"einsum {subscripts!r} has {letter} of extent {have} and {extent}"
                )
            extents[letter] = extent if isinstance(have, int) and have == 1 else have
    return extents
