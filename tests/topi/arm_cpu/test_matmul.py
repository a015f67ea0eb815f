"""Products of matrices in the forms of SME."""

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.topi.arm_cpu.matmul import compute_matmul_sme


def test_halves_are_summed_in_float32() -> None:
    a, b = te.placeholder((4, 8), "float16"), te.placeholder((5, 8), "float16")
    out = compute_matmul_sme(a, b, transpose_b=True)
    assert out.dtype == "float32"
    x, y = np.random.rand(4, 8).astype("float16"), np.random.rand(5, 8).astype("float16")
    found = tvm.nd.array(np.zeros((4, 5), "float32"))
    function = tvm.build(te.create_schedule(out.op), [a, b, out], "llvm")
    function(tvm.nd.array(x), tvm.nd.array(y), found)
    expected = x.astype("float32") @ y.astype("float32").T
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "transposed", "text"),
    [("float32", (True, False), "Transposed lhs"), ("float16", (False, False), "Rhs must be")],
)
def test_other_forms_are_rejected(dtype: str, transposed: tuple[bool, bool], text: str) -> None:
    a, b = te.placeholder((8, 8), dtype), te.placeholder((8, 8), dtype)
    with pytest.raises(AssertionError, match=text) as found:
        compute_matmul_sme(a, b, None, None, *transposed)
    assert isinstance(found.value, tvm.error.TVMError)
