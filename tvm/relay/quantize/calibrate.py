"""The ranges of values: what is larger than a threshold is clipped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay.build_module import create_executor
from tvm.relay.expr import Tuple
from tvm.relay.function import Function
from tvm.relay.quantize.config import QConfig

Array = np.ndarray[Any, Any]
Thresholds = dict[int, float]  # by the identity of a layer's input
_BINS = 2048
_LEVELS = 128


def weight_threshold(weight: Array, mode: str) -> float:
    """The largest magnitude of a weight, or the next power of two."""
    largest = float(np.abs(weight).max(initial=0)) or 1.0
    return float(2 ** np.ceil(np.log2(largest))) if mode == "power2" else largest


def collect_inputs(
    func: Function,
    values: Sequence[RelayExpr],
    dataset: Iterable[Mapping[str, Any]],
    chunk_by: int = -1,
) -> list[Array]:
    """All elements that some expressions of a function had over a data set.

    No more than `chunk_by` of them are computed in one run, so that memory suffices.
    """
    if 0 < chunk_by < len(values):
        batches = list(dataset)
        chunks = [values[i : i + chunk_by] for i in range(0, len(values), chunk_by)]
        return [array for chunk in chunks for array in collect_inputs(func, chunk, batches)]
    probe = func.replace(body=Tuple(values), ret_type=None)
    run = create_executor("graph").evaluate(probe)
    found: list[list[Array]] = [[] for _ in values]
    for batch in dataset:
        for kept, array in zip(found, run(**batch), strict=True):
            kept.append(array.numpy().ravel())
    return [np.concatenate(arrays) for arrays in found]


def input_threshold(samples: Array, config: QConfig) -> float:
    """The threshold of values, by the way that the options name."""
    magnitudes = np.abs(samples)
    largest = float(magnitudes.max(initial=0)) or 1.0
    if config.calibrate_mode == "max":
        return largest
    if config.calibrate_mode == "percentile":
        return float(np.percentile(magnitudes, 99.99)) or largest
    return _least_divergence(magnitudes, largest)


def _least_divergence(magnitudes: Array, largest: float) -> float:
    """The threshold for which the quantised values tell least of another distribution.

    Of the histogram's first bins, with the rest clipped into the last one, each group that one
    level stands for is taken as even; the relative entropy of the two is least at the result.
    """
    counts, edges = np.histogram(magnitudes, bins=_BINS, range=(0, largest))
    best, found = np.inf, largest
    for bins in range(_LEVELS, _BINS + 1, 16):
        clipped = counts[:bins].astype("float64")
        clipped[-1] += counts[bins:].sum()
        divergence = _divergence(clipped, _evened(counts[:bins], bins))
        if divergence < best:
            best, found = divergence, float(edges[bins])
    return found


def _evened(counts: Array, bins: int) -> Array:
    """Each level's count spread evenly over its bins that are not empty."""
    level = np.arange(bins) * _LEVELS // bins
    used = counts > 0
    total = np.bincount(level, counts, _LEVELS)
    places = np.bincount(level, used, _LEVELS)
    share = np.divide(total, places, out=np.zeros(_LEVELS), where=places > 0)
    return np.where(used, share[level], 0.0)


def _divergence(p: Array, q: Array) -> float:
    """The relative entropy of two histograms, empty bins of `q` made a little full."""
    q = np.where((p > 0) & (q == 0), 1e-4, q)
    p, q = p / p.sum(), q / max(q.sum(), 1e-12)
    where = p > 0
    return float(np.sum(p[where] * np.log(p[where] / q[where])))
