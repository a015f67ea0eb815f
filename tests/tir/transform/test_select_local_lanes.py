from __future__ import annotations

from tvm.script import tir as T
from tvm.tir.transform import SelectLocalLanes

from .checks import assert_transforms, assert_unchanged


def test_a_masked_sum_becomes_a_sum_of_full_registers() -> None:
    @T.prim_func
    def program(A: T.Buffer((70,), "float32"), B: T.Buffer((14,), "float32")):
        sums = T.decl_buffer((14,), scope="local")
        sums.vstore(
            [T.Ramp(0, 1, 16)],
            T.Broadcast(T.float32(0), 16),
            predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16),
        )
        for k in range(5):
            sums.vstore(
                [T.Ramp(0, 1, 16)],
                sums.vload([T.Ramp(0, 1, 16)], predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16))
                + A.vload(
                    [T.Ramp(k * 14, 1, 16)], predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16)
                ),
                predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16),
            )
        B.vstore(
            [T.Ramp(0, 1, 16)],
            sums.vload([T.Ramp(0, 1, 16)], predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16)),
            predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16),
        )

    before = program

    @T.prim_func
    def program(A: T.Buffer((70,), "float32"), B: T.Buffer((14,), "float32")):
        sums = T.decl_buffer((16,), scope="local")
        sums[0:16] = T.Broadcast(T.float32(0), 16)
        for k in range(5):
            sums[0:16] = sums[0:16] + A.vload(
                [T.Ramp(k * 14, 1, 16)], predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16)
            )
        B.vstore([T.Ramp(0, 1, 16)], sums[0:16], predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16))

    assert_transforms(SelectLocalLanes(), before, program)


def test_hidden_lanes_that_another_access_shows_keep_what_they_hold() -> None:
    @T.prim_func
    def program(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        cells = T.decl_buffer((16,), scope="local")
        cells[0:16] = T.Broadcast(T.float32(0), 16)
        cells.vstore([T.Ramp(0, 1, 16)], A[0:16], predicate=T.Ramp(0, 1, 16) < T.Broadcast(5, 16))
        B[0:16] = cells[0:16]

    before = program

    @T.prim_func
    def program(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        cells = T.decl_buffer((16,), scope="local")
        cells[0:16] = T.Broadcast(T.float32(0), 16)
        cells[0:16] = T.Select(T.Ramp(0, 1, 16) < T.Broadcast(5, 16), A[0:16], cells[0:16])
        B[0:16] = cells[0:16]

    assert_transforms(SelectLocalLanes(), before, program)


def test_a_mask_that_changes_within_the_life_of_a_buffer_is_a_choice() -> None:
    @T.prim_func
    def program(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        cells = T.decl_buffer((16,), scope="local")
        for k in range(3):
            cells.vstore(
                [T.Ramp(0, 1, 16)], A[0:16], predicate=T.Ramp(0, 1, 16) < T.Broadcast(k, 16)
            )
        for k in range(3):
            B.vstore(
                [T.Ramp(0, 1, 16)],
                cells.vload([T.Ramp(0, 1, 16)], predicate=T.Ramp(0, 1, 16) < T.Broadcast(k, 16)),
                predicate=T.Ramp(0, 1, 16) < T.Broadcast(k, 16),
            )

    before = program

    @T.prim_func
    def program(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        cells = T.decl_buffer((16,), scope="local")
        for k in range(3):
            cells[0:16] = T.Select(T.Ramp(0, 1, 16) < T.Broadcast(k, 16), A[0:16], cells[0:16])
        for k in range(3):
            B.vstore(
                [T.Ramp(0, 1, 16)], cells[0:16], predicate=T.Ramp(0, 1, 16) < T.Broadcast(k, 16)
            )

    assert_transforms(SelectLocalLanes(), before, program)


def test_masks_on_memory_that_others_see_remain() -> None:
    @T.prim_func
    def program(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
        B.vstore(
            [T.Ramp(0, 1, 16)],
            A.vload([T.Ramp(0, 1, 16)], predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16)),
            predicate=T.Ramp(0, 1, 16) < T.Broadcast(14, 16),
        )

    assert_unchanged(SelectLocalLanes(), program)


def test_masks_remain_where_the_place_has_no_bound() -> None:
    @T.prim_func
    def program(B: T.Buffer((14,), "float32"), n: T.int32):
        sums = T.decl_buffer((14,), scope="local")
        sums.vstore(
            [T.Ramp(n, 1, 16)],
            T.Broadcast(T.float32(0), 16),
            predicate=T.Ramp(n, 1, 16) < T.Broadcast(14, 16),
        )
        B[0] = sums[3]

    assert_unchanged(SelectLocalLanes(), program)


def test_masks_remain_where_the_buffer_cannot_be_made_longer() -> None:
    @T.prim_func
    def program(B: T.Buffer((14,), "float32"), n: T.int32):
        sums = T.decl_buffer((n,), scope="local")
        sums.vstore(
            [T.Ramp(0, 1, 16)],
            T.Broadcast(T.float32(0), 16),
            predicate=T.Ramp(0, 1, 16) < T.Broadcast(n, 16),
        )
        B[0] = sums[0]

    assert_unchanged(SelectLocalLanes(), program)
