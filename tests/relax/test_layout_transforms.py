"""Layouts that follow from those of a loop program's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.error import TVMError
from tvm.relax.analysis import suggest_layout_transforms
from tvm.script import tir as T


@T.prim_func
def pooled(A: T.Buffer((2, 2, 9, 5, 4), "float32"), B: T.Buffer((2, 2, 4, 5, 4), "float32")):
    for n, C, h, w, c, r in T.grid(2, 2, 4, 5, 4, 3):
        with T.block("pool"):
            v0, v1, v2, v3, v4, v5 = T.axis.remap("SSSSSR", [n, C, h, w, c, r])
            with T.init():
                B[v0, v1, v2, v3, v4] = T.float32(-10)
            B[v0, v1, v2, v3, v4] = T.max(B[v0, v1, v2, v3, v4], A[v0, v1, v2 * 2 + v5, v3, v4])


@T.prim_func
def sums(A: T.Buffer((4, 3, 8, 2), "float32"), B: T.Buffer((4, 8), "float32")):
    for n, i, c, j in T.grid(4, 3, 8, 2):
        with T.block("sum"):
            v0, v1, v2, v3 = T.axis.remap("SRSR", [n, i, c, j])
            with T.init():
                B[v0, v2] = T.float32(0)
            B[v0, v2] = B[v0, v2] + A[v0, v1, v2, v3]


@T.prim_func
def scaled(
    A: T.Buffer((4, 8), "float32"), W: T.Buffer((8,), "float32"), C: T.Buffer((4, 8), "float32")
):
    B = T.alloc_buffer((4, 8))
    for i, j in T.grid(4, 8):
        with T.block("scale"):
            v0, v1 = T.axis.remap("SS", [i, j])
            B[v0, v1] = A[v0, v1] * W[v1]
    for i, j in T.grid(4, 8):
        with T.block("add"):
            v0, v1 = T.axis.remap("SS", [i, j])
            C[v0, v1] = B[v0, v1] + T.float32(1)


def _applied(func: tir.PrimFunc, transforms: list[Any]) -> tuple[tir.PrimFunc, dict[str, Any]]:
    """The function with what is suggested, and the suggested layouts of buffers by name."""
    schedule, layouts = tir.Schedule(func), {}
    for block, suggested in suggest_layout_transforms(func, transforms).items():
        for item, index_map in suggested.items():
            if isinstance(item, tir.Block):
                schedule.transform_block_layout(item.name_hint, index_map)
            else:
                layouts[item.name] = index_map
                schedule.transform_layout(schedule.get_block(block.name_hint), item, index_map)
    return schedule.mod["main"], layouts


CASES = [
    (pooled, lambda n, C, h, w, c: (n, h, w, C * 4 + c), {"A": (2, 9, 5, 8), "B": (2, 4, 5, 8)}),
    (sums, lambda n, c: (n, c // 4, c % 4), {"A": (4, 3, 2, 4, 2), "B": (4, 2, 4)}),
    (
        scaled, lambda n, c: (n, c // 4, c % 4),
        {"A": (4, 2, 4), "W": (2, 4), "B": (4, 2, 4), "C": (4, 2, 4)},
    ),
    (scaled, lambda n, c: (c, n), {"A": (8, 4), "B": (8, 4), "C": (8, 4)}),
]  # fmt: skip


@pytest.mark.parametrize("func, transform, wanted", CASES)
def test_blocks_and_sources_follow_the_result(
    func: tir.PrimFunc, transform: Any, wanted: dict[str, Any]
) -> None:
    after, layouts = _applied(func, [transform])
    assert layouts.keys() == wanted.keys()
    before = [func.buffer_map[p] for p in func.params]
    shapes = [tuple([int(d) for d in after.buffer_map[p].shape]) for p in after.params]
    names = [b.name for b in before]
    assert shapes == [
        wanted.get(name, tuple([int(d) for d in b.shape]))
        for name, b in zip(names, before, strict=True)
    ]
    values = [np.random.rand(*[int(d) for d in b.shape]).astype("float32") for b in before]
    moved = [
        layouts[name].map_ndarray(value) if name in layouts else value
        for name, value in zip(names, values, strict=True)
    ]
    (result, found) = [[tvm.nd.array(v) for v in each] for each in (values, moved)]
    tvm.build(func, target="llvm")(*result)
    tvm.build(after, target="llvm")(*found)
    wanted_result = layouts[names[-1]].map_ndarray(result[-1].numpy())
    np.testing.assert_allclose(found[-1].numpy(), wanted_result, rtol=1e-6)


def test_nothing_is_suggested_where_padding_would_be() -> None:
    assert suggest_layout_transforms(scaled, [lambda i, j: (i, j // 5, j % 5)]) == {}
    assert suggest_layout_transforms(scaled, []) == {}


def test_transforms_are_of_results() -> None:
    with pytest.raises(TVMError, match="at most 3 transforms, got 4"):
        suggest_layout_transforms(scaled, [lambda i, j: (j, i)] * 4)
    with pytest.raises(TVMError, match="2 indices for C, got 1"):
        suggest_layout_transforms(scaled, [lambda i: i])
