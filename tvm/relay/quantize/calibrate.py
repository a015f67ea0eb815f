"""The ranges of values: what is larger than a threshold is clipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.build_module import create_executor
from tvm.relay.expr import Call, Constant, Tuple, const
from tvm.relay.function import Function
from tvm.relay.op.registry import ops
from tvm.relay.quantize.config import QAnnotateKind, QConfig, current_qconfig
from tvm.relay.transform import InferType
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import post_order, rewrite_function

Array = np.ndarray[Any, Any]
_BINS = 2048
_LEVELS = 128


def weight_threshold(weight: Array, mode: str) -> float:
    """The largest magnitude of a weight, or the next power of two."""
    largest = float(np.abs(weight).max(initial=0)) or 1.0
    return float(2 ** np.ceil(np.log2(largest))) if mode == "power2" else largest


def _collected(
    func: Function, values: Sequence[RelayExpr], batches: Sequence[Mapping[str, Any]]
) -> list[Array]:
    """All elements that some expressions of a function had over a data set."""
    probe = func.replace(body=Tuple(list(values)), ret_type=None)
    run = create_executor("graph").evaluate(probe)
    found: list[list[Array]] = [[] for _ in values]
    for batch in batches:
        for kept, array in zip(found, run(**batch), strict=True):
            kept.append(array.numpy().ravel())
    return [np.concatenate(arrays) for arrays in found]


def _simulated(func: Function) -> list[Call]:
    """What is quantised, in order."""
    return [
        node for node in post_order(func) if calls(node, ops.relay.op.annotation.simulated_quantize)
    ]


def _is_weight(call: Call) -> bool:
    return isinstance(call.args[0], Constant)


def collect_stats(
    mod: IRModule, dataset: Iterable[Mapping[str, Any]], chunk_by: int = -1
) -> Iterator[list[Array]]:
    """The elements that each value to be quantised, but weights, has over a data set.

    Parameters
    ----------
    mod : IRModule
        A network that `annotate` has marked.
    dataset : iterable of dict
        Inputs by name.
    chunk_by : int
        How many values to look at in one run, -1: all.
    """
    func = mod["main"]
    marked = {id(call): call for call in _simulated(func) if not _is_weight(call)}
    plain: dict[int, RelayExpr] = {}

    def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not calls(new, ops.relay.op.annotation.simulated_quantize):
            return new
        if id(old) in marked:
            plain[id(old)] = new.args[0]
        return new.args[0]

    bare = rewrite_function(func, rewrite)
    params = [p for p in bare.params if p.name_hint not in ("dom_scale", "clip_min", "clip_max")]
    bare = bare.replace(params=tuple(params), ret_type=None)
    values = [plain[key] for key in marked]
    size = chunk_by if chunk_by > 0 else max(len(values), 1)
    batches = list(dataset)
    for start in range(0, len(values), size):
        yield _collected(bare, values[start : start + size], batches)


def calibrate(
    dataset: Iterable[Mapping[str, Any]] | None = None,
) -> Callable[[IRModule, Any], IRModule]:
    """A function of a marked module and a context that sets the ranges of what is quantised.

    Parameters
    ----------
    dataset : iterable of dict, optional
        Inputs by name, for ways of `qconfig(calibrate_mode=..)` that look at values.
    """

    def run(mod: IRModule, context: Any = None) -> IRModule:
        config = current_qconfig()
        func = mod["main"]
        marked = _simulated(func)
        inputs = [call for call in marked if not _is_weight(call)]
        found = dict(zip(map(id, inputs), _input_thresholds(mod, inputs, dataset, config),
                         strict=True))  # fmt: skip
        ranges = {id(call): _range_of(call, found.get(id(call)), config) for call in marked}

        def rewrite(old: RelayExpr, new: RelayExpr) -> RelayExpr:
            if id(old) not in ranges or not isinstance(new, Call):
                return new
            return new.replace(args=(new.args[0], *ranges[id(old)]))

        result = mod.clone()
        result["main"] = rewrite_function(func, rewrite).replace(ret_type=None)
        return InferType()(result)

    return run


def _input_thresholds(
    mod: IRModule, inputs: Sequence[Call], dataset: Any, config: QConfig
) -> list[float]:
    if config.calibrate_mode == "global_scale":
        return [config.global_scale] * len(inputs)
    if dataset is None:
        raise TVMError(f'quantize requires a dataset for calibrate_mode="{config.calibrate_mode}"')
    samples = collect_stats(mod, dataset, config.calibrate_chunk_by)
    return [input_threshold(array, config) for chunk in samples for array in chunk]


def _range_of(call: Call, threshold: float | None, config: QConfig) -> list[RelayExpr]:
    """The scale, and the least and greatest integer, of what is quantised."""
    kind = QAnnotateKind(call.attrs.kind)
    if threshold is None:
        weight = call.args[0]
        assert isinstance(weight, Constant)
        threshold = weight_threshold(weight.data.numpy(), config.weight_scale)
    levels = 2 ** (config.get_nbit_by_kind(kind) - int(call.attrs.sign))
    low = 1 - levels if call.attrs.sign else 0
    step = threshold / (levels if call.attrs.sign else levels - 1)
    return [const(np.float32(v)) for v in (step, low, levels - 1)]


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
    counts = np.bincount(level, used, _LEVELS)
    share = np.divide(total, counts, out=np.zeros(_LEVELS), where=counts > 0)
    return np.where(used, share[level], 0.0)


def _divergence(p: Array, q: Array) -> float:
    """The relative entropy of two histograms, empty bins of `q` made a little full."""
    q = np.where((p > 0) & (q == 0), 1e-4, q)
    p, q = p / p.sum(), q / max(q.sum(), 1e-12)
    where = p > 0
    return float(np.sum(p[where] * np.log(p[where] / q[where])))
