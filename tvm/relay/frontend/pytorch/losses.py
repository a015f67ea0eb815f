"""Losses that torch has no decomposition for, or a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.relay import op as _op
from tvm.relay.expr import Constant
from tvm.relay.frontend.common import constant, infer_dtype, infer_shape, scalar_like

from .registry import as_dtype, as_ints, as_number, is_tensor, torch_op, torch_ops

_REDUCTIONS: dict[int, Callable[[RelayExpr], RelayExpr]] = {0: lambda x: x, 1: _op.mean, 2: _op.sum}


@torch_op("multilabel_margin_loss_forward")
def _multilabel_margin_loss_forward(
    x: RelayExpr, target: RelayExpr, reduction: Any = 1
) -> list[RelayExpr]:
    """How far classes come within a margin of 1 of the targets: those before the first -1."""
    shape = infer_shape(x)
    classes = shape[-1] if shape else 1
    rows = _op.reshape(x, (-1, classes))
    wanted = _op.reshape(as_dtype(target, "int64"), (-1, classes))
    ended = _op.cumsum(_op.cast(_op.less(wanted, constant(0, "int64")), "int64"), 1)
    is_wanted = _op.equal(ended, constant(0, "int64"))
    positions = _op.where(is_wanted, wanted, constant(0, "int64"))
    hits = _op.logical_and(
        _op.equal(_op.expand_dims(positions, 2), constant(np.arange(classes), "int64")),
        _op.expand_dims(is_wanted, 2),
    )
    is_target = _op.any(hits, axis=[1])
    gaps = scalar_like(1, x) - _op.expand_dims(_op.gather(rows, 1, positions), 2)
    gaps = _op.nn.relu(gaps + _op.expand_dims(rows, 1))
    counted = _op.logical_and(
        _op.expand_dims(is_wanted, 2), _op.logical_not(_op.expand_dims(is_target, 1))
    )
    lost = _op.sum(_op.where(counted, gaps, scalar_like(0, x)), axis=[1, 2])
    lost = lost / constant(classes, infer_dtype(x))
    reduced = _REDUCTIONS[as_number(reduction)](lost)
    is_scalar = len(shape) < 2 and not as_number(reduction)
    return [
        _op.reshape(reduced, ()) if is_scalar else reduced,
        _op.reshape(as_dtype(is_target, infer_dtype(x)), shape),
    ]


@torch_op("ctc_loss")
def _ctc_loss(
    scores: RelayExpr, targets: RelayExpr, data_lengths: Any, target_lengths: Any, blank: Any = 0,
    reduction: Any = 1, zero_infinity: Any = False,
) -> RelayExpr:  # fmt: skip
    """How unlikely all alignments of the targets with the steps of the data are together."""
    has_batch = len(infer_shape(scores)) == 3
    if not has_batch:
        scores = _op.expand_dims(scores, 1)
    batch = infer_shape(scores)[1]
    steps, lengths = _lengths(data_lengths, batch), _lengths(target_lengths, batch)
    targets = _in_rows(targets, lengths, batch)
    lost = _negative_likelihood(scores, targets, steps, lengths, int(as_number(blank)))
    if as_number(zero_infinity):
        infinite = _op.equal(lost, scalar_like(np.inf, lost))
        lost = _op.where(infinite, scalar_like(0, lost), lost)
    kind = as_number(reduction)
    if kind == 1:
        least = _op.maximum(lengths, constant(1, "int64"))
        return _op.mean(lost / as_dtype(least, infer_dtype(lost)))
    return _op.reshape(lost, ()) if not kind and not has_batch else _REDUCTIONS[kind](lost)


def _lengths(values: Any, batch: int) -> RelayExpr:
    found = values if is_tensor(values) else constant(as_ints(values), "int64")
    return _op.reshape(as_dtype(found, "int64"), (batch,))


def _in_rows(targets: RelayExpr, lengths: RelayExpr, batch: int) -> RelayExpr:
    """Targets one row each; those behind each other are cut by their lengths."""
    targets = as_dtype(targets, "int64")
    if len(infer_shape(targets)) == 2:
        return targets
    count = int(infer_shape(targets)[0])
    longest = int(lengths.data.numpy().max(initial=0)) if isinstance(lengths, Constant) else count
    begins = _op.cumsum(lengths, 0) - lengths
    positions = _op.expand_dims(begins, 1) + constant(np.arange(longest).reshape(1, -1), "int64")
    return _op.take(targets, positions, 0, mode="clip")


def _negative_likelihood(
    scores: RelayExpr, targets: RelayExpr, steps: RelayExpr, lengths: RelayExpr, blank: int
) -> RelayExpr:
    """The sum over alignments, step by step: each target, a blank before and one behind it."""
    duration, batch, _ = infer_shape(scores)
    longest = int(infer_shape(targets)[1])
    blanks = constant(np.full((batch, longest + 1, 1), blank), "int64")
    between = _op.concatenate(
        [
            _op.expand_dims(targets, 2),
            _op.strided_slice(blanks, [0, 1, 0], [batch, longest + 1, 1]),
        ],
        2,
    )
    first = _op.reshape(_op.strided_slice(blanks, [0, 0, 0], [batch, 1, 1]), (batch, 1))
    labels = _op.concatenate([first, _op.reshape(between, (batch, 2 * longest))], 1)
    width = 2 * longest + 1
    minus = scalar_like(-np.inf, scores)
    before = _op.concatenate([constant(np.full((batch, 2), blank), "int64"), labels], 1)
    # blanks are never jumped over to another blank, as they are equal
    jumps = _op.not_equal(labels, _op.strided_slice(before, [0, 0], [batch, width]))
    positions = _op.broadcast_to(_op.expand_dims(labels, 0), (duration, batch, width))
    emitted = _op.gather(scores, 2, positions)
    empty = _op.broadcast_to(minus, (batch, 2))

    def emission(step: int) -> RelayExpr:
        return _op.take(emitted, constant(step, "int64"), 0)

    starts = constant((np.arange(width) < 2).reshape(1, -1))
    chances = _op.where(starts, emission(0), minus)
    for step in range(1, duration):
        moved = _op.concatenate([empty, chances], 1)
        one = _op.strided_slice(moved, [0, 1], [batch, width + 1])
        two = _op.where(jumps, _op.strided_slice(moved, [0, 0], [batch, width]), minus)
        following = _added([chances, one, two], minus) + emission(step)
        is_running = _op.expand_dims(_op.less(constant(step, "int64"), steps), 1)
        chances = _op.where(is_running, following, chances)
    last = _op.expand_dims(lengths * constant(2, "int64"), 1)
    ends = [_op.gather(chances, 1, last)]
    target = _op.gather(chances, 1, _op.maximum(last - constant(1, "int64"), constant(0, "int64")))
    ends.append(_op.where(_op.greater(last, constant(0, "int64")), target, minus))
    return _op.negative(_op.squeeze(_added(ends, minus), [1]))


def _added(logarithms: Sequence[RelayExpr], minus: RelayExpr) -> RelayExpr:
    """The logarithm of a sum; that of nothing is minus infinity."""
    high = reduce(_op.maximum, logarithms)
    shift = _op.where(_op.equal(high, minus), scalar_like(0, high), high)
    total = reduce(_op.add, [_op.exp(one - shift) for one in logarithms])
    return _op.log(total) + shift


torch_ops({
    "mse_loss": lambda a, b, reduction=1: _REDUCTIONS[reduction]((a - b) * (a - b)),
    "l1_loss": lambda a, b, reduction=1: _REDUCTIONS[reduction](_op.abs(a - b)),
    "multilabel_margin_loss": lambda x, target, reduction=1: _multilabel_margin_loss_forward(
        x, target, reduction
    )[0],
})  # fmt: skip
