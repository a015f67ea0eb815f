"""Axes, steps and extents that only the run knows, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from .test_onnx_dynamic_shapes import F32, I64, check, f32, i64, node

REDUCTIONS = (
    "Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare",
)  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_take_axes_of_the_run(name: str) -> None:
    reduce = node(f"Reduce{name}", "x axes", "y")
    x = abs(f32(2, 3, 4)) + 0.5
    feeds = [{"x": x, "axes": i64(*axes)} for axes in ((1, 2), (-1, 0))]
    check([reduce], {"x": (F32, [2, 3, 4]), "axes": (I64, [2])}, *feeds)


@pytest.mark.parametrize("count", [1, 3])
def test_reduced_axes_go(count: int) -> None:
    reduce = node("ReduceMax", "x axes", "y", keepdims=0)
    kinds = {"x": (F32, ["n", 3, 4]), "axes": (I64, [count])}
    axes = [(0,), (-1,)] if count == 1 else [(0, 1, 2)]
    check([reduce], kinds, *[{"x": f32(2, 3, 4), "axes": i64(*a)} for a in axes])


@pytest.mark.parametrize("noop", [0, 1])
def test_no_axes_are_all_axes_or_none(noop: int) -> None:
    reduce = node("ReduceSum", "x axes", "y", noop_with_empty_axes=noop)
    feeds = [{"x": f32(2, 3), "axes": i64(*axes)} for axes in ((), (1,))]
    check([reduce], {"x": (F32, [2, 3]), "axes": (I64, ["k"])}, *feeds)


@pytest.mark.parametrize("name", ["Sum", "LogSumExp"])
def test_numbers_are_reduced_to_themselves(name: str) -> None:
    kinds = {"x": (F32, []), "axes": (I64, ["k"])}
    check(
        [node(f"Reduce{name}", "x axes", "y")],
        kinds,
        {"x": np.array(2.5, "float32"), "axes": i64()},
    )


def test_reductions_of_infinities_and_integers() -> None:
    x = np.float32([[-np.inf, 1.0], [-np.inf, -np.inf]])
    kinds = {"x": (F32, [2, 2]), "axes": (I64, [1])}
    check([node("ReduceLogSumExp", "x axes", "y")], kinds, {"x": x, "axes": i64(1)})
    kinds["x"] = (TensorProto.INT32, [2, 3])
    x = np.array([[7, -8, 2**30], [-1, 0, 5]], "int32")
    for name in ("Sum", "Max", "Min"):
        check([node(f"Reduce{name}", "x axes", "y")], kinds, {"x": x, "axes": i64(0)})


def test_slices_take_axes_and_steps_of_the_run() -> None:
    kinds = {"x": (F32, [5, 6]), **{name: (I64, [2]) for name in ("start", "end", "axes", "step")}}
    cases = [
        ((1, 0), (4, 6), (0, 1), (1, 2)), ((-1, 4), (-9, 1), (1, 0), (-2, -1)),
        ((-3, 9), (99, -99), (-2, -1), (1, -3)),
    ]  # fmt: skip
    names = ("start", "end", "axes", "step")
    feeds = [
        {"x": f32(5, 6), **dict(zip(names, [i64(*v) for v in case], strict=True))} for case in cases
    ]
    check([node("Slice", "x start end axes step", "y")], kinds, *feeds)
    one = {name: (I64, [1]) for name in ("start", "end", "axes")}
    feed = {"x": f32(5, 6), "start": i64(2), "end": i64(2**62), "axes": i64(-1)}
    check([node("Slice", "x start end axes", "y")], {"x": (F32, [5, 6]), **one}, feed)


def test_borders_take_axes_of_the_run() -> None:
    kinds = {"x": (F32, [2, 3]), "pads": (I64, [2]), "axes": (I64, [1])}
    feeds = [{"x": f32(2, 3), "pads": i64(1, 2), "axes": i64(axis)} for axis in (0, -1)]
    check([node("Pad", "x pads - axes", "y")], kinds, *feeds)


def test_shapes_of_the_run_may_have_zeros() -> None:
    reshape = node("Reshape", "x s", "y", allowzero=1)
    kinds = {"x": (F32, [0, 3, 4]), "s": (I64, [3])}
    found = check([reshape], kinds, {"x": f32(0, 3, 4), "s": i64(3, 4, 0)})
    assert len(found.shape) == 3


SIZES = (I64, [2])


@pytest.mark.parametrize("how", [
    {"mode": "linear", "antialias": 1},
    {"mode": "cubic", "antialias": 1},
    {"mode": "cubic", "antialias": 1, "exclude_outside": 1},
    {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
    {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
    {"mode": "nearest"},
    {"mode": "nearest", "coordinate_transformation_mode": "align_corners", "nearest_mode": "floor"},
], ids=str)  # fmt: skip
def test_sizes_of_the_run(how: dict[str, Any]) -> None:
    kinds = {"x": (F32, [1, 1, 4, 5]), "sizes": (I64, [4])}
    feeds = [{"x": f32(1, 1, 4, 5), "sizes": i64(1, 1, *s)} for s in ((3, 3), (14, 8))]
    check([node("Resize", "x - - sizes", "y", **how)], kinds, *feeds)


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_sizes_of_the_run_for_some_axes(policy: str) -> None:
    resize = node(
        "Resize", "x - - sizes", "y", mode="linear", axes=[3, 2], keep_aspect_ratio_policy=policy
    )
    feeds = [{"x": f32(1, 2, 4, 6), "sizes": i64(*s)} for s in ((9, 7), (3, 2))]
    check([resize], {"x": (F32, [1, 2, 4, 6]), "sizes": SIZES}, *feeds)


@pytest.mark.parametrize("mode", ["antialias", "half_pixel_symmetric", "exclude_outside"])
def test_scales_of_the_run(mode: str) -> None:
    how: dict[str, Any] = {
        "antialias": {"mode": "linear", "antialias": 1},
        "half_pixel_symmetric": {"mode": "linear", "coordinate_transformation_mode": mode},
        "exclude_outside": {"mode": "cubic", "exclude_outside": 1},
    }[mode]
    kinds = {"x": (F32, [1, 1, 4, 5]), "scales": (F32, [4])}
    feeds = [{"x": f32(1, 1, 4, 5), "scales": np.float32([1, 1, *s])} for s in ((0.6, 0.5), (2, 3))]
    check([node("Resize", "x - scales", "y", **how)], kinds, *feeds)


def test_a_crop_of_the_run() -> None:
    resize = node(
        "Resize", "x roi - sizes", "y", mode="linear", extrapolation_value=7.0,
        coordinate_transformation_mode="tf_crop_and_resize",
    )  # fmt: skip
    kinds = {"x": (F32, [1, 1, 4, 5]), "roi": (F32, [8]), "sizes": (I64, [4])}
    rois = ([0, 0, 0.4, 0.6, 1, 1, 0.6, 0.8], [0, 0, -0.5, 0.1, 1, 1, 1.2, 1])
    feeds = [{"x": f32(1, 1, 4, 5), "roi": np.float32(r), "sizes": i64(1, 1, 3, 4)} for r in rois]
    check([resize], kinds, *feeds)


@pytest.mark.parametrize("op", ["GRU", "LSTM", "RNN"])
def test_sequences_of_no_steps_end_in_zeros(op: str) -> None:
    gates, names = {"GRU": 3, "LSTM": 4, "RNN": 1}[op], "x w r - n h"
    feed = {"x": f32(4, 3, 5), "w": f32(1, gates * 2, 5), "r": f32(1, gates * 2, 2),
            "n": np.array([0, 2, 4], "int32"), "h": f32(1, 3, 2)}  # fmt: skip
    kinds = {name: (F32, list(value.shape)) for name, value in feed.items()}
    kinds["n"] = (TensorProto.INT32, [3])
    check([node(op, names, "- y", hidden_size=2)], kinds, feed)


@pytest.mark.parametrize("rows", [3, "n"])
def test_axes_go_on_with_their_other_end_by_widths_of_the_run(rows: Any) -> None:
    pad = node("Pad", "x pads", "y", mode="wrap")
    kinds = {"x": (F32, [rows, 4]), "pads": (I64, [4])}
    feeds = [{"x": f32(3, 4), "pads": i64(*pads)} for pads in ((1, 2, 0, 3), (0, 4, 2, 0))]
    check([pad], kinds, *feeds, opset=19)
