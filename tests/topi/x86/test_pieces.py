"""Pieces of the classic x86 library: instructions, products by a library, sparse windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import autotvm, te, topi
from tvm.contrib import cblas
from tvm.target.cpu import cpu_info
from tvm.topi import testing as ref
from tvm.topi.sparse.utils import random_bsr_matrix
from tvm.topi.x86 import tensor_intrin
from tvm.topi.x86.batch_matmul import batch_matmul_blas_common
from tvm.topi.x86.dense import matmul_blas_common

Array = np.ndarray
RNG = np.random.default_rng(6)


def _run(function: Any, out: te.Tensor, arrays: list[Array]) -> Array:
    found = tvm.nd.array(np.zeros([int(d) for d in out.shape], out.dtype))
    function(*[tvm.nd.array(a) for a in arrays], found)
    return found.numpy()


@pytest.mark.parametrize(
    ("name", "target", "lanes", "group", "sums", "instruction"),
    [
        ("dot_16x1x16_uint8_int8_int32", "cascadelake", 16, 4, "int32", "vpdpbusd"),
        ("dot_16x1x16_uint8_int8_int32", "skylake-avx512", 16, 4, "int32", "vpmaddubsw"),
        ("dot_16x1x16_uint8_int8_int32_cascadelake", "cascadelake", 16, 4, "int32", "vpdpbusd"),
        ("dot_16x1x16_uint8_int8_int32_skylake", "skylake-avx512", 16, 4, "int32", "vpmaddwd"),
        ("dot_16x1x16_uint8_int8_int16", "skylake-avx512", 128, 2, "int16", "vpmaddubsw"),
    ],
)
def test_loops_become_instructions(
    name: str, target: str, lanes: int, group: int, sums: str, instruction: str
) -> None:
    rows, columns, inner = 3, 2 * lanes, 8 * group
    x = te.placeholder((rows, inner), "uint8")
    w = te.placeholder((2, 8, lanes, group), "int8")
    k = te.reduce_axis((0, inner))

    def element(i: Any, j: Any) -> Any:
        factor = w[j // lanes, k // group, j % lanes, k % group]
        return te.sum(x[i, k].astype(sums) * factor.astype(sums), axis=k)

    out = te.compute((rows, columns), element)
    with tvm.target.Target(f"llvm -mcpu={target}"):
        s = te.create_schedule(out.op)
        jo, ji = s[out].split(out.op.axis[1], lanes)
        ko, ki = s[out].split(out.op.reduce_axis[0], group)
        s[out].reorder(out.op.axis[0], jo, ko, ji, ki)
        s[out].tensorize(ji, getattr(tensor_intrin, name)())
        function = tvm.build(s, [x, w, out], f"llvm -mcpu={target}")
    assert instruction in function.get_source("asm")
    machine = cpu_info(tvm.target.Target("llvm")).features
    if not {"avx512bw", "avx512vnni"} <= set(machine):
        return
    data = RNG.integers(0, 60, (rows, inner)).astype("uint8")
    weight = RNG.integers(-60, 60, (2, 8, lanes, group)).astype("int8")
    matrix = weight.transpose(1, 3, 0, 2).reshape(inner, columns)
    wanted = data.astype("int64") @ matrix.astype("int64")
    np.testing.assert_array_equal(_run(function, out, [data, weight]), wanted.astype(sums))


def test_products_by_the_module_of_a_library() -> None:
    a, b, bias = te.placeholder((4, 5)), te.placeholder((6, 5)), te.placeholder((6,))
    cfg = autotvm.get_config()
    before = cfg.flop
    out = matmul_blas_common(cfg, a, b, bias, "float32", False, True, cblas)
    assert cfg.flop - before == 2 * 4 * 6 * 5
    assert [int(d) for d in out.shape] == [4, 6]
    with pytest.raises(ValueError, match="has no products of float32 and float32 to float64"):
        matmul_blas_common(None, a, b, None, "float64", False, True, cblas)
    batch = [te.placeholder((2, *t.shape)) for t in (a, b)]
    out = batch_matmul_blas_common(None, *batch, (2, 4, 6), False, True, cblas)
    assert [int(d) for d in out.shape] == [2, 4, 6]
    with pytest.raises(ValueError, match=r"gives the shape \(2, 4, 6\)"):
        batch_matmul_blas_common(None, *batch, (2, 6, 4), False, True, cblas)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_windows_with_a_sparse_weight(layout: str) -> None:
    sparse = random_bsr_matrix(8, 36, 4, 1, 0.4, "float32")
    blocks, columns, begins = sparse.data, sparse.indices, sparse.indptr
    matrix = sparse.toarray()
    image = RNG.uniform(size=(1, 4, 6, 5)).astype("float32")
    channels_last = layout == "NHWC"
    kernel = matrix.reshape(8, 3, 3, 4).transpose(0, 3, 1, 2) if channels_last else matrix.reshape(8, 4, 3, 3)  # fmt: skip
    wanted = ref.conv2d_nchw_python(image, kernel, 1, 1)
    data = np.ascontiguousarray(image.transpose(0, 2, 3, 1)) if channels_last else image
    arrays = [data, blocks, columns, begins]
    tensors = [te.placeholder(a.shape, str(a.dtype)) for a in arrays]
    name = f"spconv2d_3x3_{layout.lower()}"
    out = getattr(topi.x86, name)(*tensors)
    function = tvm.build(getattr(topi.x86, f"schedule_{name}")([out]), [*tensors, out], "llvm")
    found = _run(function, out, arrays)
    found = found.transpose(0, 3, 1, 2) if channels_last else found
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    other = "NCHW" if channels_last else "NHWC"
    with pytest.raises(ValueError, match=f"{name} requires the layout {layout}, got '{other}'"):
        getattr(topi.x86, name)(*tensors, other)
