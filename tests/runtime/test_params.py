"""Parameter blobs, against bytes written by hand."""

from __future__ import annotations

import mmap
import struct
from contextlib import suppress
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tvm.runtime.ndarray as nd
from tvm._ffi.registry import get_global_func
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
    blob = save_param_dict(params)
    starts = [0, *[blob.index(struct.pack("<Q", ARRAY_MAGIC), i) for i in (0, len(blob) - 57)]]
    for start in starts:  # after the magic numbers: checksums, where the classic release writes 0
        assert any(blob[start + 8 : start + 16])
        blob[start + 8 : start + 16] = bytes(8)
    assert bytes(blob) == expected


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


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_read(kind: type) -> None:
    blob = kind(save_param_dict({"w": VALUES}))
    np.testing.assert_array_equal(load_param_dict(blob)["w"].numpy(), VALUES)


def aligned_file(path: Path) -> bytes:
    """A file whose second array starts at a multiple of 64 bytes, and what it holds."""
    for size in range(64):
        params = {"pad": np.zeros(size, "uint8"), "w": np.arange(1024, dtype="float32")}
        blob = bytes(save_param_dict(params))
        if (len(blob) - 4096) % 64 == 0:
            save_param_dict_to_file(params, path)
            return blob
    raise AssertionError("no size of the first array aligns the second")


def test_files_can_stay_mapped(tmp_path: Path) -> None:
    path = tmp_path / "model.params"
    blob = aligned_file(path)
    mapped = load_param_dict_from_file(path, memory_map=True)["w"]
    own = load_param_dict_from_file(path)["w"]
    # the pages of the file are shared until they are written
    with path.open("r+b") as file:
        file.seek(len(blob) - 4)
        file.write(struct.pack("<f", -1.0))
    assert mapped.numpy()[-1] == -1 and own.numpy()[-1] == 1023
    mapped[:] = 5
    assert path.read_bytes()[-4:] == struct.pack("<f", -1.0)
    assert (mapped.numpy() == 5).all()


def test_a_file_is_replaced_while_its_arrays_live(tmp_path: Path) -> None:
    path = tmp_path / "model.params"
    aligned_file(path)
    params = load_param_dict_from_file(path, memory_map=True)
    save_param_dict_to_file({"w": params["w"]}, path)
    save_param_dict_to_file({}, path)
    assert params["w"].numpy()[-1] == 1023
    assert load_param_dict_from_file(path) == {}
    assert [file.name for file in tmp_path.iterdir()] == ["model.params"]


def test_files_that_cannot_be_written_or_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        save_param_dict_to_file({"w": VALUES}, tmp_path / "none" / "model.params")
    with pytest.raises(OSError, match="cannot write the params: No space left on device"):
        save_param_dict_to_file({"w": VALUES}, "/dev/full")
    with pytest.raises(TypeError, match="parameters have names, got 1 as one"):
        save_param_dict_to_file({1: VALUES}, tmp_path / "x")  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        load_param_dict_from_file(tmp_path / "none")
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="truncated"):
        load_param_dict_from_file(tmp_path / "empty")


def test_arrays_of_more_than_2_gib(tmp_path: Path) -> None:
    # zeros that nobody has written take no memory, and neither do the holes of a file
    size = (2 << 30) + 4096
    head = list_bytes(["w"], array_bytes((size,), 1, 8, b"", size=size))
    path = tmp_path / "model.params"
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)
    assert get_global_func("runtime.ParamsSize")("w", nd.empty((size,), "uint8")) == (
        len(head) + size
    )
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as blob,
        pytest.raises(ValueError, match=f"truncated: {size} bytes wanted"),
    ):
        load_param_dict(memoryview(blob)[:-1])


def test_strided_arrays_are_saved_compact() -> None:
    array = nd.from_dlpack(np.arange(6, dtype="float32").reshape(2, 3).T)
    loaded = load_param_dict(save_param_dict({"w": array}))
    np.testing.assert_array_equal(loaded["w"].numpy(), array.numpy())


def test_wrong_kinds() -> None:
    for blob in (5, "text", None, [1]):
        with pytest.raises(TypeError, match="params must be bytes, got"):
            load_param_dict(blob)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="array needs numbers"):
        save_param_dict({"x": "text"})
