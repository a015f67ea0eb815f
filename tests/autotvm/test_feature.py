from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tvm import te
from tvm.autotvm import feature
from tvm.tir.stmt import For

from .templates import matmul_task


def tiled_matmul(kind: str = "parallel") -> tuple[Any, list[Any]]:
    a = te.placeholder((16, 32), name="A")
    b = te.placeholder((32, 64), name="B")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute((16, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    yo, yi = s[c].split(c.op.axis[0], 16)
    xo, xi = s[c].split(c.op.axis[1], 8)
    s[c].reorder(yo, xo, k, yi, xi)
    getattr(s[c], kind)(xo)
    s[c].vectorize(xi)
    return s, [a, b, c]


def row_of(rows: Any, name: str) -> dict[str, list[Any]]:
    (row,) = [row for row in rows if str(row[0][1]) == name]
    return {pair[0]: pair[1:] for pair in row}


def test_loops_of_one_iteration_stay() -> None:
    found = feature.ana_lower(*tiled_matmul())
    assert isinstance(found, For)
    assert found.extent.value == 1
    with pytest.raises(ValueError, match="simple_mode"):
        feature.ana_lower(*tiled_matmul(), simple_mode=False)


def test_a_row_tells_what_a_loop_does() -> None:
    rows = feature.get_itervar_feature(*tiled_matmul())
    names = [str(row[0][1]) for row in rows]
    assert names[:2] == ["i_outer", "j_outer"]
    inner = row_of(rows, "j_inner")
    assert inner["_attr_"][:4] == [8, 5, 16 * 64 * 32, 8]
    kinds = dict(zip(feature.ATTRIBUTES, inner["_attr_"], strict=True))
    assert (kinds["ann_vectorized"], kinds["ann_parallel"], kinds["ann_serial"]) == (1, 0, 0)
    assert inner["_arith_"] == [8, 8, 0]
    k = row_of(rows, "k")
    assert k["_attr_"][:4] == [32, 3, 256, 32 * 16 * 8]
    # of A a row of k for each i, of B 8 columns, each used again
    assert k["A_0"] == [1, -1, 32 * 16, 8, 0, 0]
    assert k["B_0"] == [64, -1, 32 * 8, 16, 0, 0]
    # the loop is parallel: so many of them are its threads'
    outer = row_of(rows, "j_outer")
    assert outer["B_0"][4:] == [8, 1]
    assert outer["A_0"][4:] == [1, 8]


def test_vectors_have_a_name_for_each_number() -> None:
    rows = feature.get_itervar_feature(*tiled_matmul(), take_log=True)
    flat = feature.flatten_itervar_feature(rows)
    names = feature.get_flatten_name(rows)
    assert len(flat) == len(names) == len(set(names))
    assert np.array_equal(flat, feature.get_itervar_feature_flatten(*tiled_matmul()))
    assert flat[names.index("f0.i_outer._attr_.length")] == 1.0
    assert np.isfinite(flat).all()


def test_curves_have_one_length_for_all_loop_nests() -> None:
    task = matmul_task(16, 16, 16)
    with task.target:
        curves = [
            feature.get_buffer_curve_sample_flatten(*task.instantiate(task.config_space.get(i)))
            for i in (0, 7, 24)
        ]
    assert len({len(curve) for curve in curves}) == 1
    assert not np.array_equal(curves[0], curves[1])


def test_curves_are_samples_of_points() -> None:
    a = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    curves = feature.get_buffer_curve_sample_flatten(te.create_schedule(b.op), [a, b], sample_n=4)
    assert curves.shape == (2 * 4 * 4 * 2,)
    of_a, of_b = curves.reshape(2, 4, 4, 2)
    # A has 8 elements inside k and 32 inside i, none of them used again
    assert of_a[0].tolist() == [[0, 0], [0, 1], [0, 2], [0, 0]]
    # B has one inside k, used 8 times, and 4 inside i
    assert of_b[0].tolist() == [[3, 0], [3, 1], [3, 0], [3, 1]]


def test_reductions_are_updates_alone() -> None:
    a = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    s[b].reorder(b.op.reduce_axis[0], b.op.axis[0])
    rows = feature.get_itervar_feature(s, [a, b])
    assert [str(row[0][1]) for row in rows] == ["k", "i"]
    assert list(row_of(rows, "i")) == ["_itervar_", "_attr_", "_arith_", "A_0", "B_0", "B_1"]


def test_wrapped_and_divided_indices_have_their_strides() -> None:
    a = te.placeholder((64,), name="A")
    b = te.compute((32,), lambda i: a[i * 2 % 16] + a[i // 4], name="B")
    s = te.create_schedule(b.op)
    row = row_of(feature.get_itervar_feature(s, [a, b]), "i")
    assert row["A_0"][:2] == [2, 16]
    assert row["A_1"][0] == 0.25
    assert row["_arith_"] == [32, 0, 0]


def test_blocks_and_threads_of_gpus_are_distinguished() -> None:
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], 16)
    s[b].bind(outer, te.thread_axis("blockIdx.x"))
    s[b].bind(inner, te.thread_axis("threadIdx.x"))
    rows = feature.get_itervar_feature(s, [a, b])
    kinds = [dict(zip(feature.ATTRIBUTES, row[1][1:], strict=True)) for row in rows]
    assert [kind["length"] for kind in kinds] == [4, 16]
    assert kinds[0]["ann_blockIdx.x"] == kinds[1]["ann_threadIdx.x"] == 1
