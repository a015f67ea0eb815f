"""Intrinsics of matrix units that nothing here can run: their layouts, their texts, and what threads load."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tir.transform.lockstep import run_block
from tvm import te, tir
from tvm.arith import Analyzer
from tvm.script import tir as T
from tvm.tir.stmt_functor import post_order_visit, substitute
from tvm.tir.tensor_intrin import cuda, metal, rocm

LAYOUTS = [
    (rocm.shared_16x4_to_local_64x1_layout_A, rocm.thread_id_shared_access_64x1_to_16x4_layout_A, (16, 4)),
    (rocm.shared_4x16_to_local_64x1_layout_B, rocm.thread_id_shared_access_64x1_to_4x16_layout_B, (4, 16)),
    (rocm.shared_16x16_to_local_64x4_layout_A, rocm.thread_id_shared_access_64x4_to_16x16_layout_A, (16, 16)),
    (rocm.shared_16x16_to_local_64x4_layout_B, rocm.thread_id_shared_access_64x4_to_16x16_layout_B, (16, 16)),
    (rocm.shared_16x16_to_local_64x4_layout_C, rocm.thread_id_shared_access_64x4_to_16x16_layout_C, (16, 16)),
]  # fmt: skip


@pytest.mark.parametrize(("there", "back", "shape"), LAYOUTS)
def test_layouts_of_waves_are_inverse(there: Any, back: Any, shape: tuple[int, int]) -> None:
    held = set()
    for i, j in np.ndindex(*shape):
        thread, register = [int(part) for part in there(i, j)]
        assert tuple([int(index) for index in back(thread, register)]) == (i, j)
        held.add((thread, register))
    assert held == set(np.ndindex(64, shape[0] * shape[1] // 64))


@pytest.mark.parametrize(
    ("k_dim", "is_b", "transposed"),
    [(4, False, False), (4, True, False), (16, False, False), (16, True, False), (16, True, True)],
)
def test_waves_load_and_store_tiles(k_dim: int, is_b: bool, transposed: bool) -> None:
    """What a wave loads by the layout of a factor, it stores by that of results."""
    _, load = rocm.get_mfma_load_intrin(k_dim, "float32", "global", is_b, transposed)
    desc, _ = rocm.get_mfma_load_intrin(k_dim, "float32", "global", is_b, transposed)
    registers = {}
    for name, func in (("impl", load), ("desc", desc)):
        reg, memory = [func.buffer_map[param] for param in func.params]
        shape = [int(extent) for extent in memory.shape]
        numbers = np.arange(shape[0] * shape[1], dtype="float32").reshape(shape)
        local = np.zeros([int(extent) for extent in reg.shape], "float32")
        run_block(func, {"threadIdx.x": 64 if name == "impl" else 1}, local, numbers)
        registers[name] = local
    np.testing.assert_array_equal(registers["impl"], registers["desc"])


def test_products_of_waves_name_the_instructions() -> None:
    names = {
        rocm.ROCM_MFMA_f32f32f32_INTRIN: "llvm.amdgcn.mfma.f32.16x16x4f32",
        rocm.ROCM_MFMA_f16f16f32_INTRIN: "llvm.amdgcn.mfma.f32.16x16x16f16",
        rocm.ROCM_MFMA_s8s8s32_INTRIN: "llvm.amdgcn.mfma.i32.16x16x16i8",
    }
    for name, instruction in names.items():
        assert instruction in tir.TensorIntrin.get(name).impl.script()
    assert "T.reinterpret" in tir.TensorIntrin.get(rocm.ROCM_MFMA_s8s8s32_INTRIN).impl.script()
    with pytest.raises(ValueError, match="k_dim 8"):
        rocm.get_mfma_intrin(8)


def test_products_are_tensorized_for_waves() -> None:
    a, b = [te.placeholder((16, 16), "float16", name=name) for name in "AB"]
    k = te.reduce_axis((0, 16), name="k")
    product = te.compute(
        (16, 16),
        lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k),
        name="C",
    )
    sch = tir.Schedule(te.create_prim_func([a, b, product]))
    block = sch.get_block("C")
    layouts = {
        ("read", 0): rocm.shared_16x16_to_local_64x4_layout_A,
        ("read", 1): rocm.shared_16x16_to_local_64x4_layout_B,
    }
    for (kind, at), layout in layouts.items():
        sch.cache_read(block, at, "warp")
        sch.transform_layout(block, (kind, at), layout)
    result = sch.cache_write(block, 0, "warp")
    sch.transform_layout(block, ("write", 0), rocm.shared_16x16_to_local_64x4_layout_C)
    init = sch.decompose_reduction(block, sch.get_loops(block)[0])
    sch.tensorize(sch.get_loops(init)[0], rocm.ROCM_MFMA_fill_16x16_f32_INTRIN)
    sch.tensorize(sch.get_loops(block)[0], rocm.ROCM_MFMA_f16f16f32_INTRIN)
    sch.tensorize(sch.get_loops(result)[0], rocm.ROCM_MFMA_STORE_16x16_f32_INTRIN)
    assert sch.mod.script().count("T.call_llvm_pure_intrin") == 1


def loaded(is_b: bool, is_col_major: bool) -> dict[tuple[int, int], tuple[int, int]]:
    """The element of the source that each register of each thread gets from ldmatrix."""
    _, impl = cuda.get_mma_load_intrin(32, 32, 8, "float16", "shared.dyn", is_b, is_col_major)
    calls: list[tir.Call] = []
    post_order_visit(
        impl.body,
        lambda node: (
            calls.append(node)
            if isinstance(node, tir.Call) and node.op.name == "tir.ptx_ldmatrix"
            else None
        ),
    )
    [call] = calls
    offset, stride = call.args[-1], impl.buffer_map[impl.params[0]].strides[0]
    [thread] = [v for v in tir.analysis.undefined_vars(offset) if not v.same_as(stride)]

    def place(row: int) -> int:
        point = {thread: tir.const(row, "int32"), stride: tir.const(100, "int32")}
        return int(Analyzer().simplify(substitute(offset, point)))

    found = {}
    for t, matrix, half in np.ndindex(32, 4, 2):
        row, column = t // 4, t % 4 * 2 + half
        if bool(call.args[0]):
            row, column = column, row
        at = place(matrix * 8 + row) + column
        found[t, matrix * 2 + half] = (at // 100, at % 100)
    return found


@pytest.mark.parametrize("is_b", [False, True])
@pytest.mark.parametrize("is_col_major", [False, True])
def test_ldmatrix_brings_each_thread_its_elements(is_b: bool, is_col_major: bool) -> None:
    for (thread, register), at in loaded(is_b, is_col_major).items():
        i, j = at[::-1] if is_col_major else at
        if is_b:  # k and n of the product
            i, j = j, i
        assert thread == i % 8 * 4 + j // 2
        assert register == i // 8 * 2 + j % 2


def test_indices_of_tiles_count_a_threads_elements() -> None:
    for row, column in np.ndindex(4, 8):
        i, j = row * 16, column * 8
        tile, n = row * 8 + column, 64
        own = cuda.index_map_m16n8k8_matrixC([i, j])
        assert own == [row, column, 0, 0]
        assert int(cuda.get_index_C(i * n + j, n)) * 2 == tile * 4
        assert int(cuda.get_index_A(i * n + j, n)) == (row // 2 * 8 + column) * 8 + row % 2 * 4
        k = row * 8
        assert int(cuda.get_index_B(k * n + j, n)) == (row * 2 + column // 4) * 8 + column % 4 * 2


@pytest.mark.parametrize("name", ["init", "load_a", "load_b", "compute", "store"])
def test_matrices_of_simdgroups(name: str) -> None:
    group = metal.get_simdgroup_intrin_group("shared", "global", "float16", trans_b=True)
    text = tir.TensorIntrin.get(group[name]).impl.script()
    call = {
        "init": "make_filled_simdgroup_matrix",
        "compute": "simdgroup_multiply_accumulate",
        "store": "simdgroup_store",
    }.get(name, "simdgroup_load")
    assert text.count(f"T.{call}(") == 1
    assert ("T.bool(True)" in text) == (name == "load_b")


def test_products_are_tensorized_for_simdgroups() -> None:
    @T.prim_func
    def product(
        A: T.Buffer((16, 16), "float32"),
        B: T.Buffer((16, 16), "float32"),
        C: T.Buffer((16, 16), "float32"),
    ):
        for i, j, k in T.grid(16, 16, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] += A[vi, vk] * B[vk, vj]

    sch = tir.Schedule(product)
    group = metal.get_simdgroup_intrin_group("shared", "global", "float32")
    block = sch.get_block("C")
    loops = [part for loop in sch.get_loops(block) for part in sch.split(loop, [None, 8])]
    sch.reorder(*loops[::2], *loops[1::2])
    copies = []
    for at in range(2):
        sch.cache_read(block, at, "shared")
        copies.append(sch.cache_read(block, at, "metal.simdgroup"))
    copies.append(sch.cache_write(block, 0, "metal.simdgroup"))
    init = sch.decompose_reduction(block, loops[4])
    for copy, name in zip(copies, ("load_a", "load_b", "store"), strict=True):
        i, j = sch.get_loops(copy)[-2:]
        (io, ii), (jo, ji) = sch.split(i, [None, 8]), sch.split(j, [None, 8])
        sch.reorder(io, jo, ii, ji)
        sch.tensorize(ii, group[name])
    sch.tensorize(sch.get_loops(init)[2], group["init"])
    sch.tensorize(loops[1], group["compute"])
    assert sch.mod.script().count("T.simdgroup_") == 4
