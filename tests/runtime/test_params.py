"""Parameter blobs, against bytes written by hand."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tvm.runtime.ndarray as nd
from tvm.runtime import (
    load_param_dict,
    load_param_dict_from_file,
    save_param_dict,
    save_param_dict_to_file,
)

LIST_MAGIC = 0xF7E58D4F05049CB7
ARRAY_MAGIC = 0xDD5E40F096B4A13F
VALUES = np.array([[1.5, -2.0, 3.25]], "float32")


def array_bytes(
    shape: tuple[int, ...] = (1, 3), code: int = 2, bits: int = 32, data: bytes = VALUES.tobytes(),
    device: int = 1, magic: int = ARRAY_MAGIC, size: int | None = None,
) -> bytes:  # fmt: skip
    head = struct.pack("<QQiiiBBH", magic, 0, device, 0, len(shape), code, bits, 1)
    return (
        head + struct.pack(f"<{len(shape)}qq", *shape, len(data) if size is None else size) + data
    )


def list_bytes(names: list[str], *arrays: bytes, magic: int = LIST_MAGIC) -> bytes:
    blob = struct.pack("<QQQ", magic, 0, len(names))
    for name in names:
        blob += struct.pack("<Q", len(name.encode())) + name.encode()
    return blob + struct.pack("<Q", len(arrays)) + b"".join(arrays)


def test_bytes_are_those_of_the_format() -> None:
    params = {"w": nd.array(VALUES), "b\u00e9": np.array([7], "int8")}
    expected = list_bytes(["w", "b\u00e9"], array_bytes(), array_bytes((1,), 0, 8, b"\x07"))
    assert bytes(save_param_dict(params)) == expected


def test_hand_written_bytes_are_read() -> None:
    params = load_param_dict(list_bytes(["w"], array_bytes()))
    np.testing.assert_array_equal(params["w"].numpy(), VALUES)


@pytest.mark.parametrize("name", ["bool", "float16", "int64", "uint8", "float64"])
def test_round_trip(name: str, tmp_path: Path) -> None:
    params = {f"p{i}": np.ones(shape, name) for i, shape in enumerate([(), (0,), (2, 3)])}
    save_param_dict_to_file(params, tmp_path / "model.params")
    loaded = load_param_dict_from_file(tmp_path / "model.params")
    assert list(loaded) == list(params)
    for key, value in params.items():
        np.testing.assert_array_equal(loaded[key].numpy(), value)
        assert loaded[key].dtype == name


def test_round_trip_of_bfloat16() -> None:
    values = np.array([1.5, 2.0], ml_dtypes.bfloat16)
    assert load_param_dict(save_param_dict({"x": values}))["x"].dtype == "bfloat16"


def test_no_parameters() -> None:
    assert load_param_dict(save_param_dict({})) == {}


def test_every_truncation_is_an_error() -> None:
    blob = bytes(save_param_dict({"weight": VALUES, "bias": np.zeros(2)}))
    for size in range(len(blob)):
        with pytest.raises(ValueError, match=r"the params blob is truncated"):
            load_param_dict(blob[:size])


CORRUPT = {
    "magic": (list_bytes(["w"], array_bytes(), magic=1), "does not hold parameters"),
    "array magic": (list_bytes(["w"], array_bytes(magic=2)), "does not hold an array"),
    "counts": (list_bytes(["w", "v"], array_bytes()), "2 names for 1 arrays"),
    "dims": (
        list_bytes(["w"], struct.pack("<QQiii", ARRAY_MAGIC, 0, 1, 0, 99) + b"0" * 99),
        "99 dim",
    ),
    "negative extent": (list_bytes(["w"], array_bytes((-1, 3))), "extent -1"),
    "size": (
        list_bytes(["w"], array_bytes(size=8)),
        r"shape \(1, 3\) and dtype float32 with 8 bytes",
    ),
    "dtype": (list_bytes(["w"], array_bytes(code=77)), "unknown dtype"),
    "device": (list_bytes(["w"], array_bytes(device=2)), "device type 2"),
    "overflow": (list_bytes(["w"], array_bytes((1 << 62, 1 << 62), size=0)), "corrupt"),
    "huge count": (struct.pack("<QQQ", LIST_MAGIC, 0, 1 << 60), "truncated or corrupt"),
}


@pytest.mark.parametrize("case", CORRUPT)
def test_corrupt_blobs(case: str) -> None:
    blob, message = CORRUPT[case]
    with pytest.raises(ValueError, match=message):
        load_param_dict(blob)


def test_random_damage_never_crashes() -> None:
    rng = np.random.default_rng(0)
    blob = np.frombuffer(bytes(save_param_dict({"weight": VALUES, "b": np.ones(3)})), "uint8")
    for _ in range(500):
        damaged = blob.copy()
        damaged[rng.integers(0, len(blob), 3)] = rng.integers(0, 256, 3)
        with suppress(ValueError, UnicodeDecodeError):
            load_param_dict(damaged.tobytes())


def test_wrong_kinds() -> None:
    with pytest.raises(TypeError):
        load_param_dict(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="array needs numbers"):
        save_param_dict({"x": "text"})
