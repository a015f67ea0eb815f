"""Matrix products: the tiles and the numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.topi.common import check
from tvm import te, topi
from tvm.target.cpu import cpu_info
from tvm.topi.nn.dense.cpu import MatmulConfig, choose_matmul

TARGETS = ["llvm -mcpu=core-avx2", "llvm"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "rows, units, inner", [(1, 40, 16), (12, 96, 33), (7, 48, 1), (13, 16, 8), (37, 32, 5)]
)
def test_packed_dense_agrees_with_numpy(rows: int, units: int, inner: int, target: str) -> None:
    block = topi.x86.dense.packed_columns(rows, units, inner, "float32", tvm.target.Target(target))
    assert block is not None
    data = te.placeholder((rows, inner), name="data")
    weight = te.placeholder((units // block, inner, block), name="weight")
    bias = te.placeholder((units,), name="bias")
    out = topi.nn.relu(topi.add(topi.nn.dense_pack(data, weight), bias))

    def reference(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.maximum(x @ w.transpose(1, 0, 2).reshape(inner, units) + b, 0)

    check([data, weight, bias, out], topi.x86.schedule_dense_pack, reference, target)


def test_packed_dense_keeps_leading_axes() -> None:
    data = te.placeholder((2, 4, 8), name="data")
    weight = te.placeholder((2, 8, 16), name="weight")
    check(
        [data, weight, topi.nn.dense_pack(data, weight)],
        topi.x86.schedule_dense_pack,
        lambda x, w: x @ w.transpose(1, 0, 2).reshape(8, 32),
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(
    "batch, rows, columns, inner", [(3, 8, 32, 16), (2, 7, 9, 5), (1, 1, 16, 3), (2, 37, 19, 6)]
)
def test_batch_matmul_agrees_with_numpy(
    batch: int, rows: int, columns: int, inner: int, transpose_b: bool, target: str
) -> None:
    a = te.placeholder((batch, rows, inner), name="a")
    b = te.placeholder((batch, *((columns, inner) if transpose_b else (inner, columns))), name="b")
    out = topi.nn.batch_matmul(a, b, None, "float32", False, transpose_b)
    check(
        [a, b, topi.nn.relu(out)],
        topi.x86.schedule_batch_matmul,
        lambda x, y: np.maximum(x @ (y.swapaxes(1, 2) if transpose_b else y), 0),
        target,
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize(
    "rows, columns, inner", [(1, 33, 101), (1, 96, 64), (7, 10, 64), (12, 3, 40), (5, 300, 7)]
)
def test_plain_products_of_any_columns(
    rows: int, columns: int, inner: int, transpose_b: bool, target: str
) -> None:
    a = te.placeholder((rows, inner), name="a")
    b = te.placeholder((columns, inner) if transpose_b else (inner, columns), name="b")
    bias = te.placeholder((columns,), name="bias")
    out = topi.nn.relu(topi.add(topi.nn.matmul(a, b, None, None, False, transpose_b), bias))
    check(
        [a, b, bias, out],
        topi.x86.schedule_dense_nopack,
        lambda x, y, z: np.maximum(x @ (y.T if transpose_b else y) + z, 0),
        target,
    )


def test_every_tile_gives_the_same_numbers() -> None:
    for config in (MatmulConfig(1, 16, 16), MatmulConfig(3, 32, 16), MatmulConfig(6, 32, 8)):
        a, b = te.placeholder((6, 20), name="a"), te.placeholder((20, 32), name="b")
        check(
            [a, b, topi.nn.matmul(a, b)],
            lambda outs, config=config: topi.x86.schedule_dense_nopack(outs, config),
            lambda x, y: x @ y,
        )


def test_accumulators_fit_the_registers() -> None:
    for target in TARGETS:
        info = cpu_info(tvm.target.Target(target))
        for rows in (1, 7, 12, 128):
            for columns in (16, 40, 96, 1000, 3072):
                tile = choose_matmul(rows, columns, "float32", info)
                assert tile is not None
                vectors = tile.columns // tile.lanes
                assert vectors * (tile.rows + 1) < info.vector_registers
                assert rows % tile.rows == 0 and columns % tile.columns == 0


def test_panels_of_a_deep_weight_stay_in_the_second_cache() -> None:
    info = cpu_info(tvm.target.Target("llvm"))
    for inner in (768, 3072, 8192):
        block = topi.x86.dense.packed_columns(128, 3072, inner, "float32")
        assert block is not None
        assert block * inner * 4 <= info.l2 // 2 or block <= 2 * info.fp32_lanes
