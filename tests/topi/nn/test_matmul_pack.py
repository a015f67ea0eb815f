"""Products of matrices that are packed while the program runs: the numbers and the inner loops."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import tvm
from tests.topi.common import check
from tvm import te, topi
from tvm.target.cpu import cpu_info
from tvm.topi.x86.dense import PackedMatmulConfig, choose_matmul_pack

TARGETS = ["llvm -mcpu=core-avx2", "llvm"]


def operands(
    rows: int, columns: int, inner: int, dtype: str = "float32"
) -> tuple[te.Tensor, te.Tensor]:
    return te.placeholder((rows, inner), dtype, "a"), te.placeholder((inner, columns), dtype, "b")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows, columns, inner", [(200, 200, 200), (97, 89, 83), (37, 203, 41)])
def test_packed_product_agrees_with_numpy(rows: int, columns: int, inner: int, target: str) -> None:
    a, b = operands(rows, columns, inner)
    with tvm.target.Target(target):
        out = topi.x86.matmul_pack(a, b)
    assert out.op.tag == "matmul_pack"
    check([a, b, out], topi.x86.schedule_matmul_pack, lambda x, y: x @ y, target)


@pytest.mark.parametrize("transpose_a, transpose_b", [(True, False), (False, True), (True, True)])
def test_operands_may_come_transposed(transpose_a: bool, transpose_b: bool) -> None:
    a = te.placeholder((75, 66) if transpose_a else (66, 75), name="a")
    b = te.placeholder((70, 75) if transpose_b else (75, 70), name="b")
    out = topi.x86.matmul_pack(a, b, None, None, transpose_a, transpose_b)
    check(
        [a, b, out],
        topi.x86.schedule_matmul_pack,
        lambda x, y: (x.T if transpose_a else x) @ (y.T if transpose_b else y),
    )


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_packed_product_of_other_numbers(dtype: str) -> None:
    a, b = operands(70, 81, 65, dtype)
    out = topi.x86.matmul_pack(a, b)
    check([a, b, out], topi.x86.schedule_matmul_pack, lambda x, y: x @ y)


@pytest.mark.parametrize("depth", [16, 48, 128])
def test_bias_and_activation_follow_the_complete_sum(depth: int) -> None:
    a, b = operands(45, 70, 121)
    bias = te.placeholder((70,), name="bias")
    config = PackedMatmulConfig(6, 32, 16, depth, 16, 18)
    out = topi.nn.relu(topi.x86.matmul_pack(a, b, bias, config=config))
    check(
        [a, b, bias, out],
        topi.x86.schedule_matmul_pack,
        lambda x, y, z: np.maximum(x @ y + z, 0),
    )


@pytest.mark.parametrize("depth", [16, 128])
def test_an_output_of_another_shape_reads_the_product(depth: int) -> None:
    a, b = operands(45, 70, 121)
    config = PackedMatmulConfig(6, 32, 16, depth, 16, 18)
    out = topi.transpose(topi.x86.matmul_pack(a, b, config=config))
    check([a, b, out], topi.x86.schedule_matmul_pack, lambda x, y: (x @ y).T)


def test_small_products_are_not_packed() -> None:
    info = cpu_info(tvm.target.Target("llvm -mcpu=skylake-avx512"))
    assert choose_matmul_pack(8, 4096, 4096, "float32", info) is None
    assert choose_matmul_pack(33, 64, 33, "float32", info) is None
    assert choose_matmul_pack(te.var("n"), 512, 512, "float32", info) is None
    a, b = operands(5, 7, 9)
    out = topi.x86.matmul_pack(a, b)
    check([a, b, out], topi.x86.schedule_matmul_pack, lambda x, y: x @ y)


def test_columns_that_vectors_do_not_divide_are_packed_for_few_rows_too() -> None:
    # where masks do not cut vectors
    target = tvm.target.Target("llvm -mcpu=core-avx2")
    assert choose_matmul_pack(3, 51, 40, "float32", cpu_info(target)) is not None
    a, b = operands(3, 51, 40)
    with target:
        out = topi.x86.matmul_pack(a, b)
    check([a, b, out], topi.x86.schedule_matmul_pack, lambda x, y: x @ y, str(target))


def test_masks_make_vectors_of_few_rows_as_they_are() -> None:
    info = cpu_info(tvm.target.Target("llvm -mcpu=x86-64-v4"))
    for rows, columns, inner in ((8, 1000, 1024), (17, 51, 768), (64, 999, 512)):
        assert choose_matmul_pack(rows, columns, inner, "float32", info) is None
        a, b = operands(rows, columns, inner)
        check([a, b, topi.x86.matmul_pack(a, b)], topi.x86.schedule_matmul_pack, np.matmul)


def test_rows_that_tiles_do_not_divide_and_rows_that_conflict_are_packed() -> None:
    info = replace(cpu_info(tvm.target.Target("llvm -mcpu=x86-64-v4")), l2=1 << 20)
    for rows, columns, inner in ((197, 197, 64), (64, 1024, 1024)):
        assert choose_matmul_pack(rows, columns, inner, "float32", info) is not None


@pytest.mark.parametrize("target", TARGETS)
def test_padding_is_small_and_cores_get_equal_shares(target: str) -> None:
    # with a larger L2 the smallest of these is not worth packing
    info = replace(cpu_info(tvm.target.Target(f"{target} -num-cores=2")), l2=1 << 20)
    for size in (200, 512, 777, 1000, 1024, 2048, 4000):
        config = choose_matmul_pack(size, size, size, "float32", info)
        assert config is not None
        tiles = -(-size // config.rows), -(-size // config.columns)
        assert tiles[0] * config.rows * tiles[1] * config.columns <= 1.15 * size * size
        blocks = -(-size // config.block_rows)
        shares = -(-blocks // 2) * 2 * config.block_rows
        assert shares <= 1.2 * size
        assert config.block_rows * config.depth * 4 <= info.l2 // 2 + config.rows * 4096


@pytest.mark.parametrize("target", ["llvm -mcpu=core-avx2", "llvm -mcpu=skylake-avx512"])
@pytest.mark.parametrize("size", [300, 777, 1000])
def test_inner_loops_keep_their_sums_in_registers(size: int, target: str) -> None:
    a, b = operands(size, size, size)
    with tvm.target.Target(target):
        out = topi.x86.matmul_pack(a, b)
        assembly = tvm.build(topi.x86.schedule_matmul_pack(out), [a, b, out]).get_source("asm")
    config = {name: int(value) for name, value in out.op.attrs.items()}
    vectors = config["rows"] * config["columns"] // config["lanes"]
    loops = [body for body in innermost_loops(assembly) if "vfmadd" in body]
    assert loops
    for body in loops:
        assert body.count("vfmadd") % vectors == 0
        assert not re.findall(r"\(%rsp|\(%rbp\)", body), body


def innermost_loops(assembly: str) -> list[str]:
    """The text between a label and a jump back to it that no other label interrupts."""
    blocks = re.split(r"^(\.\w+):", assembly, flags=re.MULTILINE)
    found = []
    for label, body in zip(blocks[1::2], blocks[2::2], strict=True):
        if match := re.search(rf"\tj\w+\s+{re.escape(label)}\b", body):
            found.append(body[: match.end()])
    return found
