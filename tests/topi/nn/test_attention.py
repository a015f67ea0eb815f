"""Attention over shapes that tiles do and do not divide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tests.topi.common import M, N, check, check_at_lengths
from tvm import te, topi
from tvm.topi.nn.attention.compute import AttentionConfig
from tvm.topi.x86 import choose_attention

TARGETS = ["llvm -mcpu=core-avx2 -num-cores=2", "llvm -num-cores=4"]


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, bias: np.ndarray) -> np.ndarray:
    scores = q.astype("float64") @ k.swapaxes(1, 2) * 0.5 + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def tensors(
    count: Any, queries: Any, keys: Any, depth: int, width: int, config: AttentionConfig | None
) -> list[te.Tensor]:
    q = te.placeholder((count, queries, depth), name="q")
    k = te.placeholder((count, keys, depth), name="k")
    v = te.placeholder((count, keys, width), name="v")
    bias = te.placeholder((queries, keys), name="bias")
    return [q, k, v, bias, topi.nn.attention(q, k, v, bias, scale=0.5, config=config)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "count, queries, keys, depth, width",
    [
        (3, 7, 5, 3, 4),
        (2, 37, 70, 8, 24),
        (5, 64, 64, 16, 32),
        (1, 24, 33, 5, 80),
        (4, 4, 1, 1, 8),
        (2, 20, 256, 36, 36),
        (3, 40, 40, 20, 20),
        (2, 33, 192, 7, 44),
    ],
)
def test_attention_agrees_with_numpy(
    count: int, queries: int, keys: int, depth: int, width: int, target: str
) -> None:
    where = tvm.target.Target(target)
    shapes = ((count, queries, depth), (count, keys, width))
    config = choose_attention(*shapes, "float32", where)
    assert config is not None
    found = tensors(count, queries, keys, depth, width, config)
    check(found, topi.x86.schedule_attention, reference, target)


@pytest.mark.parametrize(
    "count, queries, keys, width, target",
    [
        (12, N, N, 32, "llvm"),
        (12, N, M, 24, "llvm -mcpu=core-avx2 -num-cores=2"),
        (3, N, N, 16, "llvm -num-cores=16"),
        (4, 9, N, 64, "llvm"),
        (M, N, 20, 16, "llvm"),
    ],
)
def test_open_lengths_agree_with_numpy(
    count: Any, queries: Any, keys: Any, width: int, target: str
) -> None:
    where = tvm.target.Target(target)
    config = choose_attention((count, queries, 16), (count, keys, width), "float32", where)
    assert config is not None
    *inputs, out = tensors(count, queries, keys, 16, width, config)
    check_at_lengths(
        inputs, out, topi.x86.schedule_attention, reference, where, tolerance=2e-4, span=1
    )


def test_open_lengths_do_without_short_rows_of_values() -> None:
    where = tvm.target.Target("llvm")
    assert choose_attention((12, N, 64), (12, N, 3), "float32", where) is None
    assert choose_attention((12, 1, 64), (12, N, 64), "float32", where) is None
    assert choose_attention((12, N, M), (12, N, 64), "float32", where) is None


def test_every_tile_gives_the_same_numbers() -> None:
    for config in (
        AttentionConfig(1, 1, 1, 1, 1, 1),
        AttentionConfig(3, 16, 16, 8, 8, 2),
        AttentionConfig(5, 32, 16, 16, 16, 1),
    ):
        check(tensors(2, 12, 21, 6, 16, config), topi.x86.schedule_attention, reference)


def test_few_queries_are_not_worth_packing() -> None:
    assert (
        choose_attention((12, 1, 64), (12, 128, 64), "float32", tvm.target.Target("llvm")) is None
    )


def test_odd_widths_are_padded_to_full_vectors() -> None:
    where = tvm.target.Target("llvm -mcpu=skylake-avx512")
    config = choose_attention((8, 64, 40), (8, 64, 40), "float32", where)
    assert config is not None
    assert (config.value_columns, config.value_lanes) == (48, 16)
