"""How good an order is in which candidates were tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.autotvm.utils import get_rank

Curve = np.ndarray[Any, Any]


def max_curve(trial_scores: Any) -> Curve:
    """The best score of the first i trials, for each i.

    Parameters
    ----------
    trial_scores : list of float
        The scores in the order of trials.
    """
    return np.maximum.accumulate(np.asarray(trial_scores, dtype="float64"))


def mean_curve(trial_scores: Any) -> Curve:
    """The mean score of the first i trials, for each i.

    Parameters
    ----------
    trial_scores : list of float
        The scores in the order of trials.
    """
    scores = np.asarray(trial_scores, dtype="float64")
    return np.cumsum(scores) / np.arange(1, len(scores) + 1)


def recall_curve(trial_ranks: Any, top: int | None = None) -> Curve:
    """How much of the ``top`` best are among the first i trials, for each i.

    Parameters
    ----------
    trial_ranks : list of int
        The true places of the trials, 0 being the best.
    top : int, optional
        How many count as best; by default, for each i, the i best.
    """
    ranks = np.asarray(trial_ranks)
    if top is not None:
        return np.cumsum(ranks < top) / top
    return np.array([np.mean(ranks[:count] < count) for count in range(1, len(ranks) + 1)])


def cover_curve(trial_ranks: Any) -> Curve:
    """The largest k of which the k best are among the first i trials, over i, for each i.

    Parameters
    ----------
    trial_ranks : list of int
        The true places of the trials, 0 being the best.
    """
    curve = []
    seen: set[int] = set()
    covered = 0
    for count, rank in enumerate(trial_ranks, 1):
        seen.add(int(rank))
        while covered in seen:
            covered += 1
        curve.append(covered / count)
    return np.array(curve)


def average_recall(preds: Sequence[float], labels: Sequence[float], N: int) -> float:
    """The mean of :func:`recall_curve` over the N candidates that are predicted to be best.

    Parameters
    ----------
    preds : list of float
        Predicted scores.
    labels : list of float
        True scores.
    N : int
        How many candidates count.
    """
    trials = np.argsort(-np.asarray(preds))
    ranks = get_rank(np.asarray(labels)[trials])
    return float(np.sum(recall_curve(ranks)[:N]) / N)
