"""Passes that lower blocks say which pass has to run before them."""

from __future__ import annotations

import pytest

from tvm.error import LoweringError
from tvm.ir import IRModule
from tvm.ir.transform import Pass, Sequential
from tvm.script import tir as T
from tvm.tir import PrimFunc, transform


@T.prim_func
def row_sums(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def scaled_tiles(A: T.Buffer((8, 8), "float32")):
    for i in range(2):
        with T.block("tile"):
            rows = T.match_buffer(A[i * 4 : i * 4 + 4, 0:8], (4, 8), offset_factor=1)
            for x, y in T.grid(4, 8):
                rows[x, y] = rows[x, y] * T.float32(2)


NEEDS = [
    (
        row_sums, [], transform.ConvertBlocksToOpaque(),
        "ConvertBlocksToOpaque requires blocks without initialisation, got block sum",
        "LowerInitBlock",
    ),
    (
        row_sums, [transform.LowerInitBlock()], transform.LowerOpaqueBlock(),
        "LowerOpaqueBlock requires opaque blocks, got block sum with the axes vi, vk",
        "ConvertBlocksToOpaque",
    ),
    (
        row_sums, [transform.LowerInitBlock()], transform.CompactBufferAllocation(),
        "CompactBufferAllocation requires opaque blocks, got block sum with the axes vi, vk",
        "ConvertBlocksToOpaque",
    ),
    (
        scaled_tiles, [], transform.LowerOpaqueBlock(),
        "LowerOpaqueBlock requires blocks without matched buffers, got block tile that matches rows",
        "LowerMatchBuffer",
    ),
    (
        scaled_tiles, [], transform.FlattenBuffer(),
        "FlattenBuffer requires blocks without matched buffers, got block tile that matches rows",
        "LowerMatchBuffer",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("func", "before", "needing", "said", "hint"), NEEDS)
def test_what_is_missing_is_named(
    func: PrimFunc, before: list[Pass], needing: Pass, said: str, hint: str
) -> None:
    ready = Sequential(before)(IRModule({"main": func}))
    with pytest.raises(LoweringError) as raised:
        needing(ready)
    assert str(raised.value).startswith(said)
    assert f"hint: run tir.transform.{hint}() first" in str(raised.value)
