from __future__ import annotations

from typing import Any

import pytest

from tvm import tir
from tvm.error import LoweringError
from tvm.tir.stmt import Block, BlockRealize, For, IfThenElse, Stmt
from tvm.tir.stmt_functor import post_order_visit
from tvm.tir.transform import InjectSoftwarePipeline

from .checks import apply, assert_same_results, assert_unchanged
from .programs import function, loop, store

SHAPE = (9, 4)
A, B = tir.decl_buffer(SHAPE, name="A"), tir.decl_buffer(SHAPE, name="B")
T, U = tir.decl_buffer((4,), name="T"), tir.decl_buffer((4,), name="U")


def pipelined(stages: list[int], places: list[int], extent: int = 9, **more: Any) -> tir.PrimFunc:
    """Rows of A go through T and U to B."""

    def row(i: tir.Var) -> Stmt:
        steps = [
            loop(4, lambda k: store(T, k, A[i, k] * 2.0), name="k"),
            loop(4, lambda k: store(U, k, T[3 - k] + 1.0), name="k"),
            loop(4, lambda k: store(B, [i, k], U[k] + T[k]), name="k"),
        ]
        body = tir.SeqStmt(steps[: len(stages)])
        return BlockRealize([], True, Block([], [], [], "row", body, None, [T, U]))

    marks = {"software_pipeline_stage": stages, "software_pipeline_order": places, **more}
    return function([A, B], loop(extent, row).replace(annotations=marks))


def inside(func: tir.PrimFunc, kind: type) -> list[Any]:
    found: list[Any] = []
    post_order_visit(func.body, lambda n: found.append(n) if isinstance(n, kind) else None)
    return found


@pytest.mark.parametrize("extent", [1, 2, 3, 9])
@pytest.mark.parametrize(
    ("stages", "places"),
    [
        ([0, 0, 1], [0, 1, 2]),
        ([0, 1, 2], [2, 1, 0]),
        ([0, 1, 1], [1, 0, 2]),
        ([0, 2, 3], [0, 1, 2]),
    ],
)
def test_pipelines_compute_what_the_loop_does(
    stages: list[int], places: list[int], extent: int
) -> None:
    before = pipelined(stages, places, extent)
    after = apply(InjectSoftwarePipeline(), before)
    assert_same_results(before, after, SHAPE, SHAPE)
    assert "software_pipeline" not in repr(after)


def test_memory_between_stages_has_a_version_for_each_iteration_under_way() -> None:
    after = apply(InjectSoftwarePipeline(), pipelined([0, 1, 2], [0, 1, 2]))
    (block,) = inside(after, Block)
    assert [[int(d) for d in b.shape] for b in block.alloc_buffers] == [[3, 4], [2, 4]]
    # read before it is written anew
    after = apply(InjectSoftwarePipeline(), pipelined([0, 1, 2], [2, 1, 0]))
    (block,) = inside(after, Block)
    assert [[int(d) for d in b.shape] for b in block.alloc_buffers] == [[2, 4], [4]]


def test_long_loops_need_no_conditions() -> None:
    after = apply(InjectSoftwarePipeline(), pipelined([0, 1, 2], [0, 1, 2]))
    assert not inside(after, IfThenElse)
    assert [int(f.extent) for f in inside(after, For) if f.loop_var.name == "i"] == [7]


def test_other_loops_are_left_alone() -> None:
    func = function([A, B], loop(9, lambda i: store(B, [i, 0], A[i, 1])))
    assert_unchanged(InjectSoftwarePipeline(), func)


@pytest.mark.parametrize(
    ("func", "text"),
    [
        (
            pipelined([1, 0, 1], [0, 1, 2]),
            "accesses of T in the order of the loop, got stages 1 and 0",
        ),
        (
            pipelined([0, 0, 1], [1, 0, 2]),
            "accesses of T in the order of the loop, got stages 0 and 0",
        ),
        (
            pipelined([0, 1, 1], [0, 2, 1]),
            "accesses of U in the order of the loop, got stages 1 and 1",
        ),
        (pipelined([0, 1], [0, 1, 2]), "of 2 statements, got 2 stages and 3 places"),
        (pipelined([0, 1, 1], [0, 2, 2]), "stages from 0 and each place once"),
        (
            pipelined([0, 1, 1], [0, 1, 2], software_pipeline_async_stages=[0]),
            "the CUDA back end for asynchronous copies",
        ),
    ],
)
def test_pipelines_that_cannot_be_are_rejected(func: tir.PrimFunc, text: str) -> None:
    with pytest.raises(LoweringError, match=text):
        apply(InjectSoftwarePipeline(), func)


def test_memory_of_others_is_accessed_in_the_order_of_the_loop() -> None:
    def row(i: tir.Var) -> Stmt:
        return tir.SeqStmt([store(B, [i, 0], A[i, 1]), store(A, [i, 2], B[i, 0] * 2.0)])

    def marked(places: list[int]) -> tir.PrimFunc:
        marks = {"software_pipeline_stage": [0, 0], "software_pipeline_order": places}
        return function([A, B], loop(9, row).replace(annotations=marks))

    before = marked([0, 1])
    assert_same_results(before, apply(InjectSoftwarePipeline(), before), SHAPE, SHAPE)
    with pytest.raises(ValueError, match="accesses of A in the order of the loop"):
        apply(InjectSoftwarePipeline(), marked([1, 0]))


def test_memory_that_is_written_twice_keeps_both_values_apart() -> None:
    def row(i: tir.Var) -> Stmt:
        steps = [
            store(T, 0, A[i, 0]),
            store(B, [i, 0], T[0]),
            store(T, 0, A[i, 1]),
            store(B, [i, 1], T[0]),
        ]
        body = tir.SeqStmt(steps)
        return BlockRealize([], True, Block([], [], [], "row", body, None, [T]))

    for stages in ([0, 1, 1, 2], [0, 0, 2, 2], [0, 1, 3, 3]):
        marks = {"software_pipeline_stage": stages, "software_pipeline_order": [0, 1, 2, 3]}
        before = function([A, B], loop(9, row).replace(annotations=marks))
        assert_same_results(before, apply(InjectSoftwarePipeline(), before), SHAPE, SHAPE)
