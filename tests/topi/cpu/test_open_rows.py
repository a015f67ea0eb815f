"""Rows and columns that only the run knows: loops without a division for each element."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tvm
from tvm import te, tir, topi
from tvm.tir.stmt_functor import post_order_visit

IMAGE = (1, 8, tir.SizeVar("height", "int32"), tir.SizeVar("width", "int32"), 8)


def joined(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    return topi.concatenate([a, b], axis=1)


def pooled(a: te.Tensor, b: te.Tensor) -> te.Tensor:
    return topi.nn.pool2d(a, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max", layout="NCHW8c")


def scheduled(out: te.Tensor, is_pool: bool) -> te.Schedule:
    if is_pool:
        return topi.x86.schedule_pool(out, "NCHW8c")
    return topi.x86.schedule_injective(out)


@pytest.mark.parametrize("compute", [joined, pooled])
def test_columns_are_a_loop_inside_the_parallel_one(compute: Callable[..., te.Tensor]) -> None:
    a, b = te.placeholder(IMAGE, name="a"), te.placeholder(IMAGE, name="b")
    with tvm.target.Target("llvm -mcpu=znver3"):
        out = compute(a, b)
        func = tvm.lower(scheduled(out, compute is pooled), [a, b, out])["main"]
    loops: list[tir.For] = []
    post_order_visit(func.body, lambda n: loops.append(n) if isinstance(n, tir.For) else None)
    columns, parallel = loops[-2:]
    assert parallel.kind == tir.ForKind.PARALLEL
    divided: list[tir.PrimExpr] = []

    def visit(node: tir.Node) -> None:
        if isinstance(node, (tir.FloorDiv, tir.FloorMod)):
            divided.append(node)

    post_order_visit(columns.body, visit)
    assert not any([_reads(e, columns.loop_var) for e in divided])


def _reads(expr: tir.PrimExpr, var: tir.Var) -> bool:
    found: list[bool] = []
    post_order_visit(expr, lambda n: found.append(n is var))
    return any(found)


def test_few_known_rows_stay_one_loop() -> None:
    shape = (1, 1, tir.SizeVar("width", "int32"), 8)
    a = te.placeholder(shape, name="a")
    with tvm.target.Target("llvm -mcpu=znver3"):
        out = topi.nn.relu(topi.strided_slice(a, [0, 0, 0, 0], [1, 1, 1 << 30, 8]))
        func = tvm.lower(topi.x86.schedule_injective(out), [a, out])["main"]
    loops: list[tir.For] = []
    post_order_visit(func.body, lambda n: loops.append(n) if isinstance(n, tir.For) else None)
    assert [loop.kind for loop in loops] == [tir.ForKind.PARALLEL]
