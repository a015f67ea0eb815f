"""Functions of many loops: the groups that become functions of their own."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tvm
from tvm import te, tir

from .helpers import run


def chain(stages: int, size: object, parallel: bool = False) -> tuple[te.Schedule, list[te.Tensor]]:
    """x * 0.5 + 0, the same of that, ..."""
    data = value = te.placeholder((size,), name="data")
    for number in range(stages):
        value = stage(value, number)
    schedule = te.create_schedule(value.op)
    if parallel:
        for item in schedule.stages[1:]:
            item.parallel(item.op.axis[0])
    return schedule, [data, value]


def stage(value: te.Tensor, number: int) -> te.Tensor:
    return te.compute(value.shape, lambda i: value[i] * 0.5 + float(number), name=f"s{number}")


def reference(x: np.ndarray, stages: int) -> np.ndarray:
    for number in range(stages):
        x = x * np.float32(0.5) + np.float32(number)
    return x


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("stages", [31, 32, 75])
def test_a_long_chain_of_loops_is_computed_in_order(stages: int, parallel: bool) -> None:
    schedule, args = chain(stages, 37, parallel)
    func = tvm.build(schedule, args, "llvm")
    x = np.random.default_rng(0).normal(size=37).astype("float32")
    np.testing.assert_allclose(run(func, x, x * 0)[1], reference(x, stages), rtol=1e-6)
    parts = re.findall(r"^define internal i32 @\S*_part", func.get_source("unoptimized"), re.M)
    assert len(parts) == (0 if stages < 32 else -(-stages // 16))


def test_groups_receive_the_values_of_their_function() -> None:
    n = te.var("n")
    schedule, args = chain(40, n)
    func = tvm.build(schedule, [n, *args], "llvm")
    x = np.arange(11, dtype="float32")
    np.testing.assert_allclose(run(func, 11, x, x * 0)[2], reference(x, 40), rtol=1e-6)


def test_a_failure_in_a_group_is_reported() -> None:
    data = tir.decl_buffer((64,), "int32", "data")
    limit, handle = tir.Var("limit", "int32"), tir.Var("handle", "handle")
    loops = [add_to_all(data, number) for number in range(40)]
    too_small = tir.StringImm("limit is too small")
    loops[20] = tir.AssertStmt(limit > 3, too_small, loops[20])
    func = tir.PrimFunc([limit, handle], tir.SeqStmt(loops), buffer_map={handle: data})
    built = tvm.build(func, target="llvm")
    x = np.zeros(64, "int32")
    assert run(built, 4, x)[1].tolist() == [780] * 64
    with pytest.raises(tvm.TVMError, match="limit is too small"):
        run(built, 2, x)


def add_to_all(data: tir.Buffer, number: int) -> tir.Stmt:
    i = tir.Var(f"i{number}", "int32")
    store = tir.BufferStore(data, data[i] + number, [i])
    return tir.For(i, 0, 64, tir.ForKind.SERIAL, store)


def test_loops_that_only_move_vectors_are_not_opened() -> None:
    data = te.placeholder((768,), name="data")
    copies = [te.compute((768,), lambda i: data[i], name=f"copy{n}") for n in range(3)]
    schedule = te.create_schedule([copy.op for copy in copies])
    for copy in copies:
        _, lane = schedule[copy].split(copy.op.axis[0], factor=16)
        schedule[copy].vectorize(lane)
    func = tvm.build(schedule, [data, *copies], "llvm -mcpu=skylake-avx512")
    assert len(re.findall(r"store <\d+ x float>", func.get_source("ll"))) == 3
