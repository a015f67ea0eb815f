"""Guarded loads by an instruction of PTX."""

from __future__ import annotations

import pytest

from tvm.script import tir as T
from tvm.tir import transform

from .checks import apply


@T.prim_func
def every_other(A: T.Buffer((16,), "float32"), B: T.Buffer((32,), "float32")):
    T.func_attr({"global_symbol": "main"})
    tx = T.launch_thread("threadIdx.x", 32)
    data = T.allocate([1], "float32", "local")
    mine = T.Buffer((1,), data=data, scope="local")
    mine[0] = T.if_then_else(tx % 2 == 0, A[tx // 2], T.float32(0))
    B[tx] = mine[0]


@pytest.mark.parametrize("enabled", [True, False])
def test_a_guarded_load_leaves_its_default(enabled: bool) -> None:
    text = str(apply(transform.InjectPTXLDG32(enabled), every_other))
    assert ("ptx_ldg32" in text) == enabled
    assert ("mine[0] = T.float32(0.0)" in text) == enabled
