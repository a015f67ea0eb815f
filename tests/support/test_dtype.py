import pickle

import ml_dtypes
import numpy as np
import pytest

from tvm.support import ScalableLanes, dtype, dtype_from_code


@pytest.mark.parametrize(
    ("text", "code", "bits", "lanes"),
    [
        ("float32", "float", 32, 1),
        ("int8x4", "int", 8, 4),
        ("bool", "bool", 1, 1),
        ("uint1", "bool", 1, 1),
        ("boolx16", "bool", 1, 16),
        ("uint1x16", "bool", 1, 16),
        ("bfloat16x8", "bfloat", 16, 8),
        ("handle", "handle", 64, 1),
        ("void", "handle", 0, 0),
        ("e4m3_float8x2", "e4m3_float", 8, 2),
        ("int", "int", 32, 1),
        ("float", "float", 32, 1),
        ("int32xvscalex4", "int", 32, ScalableLanes(4)),
        ("uint1xvscalex16", "bool", 1, ScalableLanes(16)),
        ("e4m3_float8xvscalex8", "e4m3_float", 8, ScalableLanes(8)),
    ],
)
def test_parts_of_a_name(text: str, code: str, bits: int, lanes: int) -> None:
    found = dtype(text)
    assert (found.code, found.bits, found.lanes) == (code, bits, lanes)


def test_equal_types_are_one_object_that_equals_its_text() -> None:
    assert dtype("float32") is dtype(np.float32) is dtype(np.dtype("float32"))
    assert dtype("int64") == "int64"
    assert dtype("uint1") is dtype("bool") is dtype(np.bool_)
    assert dtype("boolx4") is dtype("uint1x4") and str(dtype("boolx4")) == "uint1x4"
    assert pickle.loads(pickle.dumps(dtype("int8x4"))) is dtype("int8x4")


def test_numpy_extension_types() -> None:
    assert dtype(np.dtype(ml_dtypes.bfloat16)) is dtype("bfloat16")
    assert dtype(np.dtype(ml_dtypes.float8_e4m3fn)) is dtype("e4m3_float8")


def test_lanes_and_bits_can_be_changed() -> None:
    assert dtype("float32").with_lanes(8) is dtype("float32x8")
    assert dtype("float32x8").with_lanes(1) is dtype("float32")
    assert dtype("int32x4").with_bits(64) is dtype("int64x4")
    assert dtype("float32x8").element is dtype("float32")


def test_type_codes_round_trip() -> None:
    for text in ("int8", "uint16", "float16", "bfloat16", "bool", "handle", "e5m2_float8"):
        found = dtype(text)
        assert dtype_from_code(found.type_code, found.bits, found.lanes) is found


@pytest.mark.parametrize("text", ["float33.", "foo", "int32x0", "int0", "bool7", "x4"])
def test_other_names_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"dtype requires"):
        dtype(text)


def test_sizes_in_bytes() -> None:
    assert dtype("int8x3").itemsize == 3
    assert dtype("bool").itemsize == 1
    assert dtype("float64").itemsize == 8


def test_scalable_vectors_are_no_vectors_of_constant_length() -> None:
    found = dtype("float32xvscalex4")
    assert found.is_scalable and found.is_vector and not dtype("float32x4").is_scalable
    assert found is dtype("float32").with_lanes(ScalableLanes(4)) is not dtype("float32x4")
    assert found.element is dtype("float32") and str(found) == "float32xvscalex4"
    assert found.lanes > 32767 and found.lanes != 1
    assert pickle.loads(pickle.dumps(found)) is found


def test_dlpack_code_of_scalable_lanes_is_negative() -> None:
    found = dtype("float32xvscalex4")
    assert int(found.lanes) == (-4) % 2**16
    assert dtype_from_code(found.type_code, 32, int(found.lanes)) is found


def test_scalable_vectors_have_no_size() -> None:
    with pytest.raises(ValueError, match=r"known size is required, got the scalable vector"):
        dtype("float32xvscalex4").itemsize


def test_lanes_are_scaled_by_constants() -> None:
    lanes = ScalableLanes(4)
    assert (lanes * 2).factor == (2 * lanes).factor == 8
    assert lanes // ScalableLanes(2) == 2 and lanes // 2 == ScalableLanes(2)
    with pytest.raises(TypeError, match=r"scaled by vscale twice"):
        lanes * lanes
