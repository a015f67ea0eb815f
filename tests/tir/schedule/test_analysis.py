"""Layouts that loops suggest, and how blocks fuse into intrinsics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tvm import get_global_func, te, tir
from tvm.arith import Analyzer
from tvm.script import tir as T
from tvm.testing import te_workload
from tvm.tir.schedule.analysis import get_auto_tensorize_mapping_info, suggest_index_map
from tvm.tir.tensor_intrin.cuda import WMMA_SYNC_16x16x16_f16f16f32_INTRIN


def loops_over(*extents: int) -> tuple[list[tir.Var], list[tir.For]]:
    variables = [tir.Var(f"l{at}", "int32") for at in range(len(extents))]
    nothing = tir.Evaluate(0)
    return variables, [
        tir.For(var, 0, extent, tir.ForKind.SERIAL, nothing)
        for var, extent in zip(variables, extents, strict=True)
    ]


def is_map(found: Any, expected: Callable[..., Any]) -> bool:
    wanted = expected(*found.initial_indices)
    analyzer = Analyzer()
    return len(found.final_indices) == len(wanted) and all(
        analyzer.can_prove_equal(a, b) for a, b in zip(found.final_indices, wanted, strict=True)
    )


def test_a_layout_has_the_parts_of_loops_in_their_order() -> None:
    (i, j), loops = loops_over(32, 64)
    found = suggest_index_map(
        tir.decl_buffer((8, 256)), [i // 16 * 4 + j // 16, i % 16 * 16 + j % 16], loops,
        tir.const(True),
    )  # fmt: skip
    assert is_map(found, lambda x, y: [x // 4, y // 16, x % 4, y % 16])


def test_a_layout_may_turn_loops_round() -> None:
    (i, j), loops = loops_over(2, 32)
    found = suggest_index_map(tir.decl_buffer((8,)), [j % 4 * 2 + i], loops, tir.const(True))
    assert is_map(found, lambda x: [x % 2, x // 2])


def test_a_layout_of_tiles_is_told_from_fused_loops() -> None:
    (fused, inner, k0, k1), loops = loops_over(1008, 32, 4, 32)
    indices = [
        fused // 336 * 2 + fused % 16 // 8, fused % 336 // 112 * 2 + fused % 8 // 4,
        fused % 4 * 32 + inner, k0 * 32 + k1,
    ]  # fmt: skip
    found = suggest_index_map(tir.decl_buffer((6, 6, 128, 128)), indices, loops, tir.const(True))
    assert is_map(
        found,
        lambda a, b, c, d: [a // 2, b // 2, a % 2, b % 2, c // 32, c % 32, d // 32, d % 32],
    )
    back = found.inverse((6, 6, 128, 128))
    assert is_map(
        back,
        lambda a, b, c, d, e, f, g, h: [a * 2 + c, b * 2 + d, e * 32 + f, g * 32 + h],
    )


def test_indices_that_are_no_parts_of_loops_suggest_nothing() -> None:
    (i, j), loops = loops_over(8, 8)
    assert suggest_index_map(tir.decl_buffer((64,)), [i * j], loops, tir.const(True)) is None


HALF = {"in_dtype": "float16", "out_dtype": "float32"}


@pytest.mark.parametrize(
    ("tensors", "block", "expected"),
    [
        (
            te_workload.conv2d_nhwc(4, 16, 16, 64, 64, 3, 1, 1, **HALF), "conv2d_nhwc",
            lambda n, h, w, c, r, s, k: [n * 256 + h * 16 + w, c, r * 192 + s * 64 + k],
        ),
        (te_workload.batch_matmul_nkkm(16, 32, 32, 32, **HALF), "Z", lambda *axes: [*axes]),
        (te_workload.matmul(1, 32, 32, **HALF), "C", lambda *axes: [*axes]),
        (te_workload.matmul(32, 32, 32), "C", None),
        (te_workload.matmul_relu(32, 32, 32, **HALF), "T_relu", None),
        (te_workload.depthwise_conv2d_nhwc(1, 8, 8, 16, 3, **HALF), "depth_conv2d_nhwc", None),
    ],
)  # fmt: skip
def test_blocks_fuse_into_the_variables_of_a_product(
    tensors: te_workload.Tensors, block: str, expected: Callable[..., Any] | None
) -> None:
    sch = tir.Schedule(te.create_prim_func(tensors))
    product = tir.TensorIntrin.get(WMMA_SYNC_16x16x16_f16f16f32_INTRIN).desc
    found = get_auto_tensorize_mapping_info(sch, sch.get_block(block), product)
    if expected is None:
        assert found is None
        return
    assert is_map(found.mappings[0], expected)
    assert len(found.lhs_buffer_map) == len(found.rhs_buffer_indices) == 3
    assert [len(found.lhs_iters), len(found.rhs_iters)] == [
        len(found.mappings[0].initial_indices),
        3,
    ]


def test_the_normal_form_has_a_loop_for_each_variable_and_none_of_extent_1() -> None:
    @T.prim_func
    def product(
        A: T.Buffer((8, 1, 4), "float32"),
        C: T.Buffer((8, 1), "float32"),
        D: T.Buffer((1,), "float32"),
    ):
        for i, j, k in T.grid(8, 1, 4):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vj, vk]
        for i in range(1):
            with T.block("D"):
                vi = T.axis.spatial(1, i)
                D[vi] = C[vi, 0]

    schedule = tir.Schedule(product)
    blocks, loops, axes, is_reduction = get_global_func("tir.schedule.NormalizePrimFunc")(schedule)
    assert [schedule.get(block).name_hint for block in blocks] == ["C", "D"]
    extents = [[schedule.get(loop).extent.value for loop in of_block] for of_block in loops]
    assert extents == [[8, 4], [1]]
    assert [[int(axis.iter_type) for axis in of_block] for of_block in axes] == [[0, 2], [0]]
    assert list(is_reduction) == [True, False]


def test_blocks_at_split_loops_have_no_normal_form() -> None:
    A = te.placeholder((16,), name="A")
    func = te.create_prim_func([A, te.compute((16,), lambda i: A[i] * 2.0, name="B")])
    schedule = tir.Schedule(func)
    schedule.split(schedule.get_loops("B")[0], [4, 4])
    assert get_global_func("tir.schedule.NormalizePrimFunc")(schedule) is None
