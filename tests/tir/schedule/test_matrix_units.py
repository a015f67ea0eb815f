from __future__ import annotations

import pytest

import tvm
from tvm import te, tir
from tvm.testing.tir import mma_schedule
from tvm.tir.tensor_intrin import cuda as intrin
from tvm.tir.tensor_intrin.cuda import (
    get_mma_intrin_group,
    index_map_shared_16x16_to_ldmatrix_32x8_layout,
    ldmatrix_32x8_to_shared_16x16_layout,
    shared_16x16_to_ldmatrix_32x8_layout,
    shared_16x32_to_ldmatrix_32x16_layout,
    shared_32x16_to_ldmatrix_32x16_layout,
)

N = 256


def product(size: int = N) -> tir.PrimFunc:
    a = te.placeholder((size, size), "float16", name="A")
    b = te.placeholder((size, size), "float16", name="B")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute(
        (size, size),
        lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=[k]),
        name="C",
    )
    return te.create_prim_func([a, b, c])


def index_map(i: tir.PrimExpr, j: tir.PrimExpr) -> tuple[object, ...]:
    return (i // 16, j // 16, *shared_16x16_to_ldmatrix_32x8_layout(i % 16, j % 16))


def scheduled() -> tir.Schedule:
    return mma_schedule(
        product(), 16, "float16", False, [1, 4, 1, 2, 2], [4, 2, 2, 1, 1], [8, 2, 1],
        index_map, index_map, index_map,
        intrin.LDMATRIX_f16_A_DYN_INTRIN, intrin.LDMATRIX_f16_B_DYN_INTRIN,
        intrin.MMA_f16f16f32_INTRIN, intrin.MMA_fill_16x16_f32_INTRIN,
        intrin.MMA_store_16x16_f32_global_INTRIN, "shared.dyn",
    )  # fmt: skip


def test_products_are_scheduled_for_matrix_units() -> None:
    text = scheduled().mod.script()
    for call, count in (("ptx_mma", 2), ("ptx_ldmatrix", 2), ("mma_fill", 1), ("mma_store", 1)):
        assert text.count(f"T.{call}(") == count


def test_products_on_matrix_units_are_pipelined() -> None:
    sch = scheduled()
    loop = sch.get_loops(sch.get_block("C_o_update"))[3]
    sch.annotate(loop, "software_pipeline_stage", [0, 0, 3])
    sch.annotate(loop, "software_pipeline_order", [0, 1, 2])
    sch.annotate(loop, "software_pipeline_async_stages", [0])
    passes = tvm.transform.Sequential(
        [
            tir.transform.PlanAndUpdateBufferAllocationLocation(),
            tir.transform.ConvertBlocksToOpaque(),
            tir.transform.UnifyThreadBinding(),
            tir.transform.LowerMatchBuffer(),
            tir.transform.InjectSoftwarePipeline(),
        ]
    )
    text = passes(sch.mod).script()
    assert "async_commit_queue_scope" in text
    assert 'T.attr(0, "async_wait_inflight_count", 3)' in text


@pytest.mark.parametrize(
    ("layout", "shape", "registers"),
    [
        (shared_16x16_to_ldmatrix_32x8_layout, (16, 16), 8),
        (shared_16x32_to_ldmatrix_32x16_layout, (16, 32), 16),
        (shared_32x16_to_ldmatrix_32x16_layout, (32, 16), 16),
    ],
)
def test_each_register_holds_one_element(
    layout: object, shape: tuple[int, int], registers: int
) -> None:
    places = [layout(i, j) for i in range(shape[0]) for j in range(shape[1])]  # type: ignore[operator]
    assert sorted(places) == [(t, r) for t in range(32) for r in range(registers)]


def test_layouts_have_inverses() -> None:
    for i in range(16):
        for j in range(16):
            place = shared_16x16_to_ldmatrix_32x8_layout(i, j)
            assert ldmatrix_32x8_to_shared_16x16_layout(*place) == (i, j)
            assert index_map_shared_16x16_to_ldmatrix_32x8_layout([i, j]) == place


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("types", [("float16", "float32"), ("int8", "int32")])
def test_groups_name_intrinsics_that_are_registered(types: tuple[str, str], trans_b: bool) -> None:
    group = get_mma_intrin_group("shared", "global", *types, False, trans_b)
    assert sorted(group) == ["compute", "init", "load_a", "load_b", "store"]
    for name in group.values():
        assert tir.TensorIntrin.get(name).impl is not None
