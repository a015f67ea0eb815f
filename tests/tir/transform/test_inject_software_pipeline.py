from __future__ import annotations

from typing import Any

import pytest

from tvm import tir
from tvm.error import LoweringError
from tvm.tir.stmt import Block, BlockRealize, For, ForKind, Stmt
from tvm.tir.stmt_functor import post_order_visit
from tvm.tir.transform import InjectSoftwarePipeline, Simplify

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
    assert versions(after) == [[3, 4], [2, 4]]
    # read before it is written anew
    after = apply(InjectSoftwarePipeline(), pipelined([0, 1, 2], [2, 1, 0]))
    assert versions(after) == [[3, 4], [4]]


def versions(func: tir.PrimFunc) -> list[list[int]]:
    buffers = [b for block in inside(func, Block) for b in block.alloc_buffers]
    return [[int(d) for d in b.shape] for b in buffers]


def test_the_steady_state_of_long_loops_needs_no_conditions() -> None:
    after = apply(InjectSoftwarePipeline(), pipelined([0, 1, 2], [0, 1, 2]))
    after = apply(Simplify(), after)
    loops = [f for f in inside(after, For) if f.loop_var.name == "i"]
    assert [(int(f.extent), f.kind) for f in loops] == [
        (2, ForKind.UNROLLED), (7, ForKind.SERIAL), (2, ForKind.UNROLLED),
    ]  # fmt: skip
    steps = loops[1].body.seq
    assert [str(step.predicate) for step in steps] == ["T.bool(True)"] * 3


def test_regions_say_what_each_part_accesses() -> None:
    after = apply(Simplify(), apply(InjectSoftwarePipeline(), pipelined([0, 0, 1], [0, 1, 2])))
    whole, *_, steady, _ = outer_blocks(after)
    assert [str(region) for region in whole.reads] == ["A[0:9, 0:4]"]
    assert [str(region) for region in whole.writes] == ["B[0:9, 0:4]"]
    assert [(r.buffer.name, int(r.region[0].extent)) for r in steady.writes] == [
        ("T", 2), ("U", 2), ("B", 8),
    ]  # fmt: skip


def outer_blocks(func: tir.PrimFunc) -> list[Block]:
    """The block of the pipeline, and those of its parts."""
    (whole,) = [block for block in inside(func, Block) if block.alloc_buffers]
    return [whole, *[stmt.block for stmt in tir.stmt.stmt_list(whole.body)]]


def attributes(node: Any, key: str) -> list[str]:
    found: list[str] = []

    def note(stmt: Any) -> None:
        if isinstance(stmt, tir.AttrStmt) and stmt.attr_key == key:
            found.append(str(stmt.value))

    post_order_visit(node, note)
    return found


@pytest.mark.parametrize("extent", [1, 2, 3, 9])
@pytest.mark.parametrize(
    ("stages", "places", "issued"),
    [([0, 0, 2], [0, 1, 2], [0]), ([0, 1, 2], [0, 1, 2], [0, 1]), ([0, 1, 1], [0, 1, 2], [0])],
)
def test_asynchronous_pipelines_compute_what_the_loop_does(
    stages: list[int], places: list[int], issued: list[int], extent: int
) -> None:
    before = pipelined(stages, places, extent, software_pipeline_async_stages=issued)
    if stages == [0, 1, 2]:
        with pytest.raises(LoweringError, match="results of one asynchronous stage"):
            apply(InjectSoftwarePipeline(), before)
        return
    after = apply(InjectSoftwarePipeline(), before)
    assert_same_results(before, after, SHAPE, SHAPE)
    assert "async_stages" not in repr(after)


def test_results_of_asynchronous_stages_are_waited_for() -> None:
    before = pipelined([0, 2, 2], [0, 1, 2], software_pipeline_async_stages=[0])
    _, filling, steady, emptying = outer_blocks(apply(InjectSoftwarePipeline(), before))
    assert attributes(filling, "async_commit_queue_scope") == ["0"]
    assert attributes(steady, "async_commit_queue_scope") == ["0"]
    assert attributes(steady, "async_scope") == ["1"]
    # two iterations are under way while the third is read
    assert attributes(steady, "async_wait_queue_scope") == ["0"]
    assert attributes(steady, "async_wait_inflight_count") == ["2"]
    assert attributes(emptying, "async_wait_inflight_count") == ["1 - i"]


def test_an_asynchronous_step_waits_for_what_it_reads_of_its_own_stage() -> None:
    before = pipelined([0, 0, 2], [0, 1, 2], software_pipeline_async_stages=[0])
    _, _, steady, _ = outer_blocks(apply(InjectSoftwarePipeline(), before))
    assert attributes(steady, "async_commit_queue_scope") == ["0", "0"]
    assert attributes(steady, "async_wait_inflight_count") == ["0", "4"]


def nested(stages: list[int], places: list[int]) -> tir.PrimFunc:
    """For each row, what is in T goes through U to B in a pipeline of its own."""

    def row(i: tir.Var) -> Stmt:
        def column(j: tir.Var) -> Stmt:
            steps = [store(U, 0, T[3 - j] + 1.0), store(B, [i, j], U[0] + T[j])]
            block = Block([], [], [], "column", tir.SeqStmt(steps), None, [U])
            return BlockRealize([], True, block)

        marks = {"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}
        fill = loop(4, lambda k: store(T, k, A[i, k] * 2.0), name="k")
        inner = loop(4, column, name="j").replace(annotations=marks)
        return BlockRealize(
            [], True, Block([], [], [], "row", tir.SeqStmt([fill, inner]), None, [T])
        )

    marks = {"software_pipeline_stage": stages, "software_pipeline_order": places}
    return function([A, B], loop(9, row).replace(annotations=marks))


@pytest.mark.parametrize(
    ("stages", "places"), [([0, 1, 1, 1], [0, 1, 2, 3]), ([0, 0, 1, 1], [0, 2, 1, 3])]
)
def test_parts_of_a_pipeline_are_steps_of_the_outer_one(
    stages: list[int], places: list[int]
) -> None:
    before = nested(stages, places)
    after = apply(InjectSoftwarePipeline(), before)
    assert_same_results(before, after, SHAPE, SHAPE)
    assert versions(after) == [[2, 4], [2, 4]]


def test_double_buffers_have_two_versions() -> None:
    def row(i: tir.Var) -> Stmt:
        marks = {"double_buffer_scope": 0}
        region = tir.BufferRegion(T, [tir.stmt.Range(0, 4)])
        fill = loop(4, lambda k: store(T, k, A[i, k] * 2.0), name="k")
        block = Block([], [], [region], "fill", fill, annotations=marks)
        use = loop(4, lambda k: store(B, [i, k], T[k]), name="k")
        body = tir.SeqStmt([BlockRealize([], True, block), use])
        return BlockRealize([], True, Block([], [], [], "row", body, None, [T]))

    marks = {"software_pipeline_stage": [0, 0], "software_pipeline_order": [0, 1]}
    before = function([A, B], loop(9, row).replace(annotations=marks))
    after = apply(InjectSoftwarePipeline(), before)
    assert versions(after) == [[2, 4]]
    assert_same_results(before, after, SHAPE, SHAPE)


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
    with pytest.raises(ValueError, match="accesses of B in the order of the loop"):
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
