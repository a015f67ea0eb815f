"""Schedules as JSON: what comes back lowers to the same program, and shares what was shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te

Case = Callable[[], tuple[te.Schedule, list[te.Tensor]]]


def again(s: te.Schedule, tensors: list[te.Tensor]) -> tuple[te.Schedule, list[te.Tensor]]:
    """Schedule and tensors, saved and loaded together."""
    loaded: Any = tvm.ir.load_json(tvm.ir.save_json([s, *tensors]))
    return loaded[0], list(loaded[1:])


def row_sums() -> tuple[te.Schedule, list[te.Tensor]]:
    n = te.var("n")
    a = te.placeholder((n, 16), name="A")
    b = te.compute((n, 16), lambda i, j: a[i, j] + 1, name="B")
    k = te.reduce_axis((0, 16), "k")
    c = te.compute((n,), lambda i: te.sum(b[i, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], 4)
    s[b].compute_at(s[c], outer)
    s[b].vectorize(s[b].op.axis[1])
    s[c].pragma(inner, "auto_unroll_max_step", 8)
    s[c].parallel(outer)
    return s, [a, c]


def cached_product() -> tuple[te.Schedule, list[te.Tensor]]:
    a = te.placeholder((32, 32), name="A")
    b = te.placeholder((32, 32), name="B")
    k = te.reduce_axis((0, 32), "k")
    c = te.compute((32, 32), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    local = s.cache_write(c, "local")
    xo, yo, xi, yi = s[c].tile(c.op.axis[0], c.op.axis[1], 8, 8)
    s[local].compute_at(s[c], yo)
    ko, _ = s[local].split(k, 4)
    packed = s.cache_read(b, "global", [local])
    s[packed].compute_at(s[local], ko)
    s[c].bind(s[c].fuse(xo, yo), te.thread_axis("blockIdx.x"))
    s[c].bind(xi, te.thread_axis("threadIdx.x"))
    s[c].unroll(yi)
    return s, [a, b, c]


def factored_and_grouped() -> tuple[te.Schedule, list[te.Tensor]]:
    a = te.placeholder((64,), name="A")
    b = te.compute((64,), lambda i: a[i] * 2, name="B")
    c = te.compute((64,), lambda i: b[i] + 1, name="C")
    k = te.reduce_axis((0, 64), "k")
    d = te.compute((1,), lambda i: te.sum(c[k], axis=k), name="D")
    s = te.create_schedule(d.op)
    _, inner = s[d].split(d.op.reduce_axis[0], 16)
    s.rfactor(d, inner)
    s[b].compute_inline()
    return s, [a, d]


def scan() -> tuple[te.Schedule, list[te.Tensor]]:
    state = te.placeholder((4, 8), name="state")
    x = te.placeholder((4, 8), name="X")
    init = te.compute((1, 8), lambda _, i: x[0, i])
    update = te.compute((4, 8), lambda t, i: state[t - 1, i] + x[t, i])
    result = te.scan(init, update, state, inputs=[x])
    s = te.create_schedule(result.op)
    s[update].split(update.op.axis[1], 4)
    return s, [x, result]


@pytest.mark.parametrize("case", [row_sums, cached_product, factored_and_grouped, scan])
def test_a_loaded_schedule_lowers_to_the_same_program(case: Case) -> None:
    s, tensors = case()
    loaded, its_tensors = again(s, tensors)
    before, after = tvm.lower(s, tensors), tvm.lower(loaded, its_tensors)
    tvm.ir.assert_structural_equal(before, after, map_free_vars=True)
    assert str(before) == str(after)


def test_a_loaded_schedule_shares_what_was_shared() -> None:
    s, tensors = row_sums()
    loaded, (a, c) = again(s, tensors)
    assert loaded[c].op is c.op and loaded[a].op is a.op
    b = loaded.stages[1]
    assert b.attach_stage is loaded[c] and b.attach_ivar is loaded[c].leaf_iter_vars[0]
    assert loaded[c].relations[0].parent is c.op.axis[0]
    assert loaded.stage_map[c.op] is loaded.stages[-1] and type(loaded.stages) is list


def test_a_loaded_schedule_takes_further_primitives_and_runs() -> None:
    s, tensors = row_sums()
    loaded, (a, c) = again(s, tensors)
    loaded[c].unroll(loaded[c].leaf_iter_vars[1])
    values = np.arange(7 * 16, dtype="float32").reshape(7, 16)
    out = tvm.nd.empty((7,))
    tvm.build(loaded, [a, c], "llvm")(tvm.nd.array(values), out)
    np.testing.assert_allclose(out.numpy(), (values + 1).sum(axis=1))
    assert len(s[tensors[1]].iter_var_attrs) == 2  # the one that was saved has not changed


def test_a_schedule_alone_keeps_its_tensors() -> None:
    s, _ = cached_product()
    loaded: Any = tvm.ir.load_json(tvm.ir.save_json(s))
    c = loaded.outputs[0].output(0)
    a, b = [stage.op.output(0) for stage in loaded.stages if isinstance(stage.op, te.PlaceholderOp)]
    assert [t.op.name for t in (a, b, c)] == ["A", "B", "C"]
    assert "blockIdx.x" in str(tvm.lower(loaded, [a, b, c]))


def test_json_of_a_schedule_with_other_attributes_is_rejected() -> None:
    s, _ = row_sums()
    text = tvm.ir.save_json(s).replace('"attach_ivar"', '"attach_iver"')
    with pytest.raises(tvm.TVMError, match="Stage needs .*attach_ivar"):
        tvm.ir.load_json(text)
