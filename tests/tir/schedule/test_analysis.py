"""Layouts that loops suggest, and how blocks fuse into intrinsics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tvm import te, tir
from tvm.arith import Analyzer
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
