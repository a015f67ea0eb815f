"""Reductions, softmax, layer norm and injective operators over awkward shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.topi.common import check
from tvm import te, topi
from tvm.topi.access import axis_read_in_order

SHAPES = [(4, 128), (3, 37), (2, 3, 24), (1, 1), (5, 1), (64,), (7, 20)]


def _softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax_rows(shape: tuple[int, ...]) -> None:
    data = te.placeholder(shape, name="data")
    check([data, topi.nn.softmax(data)], topi.x86.schedule_softmax, _softmax)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layer_norm_rows(shape: tuple[int, ...]) -> None:
    data = te.placeholder(shape, name="data")
    gamma, beta = [te.placeholder(shape[-1:], name=n) for n in ("gamma", "beta")]
    out = topi.nn.layer_norm(data, gamma, beta, [len(shape) - 1])

    def reference(x: np.ndarray, g: np.ndarray, b: np.ndarray) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b

    check([data, gamma, beta, out], topi.x86.schedule_layer_norm, reference, tolerance=1e-3)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("axis", [-1, 0, None])
def test_sum_along_any_axis(shape: tuple[int, ...], axis: int | None) -> None:
    data = te.placeholder(shape, name="data")
    check(
        [data, topi.sum(data, axis)],
        topi.x86.schedule_reduce,
        lambda x: x.sum(axis),
    )


def test_operators_after_a_reduction_are_fused() -> None:
    data = te.placeholder((6, 512), name="data")
    out = topi.sqrt(topi.sum(topi.multiply(data, data), 1))
    check([data, out], topi.x86.schedule_reduce, lambda x: np.sqrt((x * x).sum(1)))


@pytest.mark.parametrize("shape", [*SHAPES, (), (130, 129)], ids=str)
def test_injective_operators(shape: tuple[int, ...]) -> None:
    data = te.placeholder(shape, name="data")
    out = topi.nn.relu(topi.add(data, te.const(0.5, "float32")))
    check([data, out], topi.x86.schedule_injective, lambda x: np.maximum(x + 0.5, 0))


@pytest.mark.parametrize(
    "source, target, shape",
    [
        ("NCHW", "NCHW8c", (1, 16, 3, 5)),
        ("NCHW8c", "NCHW", (1, 2, 3, 5, 8)),
        ("NCHW8c", "NCHW16c", (1, 2, 3, 5, 8)),
        ("OIHW", "OIHW4i8o", (16, 8, 3, 3)),
        ("NCHW", "NHWC", (2, 3, 4, 5)),
        ("NC", "NC4n", (8, 5)),
    ],
)
def test_layout_transform_on_host_and_in_kernels(
    source: str, target: str, shape: tuple[int, ...]
) -> None:
    data = te.placeholder(shape, name="data")
    out = topi.layout_transform(data, source, target)
    check(
        [data, out],
        topi.x86.schedule_injective,
        lambda x: topi.layout.transform_array(x, source, target),
    )
    array = np.arange(np.prod(shape)).reshape(shape)
    there = topi.layout.transform_array(array, source, target)
    np.testing.assert_array_equal(topi.layout.transform_array(there, target, source), array)


def test_reshape_between_equal_runs_needs_no_division() -> None:
    data: Any = te.placeholder((128, 768), name="data")
    text = str(topi.reshape(data, (1, 128, 12, 64)).op.body[0])
    assert "//" not in text and "%" not in text


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 7, 333), (5, 33, 17), (2, 40, 100), (130, 3, 64)], ids=str)
def test_reductions_of_odd_extents(shape: tuple[int, ...], axis: int, target: str) -> None:
    data = te.placeholder(shape, name="data")
    check(
        [data, topi.multiply(topi.sum(data, axis), 0.5)],
        topi.x86.schedule_reduce,
        lambda x: 0.5 * x.astype("float64").sum(axis),
        target,
    )
    check([data, topi.max(data, axis)], topi.x86.schedule_reduce, lambda x: x.max(axis), target)


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm"])
@pytest.mark.parametrize(
    "shape, axes",
    [
        ((100003,), (0,)), ((400, 333), (0, 1)), ((3, 50, 7, 9), (2, 3)), ((2, 3, 40, 1), (1, 2, 3)),
        ((4, 6, 20, 7, 9), (0, 2, 4)), ((1, 70001), (-1,)),
    ],
)  # fmt: skip
def test_reductions_over_several_axes(
    shape: tuple[int, ...], axes: tuple[int, ...], target: str
) -> None:
    data = te.placeholder(shape, name="data")
    bias = te.placeholder(shape[-1:], name="bias")
    schedule = topi.x86.schedule_reduce
    check(
        [data, topi.sum(data, axes)],
        schedule,
        lambda x: x.astype("float64").sum(axes),
        target,
        1e-3,
    )
    shifted = topi.max(topi.add(data, bias), axes)
    check([data, bias, shifted], schedule, lambda x, b: (x + b).max(axes), target)


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm"])
@pytest.mark.parametrize(
    "shape, axis", [((9, 100), -1), ((70003,), 0), ((5, 77, 14), 1), ((3, 40, 33), 2), ((12, 5), 0)]
)
def test_indices_of_the_greatest(shape: tuple[int, ...], axis: int, target: str) -> None:
    data = te.placeholder(shape, name="data")
    levels = topi.floor(topi.multiply(data, 20.0))  # many are equal: the first counts
    for find, reference in ((topi.argmax, np.argmax), (topi.argmin, np.argmin)):
        out = topi.cast(find(levels, axis), "int64")
        check(
            [data, out],
            topi.x86.schedule_reduce,
            lambda x, f=reference: f(np.floor(x * np.float32(20)), axis),
            target,
        )


@pytest.mark.parametrize("columns", [33, 77, 1000])
def test_softmax_of_rows_that_vectors_do_not_divide(columns: int) -> None:
    data = te.placeholder((5, columns), name="data")
    for target in ("llvm -mcpu=haswell", "llvm"):
        check([data, topi.nn.softmax(data)], topi.x86.schedule_softmax, _softmax, target)


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm"])
@pytest.mark.parametrize(
    "shape, axes", [((130, 77), (1, 0)), ((3, 90, 64), (0, 2, 1)), ((2, 5, 61, 33), (0, 3, 1, 2))]
)
def test_transposes_in_tiles(shape: tuple[int, ...], axes: tuple[int, ...], target: str) -> None:
    data = te.placeholder(shape, name="data")
    out = topi.nn.relu(topi.transpose(data, axes))
    check(
        [data, out],
        topi.x86.schedule_injective,
        lambda x: np.maximum(x.transpose(axes), 0),
        target,
    )


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm", "llvm -mcpu=x86-64"])
@pytest.mark.parametrize(
    "shape, widths", [((3, 5, 77), (0, 2, 3)), ((2, 40), (1, 30)), ((50,), (9,))]
)
@pytest.mark.parametrize("mode", ["constant", "reflect", "symmetric", "edge"])
def test_borders(mode: str, shape: tuple[int, ...], widths: tuple[int, ...], target: str) -> None:
    data = te.placeholder(shape, name="data")
    behind = [width and width - 1 for width in widths]
    if mode == "constant":
        out = topi.nn.pad(data, widths, behind)
    else:
        out = topi.nn.mirror_pad(data, widths, behind, mode.upper())
    pads = list(zip(widths, behind, strict=True))
    check([data, out], topi.x86.schedule_injective, lambda x: np.pad(x, pads, mode), target)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "bool"])
def test_borders_of_any_dtype(dtype: str) -> None:
    data = te.placeholder((3, 77), dtype, name="data")
    out = topi.nn.mirror_pad(data, (1, 20), (2, 3), "REFLECT")
    pads = [(1, 2), (20, 3)]
    check(
        [data, out],
        topi.x86.schedule_injective,
        lambda x: np.pad(x, pads, "reflect"),
    )


@pytest.mark.parametrize(
    "shape, times", [((2, 28), (3, 2)), ((1000,), (3,)), ((5, 17), (1, 33)), ((6, 3), (2, 40))]
)
def test_repeated_rows_are_read_in_order(shape: tuple[int, ...], times: tuple[int, ...]) -> None:
    data = te.placeholder(shape, name="data")
    for target in ("llvm -mcpu=haswell", "llvm"):
        out = topi.tile(data, times)
        check([data, out], topi.x86.schedule_injective, lambda x: np.tile(x, times), target)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
@pytest.mark.parametrize("shape", [(70001,), (33, 101), (7, 5, 35)], ids=str)
def test_rows_that_vectors_do_not_divide(shape: tuple[int, ...], dtype: str) -> None:
    data = te.placeholder(shape, dtype, name="data")
    row = te.placeholder(shape[-1:], dtype, name="row")
    for target in ("llvm -mcpu=haswell", "llvm", "llvm -mcpu=x86-64"):
        out = topi.maximum(data, row)
        check([data, row, out], topi.x86.schedule_injective, np.maximum, target)


def test_axis_read_in_order() -> None:
    data = te.placeholder((4, 8, 16), name="data")
    assert axis_read_in_order(topi.nn.relu(data)) is None
    assert axis_read_in_order(topi.transpose(data, (0, 2, 1))) == 1
    assert axis_read_in_order(topi.transpose(data, (2, 0, 1))) == 0
    assert axis_read_in_order(topi.layout_transform(data, "NWC", "NCW")) == 1
    assert axis_read_in_order(topi.full((4, 8), "float32", 1.0)) is None
