"""The steps of detection under their classic names, alone and put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir, topi
from tvm.topi.vision import nms_util
from tvm.topi.vision.nms import (
    hybrid_get_valid_counts,
    hybrid_nms,
    hybrid_rearrange_box_out,
    hybrid_rearrange_indices_out,
    hybrid_regular_nms,
)
from tvm.topi.vision.rcnn.proposal import argsort_ir, nms_ir, predict_bbox_ir, prepare_output_ir
from tvm.topi.vision.ssd.multibox import hybrid_multibox_prior, hybrid_multibox_transform_loc

Array = np.ndarray
RNG = np.random.default_rng(4)
ONE = tir.const(1.0, "float32")


def _run(build: Callable[..., Any], *arrays: Array) -> list[Array]:
    tensors = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    built = build(*tensors)
    outs = [built] if isinstance(built, te.Tensor) else list(built)
    function = tvm.build(te.create_schedule([o.op for o in outs]), [*tensors, *outs], "llvm")
    found = [tvm.nd.array(np.zeros([int(d) for d in o.shape], str(o.dtype))) for o in outs]
    function(*[tvm.nd.array(a) for a in arrays], *found)
    return [f.numpy() for f in found]


def _equal(found: Sequence[Array], wanted: Sequence[Array]) -> None:
    for have, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(have, want)


def _boxes(*lead: int) -> Array:
    low = RNG.uniform(0, 0.7, (*lead, 2))
    return np.concatenate([low, low + RNG.uniform(0.1, 0.3, low.shape)], -1).astype("float32")


def _rows(batch: int, boxes: int) -> Array:
    """Class, score and corners; some boxes have no class."""
    kinds = RNG.integers(-1, 2, (batch, boxes, 1)).astype("float32")
    scores = RNG.permutation(batch * boxes).reshape(batch, boxes, 1) / (batch * boxes)
    return np.concatenate([kinds, scores.astype("float32"), _boxes(batch, boxes)], -1)


def test_boxes_and_indices_move_to_the_front() -> None:
    rows = _rows(2, 6)
    wanted = np.full_like(rows, -1)
    for b in range(2):
        left = rows[b][rows[b, :, 0] >= 0]
        wanted[b, : len(left)] = left
    _equal(_run(lambda x: hybrid_rearrange_box_out(x, ONE, 2, 6), rows), [wanted])
    indices = np.array([[3, -1, 0, -1], [-1, -1, 2, 1]], "int32")
    found = _run(lambda x: hybrid_rearrange_indices_out(x, ONE, 2, 4), indices)
    _equal(found, [[[3, 0, -1, -1], [2, 1, -1, -1]], [[2], [2]]])
    with pytest.raises(ValueError, match=r"requires data of \(2, 5\) boxes, got \(2, 4\)"):
        hybrid_rearrange_indices_out(te.placeholder((2, 4), "int32"), ONE, 2, 5)


def test_hybrid_scripts_are_the_steps_of_suppression() -> None:
    rows = _rows(2, 8)
    counted = _run(lambda x: topi.vision.get_valid_counts(x, 0.2), rows)
    _equal(_run(lambda x: hybrid_get_valid_counts(x, 0.2, 0, 1, ONE, 2, 8), rows), counted)
    counts, data, names = counted
    order = np.argsort(-data[..., 1], 1, kind="stable").astype("int32")
    for force in (False, True):
        options = (-1, 0.3, force, -1, 2, 1, 0)

        def whole(x: Any, c: Any, n: Any, with_indices: bool) -> Any:
            return topi.vision.non_max_suppression(x, c, n, *options, with_indices)  # noqa: B023

        def step(x: Any, o: Any, c: Any, n: Any) -> Any:
            return hybrid_nms(x, o, c, n, 2, 8, *options, True, 0 * ONE, ONE)  # noqa: B023

        boxes, kept = _run(step, data, order, counts, names)
        _equal([boxes], _run(lambda *t: whole(*t, False), data, counts, names))
        chosen, number = _run(lambda *t: whole(*t, True), data, counts, names)
        for b in range(2):
            np.testing.assert_array_equal(kept[b][kept[b] >= 0], chosen[b, : number[b, 0]])


def test_hybrid_regular_suppression_counts_background() -> None:
    boxes, scores = _boxes(1, 7), RNG.uniform(size=(1, 7, 4)).astype("float32")
    found = _run(lambda b, s: hybrid_regular_nms(b, s, 3, 5, 1, 7, 3, 4, 0.4, 0.1), boxes, scores)
    wanted = _run(
        lambda b, s: topi.vision.regular_non_max_suppression(b, s, 3, 5, 3, 0.4, 0.1), boxes, scores
    )
    _equal(found, wanted)


def test_hybrid_multibox_scripts() -> None:
    image, options = np.zeros((1, 3, 4, 5), "float32"), ((0.5, 0.2), (1, 2), (-1, -1), (0.5, 0.5))
    prior = topi.vision.ssd.multibox_prior
    priors = _run(lambda x: prior(x, *options), image)
    _equal(_run(lambda x: hybrid_multibox_prior(x, *options), image), priors)
    probabilities, moves = [RNG.uniform(size=s).astype("float32") for s in ((1, 3, 60), (1, 240))]
    variances = (0.1, 0.1, 0.2, 0.2)
    arrays = (probabilities, moves, priors[0])
    transform = topi.vision.ssd.multibox_transform_loc
    _equal(
        _run(lambda *t: hybrid_multibox_transform_loc(*t, True, 0.5, variances, False), *arrays),
        _run(lambda *t: transform(*t, True, 0.5, variances), *arrays),
    )


def _greedy(ib: Any, rows: Any, count: Any, iou: Any, limit: Any, counts: Any, keep: Any,
            drop: Any, is_compared: Any, share: Any, scores: Any, numbers: Any) -> None:  # fmt: skip
    """A loop that compares every box with those kept before it."""
    with ib.for_range(0, rows, "row") as row:
        numbers[row] = 0
        kept = ib.allocate("int32", count, "kept")
        with ib.for_range(0, counts[row], "j") as j:
            is_free = ib.allocate("bool", 1, "is_free")
            is_free[0] = numbers[row] < limit
            with ib.for_range(0, numbers[row], "k") as k:
                is_large = tir.all(is_compared(row, j, kept[k]), share(row, j, kept[k]) >= iou)
                is_free[0] = tir.all(is_free[0], tir.Not(is_large))
            with ib.if_scope(is_free[0]):
                kept[numbers[row]] = j
                keep(ib, 0, numbers[row], row, j)
                numbers[row] = numbers[row] + 1
            with ib.else_scope():
                drop(ib, row, j)


def _all_rows(classes: int, chosen: Any, numbers: Any, starts: Any, out: Any) -> Any:
    ib = tir.ir_builder.create()
    picked, number, start, rows = [ib.buffer_ptr(x) for x in (chosen, numbers, starts, out)]
    with ib.for_range(0, rows._buffer.shape[0], "n") as n:
        for k in range(3):
            rows[n, k] = tir.const(0, "int64")
    with (
        ib.for_range(0, number._buffer.shape[0], "row") as row,
        ib.for_range(0, number[row], "n") as n,
    ):
        values = (tir.indexdiv(row, classes), tir.indexmod(row, classes), picked[row, n])
        for k, value in enumerate(values):
            rows[start[row] + n, k] = value.astype("int64")
    return ib.get()


def test_a_program_with_a_loop_of_its_own_agrees_with_all_class_suppression() -> None:
    boxes, scores = _boxes(2, 9), RNG.permutation(2 * 3 * 9).reshape(2, 3, 9) / 54
    scores = scores.astype("float32")
    flat = scores.reshape(6, 9)
    order = np.argsort(-flat, 1).astype("int32")
    sorted_scores = np.take_along_axis(flat, order, 1)

    def count(s: Any) -> Any:
        def body(ins: Any, outs: Any) -> Any:
            ib = tir.ir_builder.create()
            values, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
            with ib.for_range(0, 6, "y") as y:
                nms_util.binary_search(ib, y, 9, values, 0.3, out)
            return ib.get()

        return te.extern([(6,)], [s], body, dtype="int32")

    (counts,) = _run(count, sorted_scores)
    np.testing.assert_array_equal(counts, (flat > 0.3).sum(1))
    arrays = (boxes, sorted_scores, order, counts)
    chosen, kept_scores, numbers = _run(
        lambda *t: nms_util.run_all_class_nms(*t, 4, 0.2, _greedy, return_scores=True), *arrays
    )
    starts = np.concatenate([[0], np.cumsum(numbers)[:-1]]).astype("int32")
    (rows,) = _run(
        lambda *t: nms_util.collect_selected_indices(3, *t, _all_rows), chosen, numbers, starts
    )
    wanted = _run(
        lambda b, s: topi.vision.all_class_non_max_suppression(b, s, 4, 0.2, 0.3), boxes, scores
    )
    assert numbers.sum() == wanted[1][0]
    np.testing.assert_array_equal(rows, wanted[0])
    for row in range(6):
        picked = chosen[row, : numbers[row]]
        np.testing.assert_array_equal(kept_scores[row, : numbers[row]], flat[row, picked])


def test_the_steps_of_proposal_give_its_regions() -> None:
    probabilities = RNG.uniform(size=(1, 6, 5, 4)).astype("float32")
    moves = RNG.normal(0, 0.1, (1, 12, 5, 4)).astype("float32")
    info = np.array([[80, 64, 1]], "float32")
    options = ((8,), (0.5, 1, 2), 16)

    def steps(*tensors: Any) -> Any:
        regions = te.extern(
            [(1, 60, 5)],
            list(tensors),
            lambda i, o: predict_bbox_ir(*i, o[0], *options, 16, False),
            dtype="float32",
        )
        scores = te.compute((1, 60), lambda b, n: regions[b, n, 4])
        order = te.extern([(1, 60)], [scores], lambda i, o: argsort_ir(i[0], o[0]), dtype="int32")
        ordered = te.compute((1, 60, 5), lambda b, n, k: regions[b, order[b, n], k])
        dropped = te.extern(
            [(1, 60)], [ordered], lambda i, o: nms_ir(i[0], o[0], 0.7), dtype="bool"
        )
        return te.extern(
            [(10, 5)], [ordered, dropped], lambda i, o: prepare_output_ir(*i, o[0]), dtype="float32"
        )  # fmt: skip

    arrays = (probabilities, moves, info)
    wanted = _run(lambda *t: topi.vision.proposal(*t, *options, 0.7, -1, 10, 16, False), *arrays)
    np.testing.assert_allclose(_run(steps, *arrays)[0], wanted[0], rtol=1e-6)
