"""Operators that BLAS libraries and oneDNN compute inside te programs."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_onednn
from tvm import te
from tvm.contrib import cblas, dnnl, mkl
from tvm.topi.testing import conv2d_nchw_python, conv2d_nhwc_python


def random(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def compute(outputs: te.Tensor, inputs: list[te.Tensor], values: list[np.ndarray]) -> np.ndarray:
    func = tvm.build(te.create_schedule(outputs.op), [*inputs, outputs], "llvm")
    result = tvm.nd.empty([int(n) for n in outputs.shape], outputs.dtype)
    func(*[tvm.nd.array(value) for value in values], result)
    return result.numpy()


@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize("transb", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blas_multiplies_matrices(transa: bool, transb: bool, dtype: str) -> None:
    a = random(*(7, 5) if transa else (5, 7), dtype=dtype)
    b = random(*(3, 7) if transb else (7, 3), dtype=dtype)
    inputs = [te.placeholder(v.shape, dtype, name=n) for n, v in zip("AB", (a, b), strict=True)]
    bias = te.placeholder((3,), dtype, name="bias")
    product = cblas.matmul(*inputs, transa, transb, dtype=dtype)
    total = te.compute(product.shape, lambda i, j: product[i, j] + bias[j], name="D")
    values = [a, b, random(3, dtype=dtype)]
    expected = (a.T if transa else a) @ (b.T if transb else b) + values[2]
    np.testing.assert_allclose(compute(total, [*inputs, bias], values), expected, rtol=1e-5)


@pytest.mark.parametrize("iterative", [False, True])
@pytest.mark.parametrize("batch", [1, 4])
def test_blas_multiplies_batches(iterative: bool, batch: int) -> None:
    a, b = random(4, 5, 7), random(batch, 3, 7)
    inputs = [te.placeholder(v.shape, name=n) for n, v in zip("AB", (a, b), strict=True)]
    product = cblas.batch_matmul(*inputs, False, True, iterative)
    expected = a @ b.transpose(0, 2, 1)
    np.testing.assert_allclose(compute(product, inputs, [a, b]), expected, rtol=1e-4, atol=1e-5)


def test_shapes_that_do_not_fit_are_rejected() -> None:
    multiply = tvm.get_global_func("tvm.contrib.cblas.matmul")
    a, b, c = (tvm.nd.array(random(*shape)) for shape in ((5, 7), (6, 3), (5, 3)))
    with pytest.raises(ValueError, match=r"the product of \(5, 7\) and \(6, 3\) has no shape"):
        multiply(a, b, c, False, False)
    with pytest.raises(ValueError, match="takes contiguous tensors of one type, .* got int32"):
        multiply(tvm.nd.array(np.zeros((5, 7), "int32")), b, c, False, False)


def test_mkl_is_found_or_missed_in_one_sentence() -> None:
    a, b = te.placeholder((2, 2), name="A"), te.placeholder((2, 2), name="B")
    x, y = random(2, 2), random(2, 2)
    try:
        found = compute(mkl.matmul(a, b), [a, b], [x, y])
    except tvm.TVMError as error:
        assert "tvm.contrib.mkl requires a BLAS library, none was found of libmkl_rt" in str(error)
    else:
        np.testing.assert_allclose(found, x @ y, rtol=1e-5)
    with pytest.raises(NotImplementedError, match="no products of 8-bit integers"):
        mkl.matmul_u8s8s32(a, b)


@needs_onednn()
@pytest.mark.parametrize("transa", [False, True])
@pytest.mark.parametrize("transb", [False, True])
def test_onednn_multiplies_matrices(transa: bool, transb: bool) -> None:
    a = random(*(7, 5) if transa else (5, 7))
    b = random(*(3, 7) if transb else (7, 3))
    inputs = [te.placeholder(v.shape, name=n) for n, v in zip("AB", (a, b), strict=True)]
    expected = (a.T if transa else a) @ (b.T if transb else b)
    product = dnnl.matmul(*inputs, transa, transb)
    np.testing.assert_allclose(compute(product, inputs, [a, b]), expected, rtol=1e-4, atol=1e-5)


@needs_onednn()
@pytest.mark.parametrize(
    "stride, padding, groups", [(1, 1, 1), (2, (0, 1, 1, 2), 2), (2, "SAME", 1)]
)
def test_onednn_convolves(stride: int, padding, groups: int) -> None:
    x, w = random(2, 4, 9, 11), random(6, 4 // groups, 3, 3)
    inputs = [te.placeholder(v.shape, name=n) for n, v in zip("AB", (x, w), strict=True)]
    result = dnnl.dnnl_conv2d(*inputs, stride, padding, 1, groups)
    expected = conv2d_nchw_python(x, w, stride, padding, groups=groups)
    np.testing.assert_allclose(compute(result, inputs, [x, w]), expected, rtol=1e-4, atol=1e-4)


@needs_onednn()
def test_onednn_convolves_with_channels_last() -> None:
    x, w = random(2, 9, 11, 4), random(3, 3, 4, 6)
    inputs = [te.placeholder(v.shape, name=n) for n, v in zip("AB", (x, w), strict=True)]
    result = dnnl.dnnl_conv2d(*inputs, (1, 2), (1, 1), 1, 1, channel_last=True)
    expected = conv2d_nhwc_python(x, w, (1, 2), (1, 1))
    np.testing.assert_allclose(compute(result, inputs, [x, w]), expected, rtol=1e-4, atol=1e-4)


@needs_onednn()
def test_onednn_dilates() -> None:
    x, w = random(1, 4, 9, 9), random(6, 4, 3, 3)
    inputs = [te.placeholder(v.shape, name=n) for n, v in zip("AB", (x, w), strict=True)]
    result = dnnl.dnnl_conv2d(*inputs, 1, 0, (2, 2), 1)
    wide = np.zeros((6, 4, 5, 5), "float32")
    wide[:, :, ::2, ::2] = w
    expected = conv2d_nchw_python(x, wide, 1, 0)
    np.testing.assert_allclose(compute(result, inputs, [x, w]), expected, rtol=1e-4, atol=1e-4)
