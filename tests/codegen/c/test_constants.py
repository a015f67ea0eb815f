"""Arrays of constants in C."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import tir

from .compiled import build_c

RNG = np.random.default_rng(0)


def constant_function(data: np.ndarray) -> tir.PrimFunc:
    """Copies a constant to the output."""
    array = tvm.nd.array(data)
    dtype = str(data.dtype)
    out = tir.decl_buffer(data.shape, dtype, "out")
    source = tir.decl_buffer(data.shape, dtype, "source")
    i = tir.Var("i", "int32")
    copy = tir.BufferStore(out, tir.BufferLoad(source, [i]), [i])
    loop = tir.For(i, 0, data.size, tir.ForKind.SERIAL, copy)
    body = tir.AllocateConst(source.data, dtype, data.shape, array, tir.DeclBuffer(source, loop))
    return tir.PrimFunc([out], body, attrs={"global_symbol": "main"})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("special", [False, True])
def test_long_arrays_keep_every_bit(dtype: str, special: bool) -> None:
    info = np.finfo(dtype)
    values = np.ldexp(RNG.uniform(-2, 2, 1000), RNG.integers(-60, 60, 1000)).astype(dtype)
    values[:4] = [0.0, -0.0, info.max, info.smallest_subnormal]
    if special:
        values[4:6] = [np.inf, np.nan]
    out = tvm.nd.empty(values.shape, dtype)
    build_c(tvm.IRModule({"main": constant_function(values)}))["main"](out)
    bits = f"uint{info.bits}"
    found, wanted = out.numpy(), values
    is_number = ~np.isnan(wanted)
    np.testing.assert_array_equal(found.view(bits)[is_number], wanted.view(bits)[is_number])
    assert np.isnan(found[~is_number]).all()
