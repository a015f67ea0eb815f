"""Reading results."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.driver.tvmc.model import TVMCResult


def get_top_results(result: TVMCResult, max_results: int) -> np.ndarray[Any, Any]:
    """Places and values of the largest elements of the first output; of a matrix, those of its first row.

    Returns
    -------
    A matrix of two rows: the places, and the values in descending order.
    """
    scores = np.atleast_1d(result.outputs["output_0"])
    first = scores[:1] if scores.ndim == 2 else scores
    return largest(TVMCResult({"output_0": first}, None), max_results)


def largest(result: TVMCResult, max_results: int) -> np.ndarray[Any, Any]:
    """Places along the last axis and values of the largest elements of the first output.

    Returns
    -------
    A matrix of two rows: the places, and the values in descending order; one for each position of
    the other axes, if there are several.
    """
    scores = np.atleast_1d(result.outputs["output_0"])
    scores = scores.reshape([n for n in scores.shape[:-1] if n != 1] + [scores.shape[-1]])
    order = np.argsort(-scores.astype("float64"), axis=-1, kind="stable")[..., :max_results]
    return np.stack([order, np.take_along_axis(scores, order, axis=-1)], axis=-2)
