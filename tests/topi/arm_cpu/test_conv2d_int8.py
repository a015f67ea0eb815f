"""Which Arm processors multiply int8 in their vectors, and their convolutions."""

import numpy as np
import pytest

import tvm
from tvm import te, topi
from tvm.target import Target
from tvm.topi.arm_cpu.conv2d_int8 import is_int8_hw_support


@pytest.mark.parametrize(
    ("target", "dtypes", "is_supported"),
    [
        ("llvm -mtriple=aarch64-linux-gnu", ("int8", "int8"), True),
        ("llvm -mtriple=aarch64-linux-gnu", ("int8", "int16"), False),
        ("llvm -mtriple=aarch64-linux-gnu", ("float32", "float32"), False),
        ("llvm -mtriple=arm-linux-gnueabi -mattr=+neon", ("uint8", "uint8"), True),
        ("llvm -mtriple=arm-linux-gnueabi", ("int8", "int8"), False),
        ("c -mcpu=cortex-m7", ("int8", "int8"), False),
    ],
)
def test_int8_needs_vectors(target: str, dtypes: tuple[str, str], is_supported: bool) -> None:
    with Target(target):
        assert is_int8_hw_support(*dtypes) is is_supported


@pytest.mark.parametrize(
    "form", ["hybrid", "hybrid_SVE", "quantized_interleaved", "quantized_native"]
)
def test_convolutions_of_arm_compute_their_sums(form: str) -> None:
    dtype = "float32" if "hybrid" in form else "int8"
    out_dtype = "float32" if "hybrid" in form else "int32"
    rng = np.random.default_rng(4)
    x, w = [rng.integers(-128, 127, shape).astype(dtype) for shape in ((1, 6, 6, 8), (3, 3, 8, 4))]
    data, kernel = [te.placeholder(v.shape, dtype) for v in (x, w)]
    with Target("llvm"):
        compute = getattr(topi.arm_cpu, f"compute_conv2d_NHWC_{form}")
        out = compute(data, kernel, (1, 1), "SAME", (1, 1), out_dtype)
        s = getattr(topi.arm_cpu, f"schedule_conv2d_NHWC_{form}")([out])
        function = tvm.build(s, [data, kernel, out])
    found = tvm.nd.array(np.zeros((1, 6, 6, 4), out_dtype))
    function(tvm.nd.array(x), tvm.nd.array(w), found)
    wide = [v.astype("int64") for v in (x, w)]
    expected = topi.testing.conv2d_nhwc_python(*wide, 1, "SAME")
    np.testing.assert_array_equal(found.numpy(), expected)


def test_schedules_of_loops_name_what_they_require() -> None:
    with pytest.raises(tvm.error.OpNotImplemented, match=r"requires tir\.Schedule"):
        topi.arm_cpu.schedule_conv2d_NHWC_hybrid_TIR(None)
