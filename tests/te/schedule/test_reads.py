"""Reads beyond a tensor are rejected when a program is built; those that a condition prevents are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tvm
from tvm import te
from tvm.error import TVMError

A = te.placeholder((10,), name="A")
M = te.placeholder((4, 10), name="M")
AT = te.placeholder((10,), "int32", name="at")
N = te.size_var("n")
K = te.reduce_axis((0, 4), "k")
Body = Callable[..., Any]

Rejected = [
    (lambda i: A[i + 5], "index i + 5 of axis 0 takes values from 5 to 14, and the extent is 10"),
    (lambda i: A[i - 1], "from -1 to 8"),
    (lambda i: M[i, i], "index i of axis 0 takes values from 0 to 9, and the extent is 4"),
    (lambda i: te.if_then_else(i < 6, A[i + 5], 0.0), "from 5 to 10"),
    (lambda i: te.sum(A[i + K], axis=K), "from 0 to 12"),
    (lambda i: A[(i * 7) % 11], "from 0 to 10"),
    (lambda i: A[te.max(i, 10)], "from 10 to 10"),
]


@pytest.mark.parametrize(("body", "told"), Rejected)
def test_reads_beyond_a_tensor_are_rejected(body: Body, told: str) -> None:
    out = te.compute((10,), body, "out")
    s = te.create_schedule(out.op)
    with pytest.raises(TVMError, match="compute out reads [AM] outside of its extents") as error:
        tvm.build(s, [A, M, out], "llvm")
    assert told in str(error.value)


TAKEN = [
    lambda i: te.if_then_else(i < 5, A[i + 5], 0.0),
    lambda i: te.if_then_else(te.all(i >= 1, i < 9), A[i - 1] + A[i + 1], 0.0),
    lambda i: te.if_then_else(te.any(i < 1, i > 8), 0.0, A[i - 1] + A[i + 1]),
    lambda i: tvm.tir.Select(i < 5, A[i + 5], A[i]),
    lambda i: te.if_then_else(tvm.tir.likely(i < 5), A[i + 5], 0.0),
    lambda i: A[te.min(i + 5, 9)],
    lambda i: A[te.max(te.min(i * 2 - 3, 9), 0)],
    lambda i: A[(i * 7) % 10],
    lambda i: A[i + i % 2 * 0 + (9 - i) - (9 - i)],
    lambda i: A[AT[i]],
    lambda i: te.if_then_else(AT[i] > 3, A[i + 5], 0.0),
    lambda i: A[i * 1 + N],
    lambda i: te.sum(A[i + K], axis=K, where=i + K < 10),
    lambda i: te.max(te.if_then_else(i + K < 10, A[i + K], -1.0), axis=K),
]


@pytest.mark.parametrize("body", TAKEN)
def test_reads_that_stay_within_a_tensor_are_taken(body: Body) -> None:
    out = te.compute((10,), body, "out")
    tvm.lower(te.create_schedule(out.op), [A, AT, N, out])


def test_nothing_is_read_where_nothing_is_computed() -> None:
    out = te.compute((0,), lambda i: A[i + 50], "out")
    tvm.lower(te.create_schedule(out.op), [A, out])


def test_a_scan_may_read_the_step_before() -> None:
    x = te.placeholder((8, 4), name="x")
    state = te.placeholder((8, 4), name="state")
    init = te.compute((1, 4), lambda _, i: x[0, i], "init")
    update = te.compute((8, 4), lambda t, i: state[t - 1, i] + x[t - 1, i], "update")
    total = te.scan(init, update, state, inputs=[x])
    tvm.lower(te.create_schedule(total.op), [x, total])


def test_padded_and_cached_schedules_are_taken() -> None:
    out = te.compute((10,), lambda i: A[i] + 1.0, "out")
    s = te.create_schedule(out.op)
    cache = s.cache_read(A, "global", [out])
    outer, inner = s[out].split(out.op.axis[0], 4)
    s[cache].compute_at(s[out], outer)
    s[out].vectorize(inner)
    tvm.build(s, [A, out], "llvm")


@pytest.mark.parametrize("choose", [lambda i: i, lambda i: [i], lambda i: K.var])
def test_sums_over_what_is_no_reduction_axis_are_rejected(choose: Body) -> None:
    with pytest.raises(TypeError, match="requires axes that te.reduce_axis made, got"):
        te.compute((10,), lambda i: te.sum(A[i], axis=choose(i)))


def test_open_loops_over_a_tensor_without_elements_may_have_no_steps() -> None:
    n, a = te.var("n"), te.placeholder((0,), name="A")
    out = te.compute((n,), lambda i: a[0], name="out")
    tvm.lower(te.create_schedule(out.op), [a, out, n])
