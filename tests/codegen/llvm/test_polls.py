"""Long serial loops look for signals; short ones are left as they are."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te

POLL = "TVMBackendPollSignals"


def _function(rows: int, columns: int, parallel: bool = False) -> tvm.runtime.Module:
    """The sum of each row, whose elements are computed before."""
    a = te.placeholder((rows, columns), "int32", name="a")
    k = te.reduce_axis((0, columns), name="k")
    b = te.compute((rows,), lambda i: te.sum(a[i, k] * (k + 1), axis=k), name="b")
    schedule = te.create_schedule(b.op)
    if parallel:
        schedule[b].parallel(b.op.axis[0])
    return tvm.build(schedule, [a, b], "llvm")


@pytest.mark.parametrize(("rows", "columns"), [(16, 1 << 18), (1, 1 << 25), (1, (1 << 22) * 8 + 5)])
def test_functions_of_few_stores_do_not_look(rows: int, columns: int) -> None:
    text = _function(rows, columns).get_source()
    assert (POLL in text) == (rows * columns >= 1 << 25)


@pytest.mark.parametrize("extent", [1 << 25, (1 << 25) + 1, (1 << 25) + (1 << 22) - 1])
def test_a_loop_in_chunks_has_all_its_iterations(extent: int) -> None:
    a = te.placeholder((extent,), "int8", name="a")
    b = te.compute((extent,), lambda i: a[i] + te.if_then_else(i % 3 == 0, 1, 2), name="b")
    func = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    assert POLL in func.get_source()
    x = np.arange(extent).astype("int8")
    out = tvm.nd.array(np.zeros(extent, b.dtype))
    func(tvm.nd.array(x), out)
    wanted = x + np.where(np.arange(extent) % 3 == 0, 1, 2)
    np.testing.assert_array_equal(out.numpy(), wanted.astype(b.dtype))


def test_parallel_loops_look_only_where_they_are_very_long() -> None:
    assert POLL not in _function(1 << 13, 1 << 13, parallel=True).get_source()
    assert POLL in _function(1 << 14, 1 << 14, parallel=True).get_source()


def test_a_function_that_fails_gives_its_workspace_back() -> None:
    @tvm.register_func("tests.fails", override=True)
    def fails(*_: tvm.nd.NDArray) -> None:
        raise RuntimeError("on purpose")

    n = 1 << 24
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1, name="b")
    c = te.extern(
        (n,), [b], lambda ins, outs: tvm.tir.call_packed("tests.fails", ins[0], outs[0]), name="c"
    )
    func = tvm.build(te.create_schedule(c.op), [a, c], "llvm")
    x = tvm.nd.array(np.zeros(n, "float32"))
    before = _resident()
    for _ in range(8):
        with pytest.raises(RuntimeError, match="on purpose"):
            func(x, x)
    assert _resident() - before < 4 * x.numpy().nbytes  # each call allocates as much as x


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
