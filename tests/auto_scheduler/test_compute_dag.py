"""Graphs of computes: order, operations, hashes, layouts of inputs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler import LayoutRewriteOption
from tvm.testing.auto_scheduler import (
    get_tiled_matmul,
    invalid_compute_definition,
    matmul_auto_scheduler_test,
    parallel_matmul_auto_scheduler_test,
)


def test_operations_on_numbers_are_counted() -> None:
    n = 64
    a, b, c = matmul_auto_scheduler_test(n, n, n)
    assert auto_scheduler.ComputeDAG([a, b, c]).flop_ct == 2 * n**3
    relu = topi.nn.relu(c)
    assert auto_scheduler.ComputeDAG([a, b, relu]).flop_ct == 2 * n**3 + n * n
    # comparisons of padding are not operations of the program
    padded = topi.nn.pad(c, [1, 1])
    assert auto_scheduler.ComputeDAG([a, b, padded]).flop_ct == 2 * n**3
    given = te.compute((n, n), lambda i, j: c[i, j], name="F", attrs={"FLOP": 1234})
    assert auto_scheduler.ComputeDAG([a, b, given]).flop_ct == 2 * n**3 + 1234


def test_access_tells_reuse_and_inlining() -> None:
    a, b, c = matmul_auto_scheduler_test(8, 8, 8)
    d = te.compute((8, 8), lambda i, j: c[i, j] + 1.0, name="D")
    e = te.compute((8, 8), lambda i, j: te.exp(d[j, i]), name="E")
    access = auto_scheduler.ComputeDAG([a, b, e]).access_analyzer
    assert access.wants_tiles[c.op] and not access.wants_tiles[d.op]
    assert access.strictly_inlineable[d.op] and not access.strictly_inlineable[e.op]
    assert access.is_elementwise_chain(c.op, d.op)
    assert not access.is_elementwise_chain(d.op, e.op)
    assert access.consumers(d.op) == [e.op] and access.is_output(e.op)


def test_text_and_key_tell_what_is_computed() -> None:
    dag = auto_scheduler.ComputeDAG(matmul_auto_scheduler_test(8, 8, 8))
    assert str(dag) == (
        "A = PLACEHOLDER [8, 8]\nB = PLACEHOLDER [8, 8]\nC(i, j) += A[i, k] * B[k, j]\n"
    )
    assert dag.workload_key().endswith(", [8, 8], [8, 8], [8, 8]]")
    other = auto_scheduler.ComputeDAG(parallel_matmul_auto_scheduler_test(8))
    assert dag.workload_key().split(",")[0] != other.workload_key().split(",")[0]


def test_names_of_axes_differ() -> None:
    with pytest.raises(tvm.TVMError, match="r1 twice"):
        auto_scheduler.ComputeDAG(invalid_compute_definition())


def test_layouts_follow_the_tiles() -> None:
    dag, s = get_tiled_matmul()
    rewrite = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
    _, args = dag.apply_steps_from_state(s, rewrite)
    assert [int(d) for d in args[1].shape] == [4, 8, 4, 4, 512]
    _, args = dag.apply_steps_from_state(s, LayoutRewriteOption.INSERT_TRANSFORM_STAGE)
    assert [int(d) for d in args[1].shape] == [512, 512]
    assert auto_scheduler.get_shape_from_rewritten_layout("4j8k2j", ["k", "j"]) == (8, 8)


@pytest.mark.parametrize("has_cache", [False, True])
def test_rewritten_layouts_keep_the_result(has_cache: bool) -> None:
    dag = auto_scheduler.ComputeDAG(matmul_auto_scheduler_test(32, 48, 16))
    s = dag.get_init_state()
    c = s.stage_ops[2]
    if has_cache:
        c = s.cache_write(c, "local")
    i, j, k = s[c].iters
    i0, i1 = s.split(c, i, [4])
    j0, j1, j2 = s.split(c, j, [3, 8])
    k0, k1 = s.split(c, k, [4])
    s.reorder(c, [i0, j0, j1, k0, i1, k1, j2])
    if has_cache:
        out = s.stage_ops[3]
        s.compute_at(c, out, s[out].iters[0])
    rng = np.random.default_rng(1)
    a, b = (
        rng.uniform(size=(32, 16)).astype("float32"),
        rng.uniform(size=(16, 48)).astype("float32"),
    )
    packed = b.reshape(4, 4, 2, 3, 8).transpose(2, 3, 0, 1, 4)
    weights = {
        LayoutRewriteOption.NO_REWRITE: b,
        LayoutRewriteOption.INSERT_TRANSFORM_STAGE: b,
        LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED: packed,
    }
    for option, weight in weights.items():
        sch, args = dag.apply_steps_from_state(s, option)
        func = tvm.build(sch, args, "llvm")
        out_array = tvm.nd.empty((32, 48))
        func(tvm.nd.array(a), tvm.nd.array(np.ascontiguousarray(weight)), out_array)
        np.testing.assert_allclose(out_array.numpy(), a @ b, rtol=1e-5)


def test_graphs_are_pickled() -> None:
    dag, s = get_tiled_matmul()
    copy = pickle.loads(pickle.dumps(dag))
    assert str(copy) == str(dag)
    assert str(copy.full_state(s)) == str(s)
