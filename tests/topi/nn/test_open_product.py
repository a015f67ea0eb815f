"""Products of matrices whose extents only the run knows, at lengths that tiles do and do not divide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tvm
from tests.topi.common import M, N, check_at_lengths
from tvm import te, topi

TARGETS = ["llvm", "llvm -mcpu=core-avx2 -num-cores=16"]
Shape = Sequence[Any]


@pytest.mark.parametrize(
    "batch, rows, inner, columns, transpose_a, transpose_b, target",
    [
        (12, N, 8, N, 0, 1, TARGETS[0]),
        (12, N, N, 8, 0, 0, TARGETS[1]),
        (3, N, M, 20, 0, 1, TARGETS[1]),
        (3, N, M, 20, 1, 0, TARGETS[0]),
        (1, 9, N, N, 0, 0, TARGETS[0]),
        (1, 9, N, N, 1, 1, TARGETS[1]),
        (2, 20, 5, N, 0, 1, TARGETS[1]),
        (2, 20, 5, N, 0, 0, TARGETS[0]),
        (M, N, 4, 64, 0, 0, TARGETS[0]),
        (M, N, 4, 64, 1, 1, TARGETS[1]),
    ],
)
def test_batches_agree_with_numpy(
    batch: Any, rows: Any, inner: Any, columns: Any, transpose_a: int, transpose_b: int, target: str
) -> None:
    a = te.placeholder((batch, inner, rows) if transpose_a else (batch, rows, inner), name="a")
    b = te.placeholder(
        (batch, columns, inner) if transpose_b else (batch, inner, columns), name="b"
    )
    where = tvm.target.Target(target)
    with where:
        out = topi.x86.batch_matmul(a, b, None, None, bool(transpose_a), bool(transpose_b))

    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        x = x.swapaxes(1, 2) if transpose_a else x
        return np.matmul(x, y.swapaxes(1, 2) if transpose_b else y)

    check_at_lengths([a, b], out, topi.x86.schedule_batch_matmul, reference, where)


@pytest.mark.parametrize("shapes", [((1, N, 8), (12, 8, N)), ((12, N, 8), (1, 8, N))])
def test_a_batch_of_one_is_broadcast(shapes: Sequence[Shape]) -> None:
    a, b = [te.placeholder(shape, name=name) for shape, name in zip(shapes, "ab", strict=True)]
    where = tvm.target.Target("llvm")
    with where:
        out = topi.x86.batch_matmul(a, b, transpose_b=False)
    check_at_lengths([a, b], out, topi.x86.schedule_batch_matmul, np.matmul, where)


@pytest.mark.parametrize(
    "rows, inner, columns, transpose_a, transpose_b, target",
    [
        (N, 70, 130, False, False, TARGETS[0]),
        (N, 70, 130, False, True, TARGETS[1]),
        (N, M, N, True, True, TARGETS[0]),
        (N, M, N, False, False, TARGETS[1]),
        (33, N, 48, False, True, TARGETS[0]),
        (5, N, 7, True, False, TARGETS[1]),
    ],
)
def test_matrices_with_a_bias_and_an_activation(
    rows: Any, inner: Any, columns: Any, transpose_a: bool, transpose_b: bool, target: str
) -> None:
    a = te.placeholder((inner, rows) if transpose_a else (rows, inner), name="a")
    b = te.placeholder((columns, inner) if transpose_b else (inner, columns), name="b")
    bias = te.placeholder((columns,), name="bias")
    where = tvm.target.Target(target)
    with where:
        product = topi.x86.matmul_pack(a, b, bias, None, transpose_a, transpose_b)
        out = topi.nn.relu(product)

    def reference(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.maximum((x.T if transpose_a else x) @ (y.T if transpose_b else y) + z, 0)

    check_at_lengths([a, b, bias], out, topi.x86.schedule_matmul_pack, reference, where)


@pytest.mark.parametrize(
    "dtypes", [("int8", "int32"), ("float64", "float64"), ("float32", "float64")]
)
def test_other_numbers(dtypes: tuple[str, str]) -> None:
    a = te.placeholder((4, N, M), dtypes[0], "a")
    b = te.placeholder((4, N, M), dtypes[0], "b")
    where = tvm.target.Target("llvm")
    with where:
        out = topi.x86.batch_matmul(a, b, None, dtypes[1])

    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.matmul(x.astype(dtypes[1]), y.astype(dtypes[1]).swapaxes(1, 2))

    check_at_lengths([a, b], out, topi.x86.schedule_batch_matmul, reference, where)


def test_an_output_of_another_shape_reads_the_product() -> None:
    a, b = te.placeholder((4, N, 8), name="a"), te.placeholder((4, M, 8), name="b")
    where = tvm.target.Target("llvm")
    with where:
        out = topi.transpose(topi.x86.batch_matmul(a, b), (0, 2, 1))

    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.matmul(y, x.swapaxes(1, 2))

    check_at_lengths([a, b], out, topi.x86.schedule_batch_matmul, reference, where)


def test_sums_stay_in_registers_and_conditions_out_of_them() -> None:
    a, b = te.placeholder((12, N, 64), name="a"), te.placeholder((12, N, 64), name="b")
    where = tvm.target.Target("llvm -mcpu=skylake-avx512")
    with where:
        out = topi.x86.batch_matmul(a, b)
        text = str(tvm.lower(topi.x86.schedule_batch_matmul(out), [a, b, out]).script())
    loops = text.split("for k in ")[1:]
    assert len(loops) > 1
    for loop in loops:
        sums = loop.split("for ")[0].split("T_crop")[0]
        assert sums.count("T.Broadcast(") == 12  # six rows of two vectors
        assert "T.likely" not in sums
