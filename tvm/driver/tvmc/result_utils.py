"""Reading results."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm.driver.tvmc.model import TVMCResult


def get_top_results(result: TVMCResult, max_results: int) -> np.ndarray[Any, Any]:
    """Places and values of the largest elements of the first output.

    Returns
    -------
    A matrix of two rows: the places, and the values in descending order.
    """
    scores = np.asarray(result.outputs["output_0"]).reshape(-1)
    order = np.argsort(-scores.astype("float64"), kind="stable")[:max_results]
    return np.array([order, scores[order]])
