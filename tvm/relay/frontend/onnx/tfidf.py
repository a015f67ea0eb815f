"""StringTensor as numbers: how often groups of tokens occur."""

from __future__ import annotations

import operator
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.frontend.common import constant, infer_shape

from .registry import OnnxNode, onnx_op

Array = np.ndarray[Any, Any]


@onnx_op("TfIdfVectorizer")
def _tf_idf_vectorizer(node: OnnxNode) -> RelayExpr:
    """Counts of the pool's groups in each row; a group's tokens may be separated by skipped tokens."""
    pool = node.attr("pool_int64s")
    if pool is None:
        raise node.unsupported("tokens that are strings")
    rank = len(node.shape(0))
    x = _op.cast(node[0] if rank == 2 else _op.expand_dims(node[0], 0), "int64")
    positions = np.array(node.attr("ngram_indexes"))
    counts, first = [], 0
    for length, groups in _groups(node, np.array(pool)):
        where = positions[first : first + len(groups)]
        first += len(groups)
        if len(groups) and node.attr("min_gram_length") <= length <= node.attr("max_gram_length"):
            counts.append(_scattered(_count(node, x, groups), where, int(positions.max()) + 1))
    result = _weighted(node, reduce(operator.add, counts))
    return result if rank == 2 else _op.squeeze(result, [0])


def _groups(node: OnnxNode, pool: Array) -> list[tuple[int, Array]]:
    """The groups of each length."""
    starts = [*node.attr("ngram_counts"), len(pool)]
    return [
        (i + 1, pool[begin:end].reshape(-1, i + 1))
        for i, (begin, end) in enumerate(pairwise(starts))
    ]


def _count(node: OnnxNode, x: RelayExpr, groups: Array) -> RelayExpr:
    """(rows, groups): how often each occurs."""
    rows, columns = infer_shape(x)
    length = groups.shape[1]
    skips = range(node.attr("max_skip_count") + 1 if length > 1 else 1)
    total: RelayExpr = _op.zeros((rows, len(groups)), "float32")
    for step in [skip + 1 for skip in skips]:
        last = columns - (length - 1) * step
        if last <= 0:
            break
        alike = []
        for i in range(length):
            token = _op.strided_slice(x, [i * step], [i * step + last], axes=[1])
            wanted = constant(groups[:, i][None, None], "int64")
            alike.append(_op.equal(_op.expand_dims(token, 2), wanted))
        total = total + _op.sum(_op.cast(reduce(_op.logical_and, alike), "float32"), [1])
    return total


def _scattered(counts: RelayExpr, positions: Array, width: int) -> RelayExpr:
    """The counts at their positions in a row of ``width``."""
    moves = np.zeros((width, len(positions)), "float32")
    moves[positions, np.arange(len(positions))] = 1
    return _op.nn.dense(counts, constant(moves))


def _weighted(node: OnnxNode, counts: RelayExpr) -> RelayExpr:
    mode = node.attr("mode")
    if mode == "TF":
        return counts
    if mode == "IDF":
        counts = _op.cast(_op.greater(counts, constant(0.0, "float32")), "float32")
    given = node.attr("weights")
    if not given:
        return counts
    positions = node.attr("ngram_indexes")
    weights = np.ones(max(positions) + 1, "float32")
    weights[positions] = given
    return counts * constant(weights)
