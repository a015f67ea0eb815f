"""States: their loops, their text, and the schedules that they lead to."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, te
from tvm.auto_scheduler.loop_state import Stage, State
from tvm.auto_scheduler.steps import Replay
from tvm.testing.auto_scheduler import (
    conv2d_nchw_bn_relu_auto_scheduler_test,
    get_tiled_matmul,
    matmul_auto_scheduler_test,
)


def product(n: int = 64) -> tuple[auto_scheduler.ComputeDAG, State, te.Tensor]:
    tensors = matmul_auto_scheduler_test(n, n, n)
    dag = auto_scheduler.ComputeDAG(tensors)
    return dag, dag.get_init_state(), tensors[-1]


def results(dag: auto_scheduler.ComputeDAG, state: State, rewrite: int = 0) -> np.ndarray:
    sch, args = dag.apply_steps_from_state(state, rewrite)
    func = tvm.build(sch, args, "llvm")
    rng = np.random.default_rng(0)
    arrays = [
        tvm.nd.array(rng.uniform(size=[int(d) for d in t.shape]).astype(t.dtype)) for t in args
    ]
    func(*arrays)
    return arrays[-1].numpy()


def test_splits_give_loops_with_extents_and_names() -> None:
    _, s, c = product()
    i, j, _ = s[c].iters
    i0, i1, i2 = s.split(c, i, [8, 2])
    assert [loop.range.extent for loop in (i0, i1, i2)] == [4, 8, 2]
    assert [loop.name for loop in (i0, i1, i2)] == ["i.0", "i.1", "i.2"]
    j0, j1, j2 = s.split(c, j, [2, 8], inner_to_outer=False)
    assert [loop.extent for loop in (j0, j1, j2)] == [2, 8, 4]
    assert s[c].iters[0] is i0
    fused = s.fuse(c, [i2, j0])
    assert (fused.name, fused.extent) == ("i.2@j.0@", 4)


def test_state_prints_its_nest() -> None:
    _, s, c = product()
    i, j, k = s[c].iters
    j0, j1 = s.split(c, j, [16])
    s.reorder(c, [i, j0, k, j1])
    s.parallel(c, s.fuse(c, [i, j0]))
    s.pragma(c, k, "auto_unroll_max_step$64")
    s.vectorize(c, j1)
    assert str(s) == (
        "Placeholder: A, B\n"
        "C auto_unroll: 64\n"
        "parallel i@j.0@ (0,256)\n"
        "  for k (0,64)\n"
        "    vectorize j.1 (0,16)\n"
        "      C = ...\n"
    )


def test_python_code_makes_the_same_schedule() -> None:
    dag, s, c = product()
    i, j, k = s[c].iters
    cache = s.cache_write(c, "local")
    i0, i1 = s.split(c, s[c].iters[0], [4])
    s.compute_at(cache, c, i0)
    s.parallel(c, i0)
    code = dag.print_python_code_from_state(s)
    names = {t.op.name: t for t in dag.tensors}
    scope = {**names, "s": te.create_schedule(names["C"].op), "te": te}
    exec(code, scope)
    expected = tvm.lower(*dag.apply_steps_from_state(s), simple_mode=True)
    assert str(tvm.lower(scope["s"], dag.tensors, simple_mode=True)) == str(expected)


def test_stages_are_inlined_and_computed_at_loops() -> None:
    tensors = conv2d_nchw_bn_relu_auto_scheduler_test(1, 14, 14, 8, 16, 3, 1, 1)
    dag = auto_scheduler.ComputeDAG(tensors)
    s = dag.get_init_state()
    names = [op.name for op in s.stage_ops]
    conv, bias, mul, add, relu = [s.stage_ops[i] for i in (3, 5, 7, 9, 10)]
    assert names[0] == "Data" and names[2] == "Kernel"
    for op in (add, mul, bias):
        s.compute_inline(op)
        assert s[op].compute_at == Stage.COMPUTE_AT_TRANS_TABLE["inlined"]
    s.compute_at(conv, relu, s[relu].iters[2])
    assert s[conv].iters[0].range is None
    s = dag.infer_bound_from_state(s)
    assert [loop.extent for loop in s[conv].iters] == [1, 1, 1, 14, 8, 3, 3]
    np.testing.assert_allclose(results(dag, s), results(dag, dag.get_init_state()), rtol=1e-5)


def test_steps_that_add_stages_keep_the_result() -> None:
    dag, s, c = product()
    expected = results(dag, s)
    a = s.stage_ops[0]
    cache = s.cache_write(c, "local")
    copy = s.cache_read(a, "global", [cache])
    i0, _ = s.split(c, s[c].iters[0], [8])
    s.compute_at(cache, c, i0)
    s.compute_at(copy, cache, s[cache].iters[0])
    assert [op.name for op in s.stage_ops] == ["A", "A.global", "B", "C.local", "C"]
    np.testing.assert_allclose(results(dag, s), expected, rtol=1e-5)


def test_rfactor_makes_partial_results() -> None:
    dag, s, c = product()
    expected = results(dag, s)
    _, k1 = s.split(c, s[c].iters[2], [8])
    partial = s.rfactor(c, k1, 2)
    assert [loop.extent for loop in s[partial].iters] == [64, 64, 8, 8]
    assert [loop.name for loop in s[partial].iters] == ["i", "j", "k_i", "k_o"]
    assert s.stage_ops[-1].name == "C" and s[c] is s.stages[-1]
    np.testing.assert_allclose(results(dag, s), expected, rtol=1e-5)


def test_followed_splits_have_the_lengths_of_their_source() -> None:
    tensors = conv2d_nchw_bn_relu_auto_scheduler_test(1, 14, 14, 8, 16, 3, 1, 1)
    s = auto_scheduler.ComputeDAG(tensors).get_init_state()
    conv, relu = s.stage_ops[3], s.stage_ops[10]
    s.split(conv, s[conv].iters[1], [2, 4])
    first = s.follow_split(relu, s[relu].iters[1], 0, 2)
    assert [loop.extent for loop in first] == [2, 2, 4]
    second = s.follow_split(relu, s[relu].iters[4], 0, 1)
    assert [loop.extent for loop in second] == [2, 8]
    third = s.follow_fused_split(relu, s[relu].iters[6], [0], 1, factor_or_nparts=True)
    assert [loop.extent for loop in third] == [4, 4]


def test_wrong_steps_are_refused() -> None:
    _, s, c = product()
    i, j, k = s[c].iters
    with pytest.raises(tvm.TVMError, match="consecutive"):
        s.fuse(c, [i, k])
    s.parallel(c, i)
    with pytest.raises(tvm.TVMError, match="without an annotation"):
        s.unroll(c, s[c].iters[0])
    with pytest.raises(ValueError, match="has no loop i"):
        s.split(c, i, [2])
    with pytest.raises(ValueError, match="thread_name"):
        s.bind(c, j, "warp")


def test_extents_are_those_that_te_infers() -> None:
    dag, s = get_tiled_matmul()
    inferred = dag.infer_bound_from_state(s)
    replay = Replay(dag.ops, dag.graph.outputs)
    replay.run(s.transform_steps)
    ranges = te.schedule.InferBound(replay.schedule.normalize())
    expected = [int(ranges[iv].extent) for iv in replay.axes[2]]
    assert [loop.extent for loop in inferred.stages[2].iters] == expected


def test_copies_change_on_their_own() -> None:
    _, s, c = product()
    other = s.copy()
    other.split(c, other[c].iters[0], [4])
    assert s != other and len(s[c].iters) == 3 and len(other[c].iters) == 4
