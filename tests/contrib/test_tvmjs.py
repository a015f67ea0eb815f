"""Parameters in shards."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm.contrib import tvmjs
from tvm.error import TVMError


def arrays() -> dict[str, tvm.nd.NDArray]:
    rng = np.random.default_rng(3)
    return {
        "weight": tvm.nd.array(rng.standard_normal((3, 5)).astype("float32")),
        "index": tvm.nd.array(np.arange(6, dtype="int64").reshape(2, 3)),
        "scale": tvm.nd.array(np.array(0.5, "float16")),
        "empty": tvm.nd.array(np.zeros((0, 4), "float32")),
    }


def test_raw_arrays_come_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = arrays()
    tvmjs.dump_ndarray_cache(given, str(tmp_path / "c"), "raw", meta_data={"model": "m"})
    assert "params_shard_0.bin: 4 arrays" in capsys.readouterr().out
    found, meta = tvmjs.load_ndarray_cache(str(tmp_path / "c"), tvm.cpu())
    assert meta == {"model": "m"} and list(found) == list(given)
    for name, array in given.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        np.testing.assert_array_equal(found[name].numpy(), array.numpy())


def test_float32_is_kept_as_bfloat16(tmp_path: Path) -> None:
    value = np.array([1.0, 1 / 3, -1e-40, 3.3e38, np.inf, -np.inf, np.nan, 1.00390625], "float32")
    tvmjs.dump_ndarray_cache([("x", value)], str(tmp_path), show_progress=False)
    (shard,) = json.loads((tmp_path / "ndarray-cache.json").read_text())["records"]
    assert shard["nbytes"] == 16 and shard["records"][0]["format"] == "f32-to-bf16"
    found, _ = tvmjs.load_ndarray_cache(str(tmp_path / "ndarray-cache.json"), tvm.cpu())
    expected = value.astype(ml_dtypes.bfloat16).astype("float32")
    np.testing.assert_array_equal(found["x"].numpy(), expected)
    assert found["x"].dtype == "float32"


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_narrow_floats_stay(dtype: str, tmp_path: Path) -> None:
    value = np.linspace(-4, 4, 9).astype(getattr(ml_dtypes, dtype))
    given = tvm.nd.array(value)
    tvmjs.dump_ndarray_cache({"x": given}, str(tmp_path), "raw", show_progress=False)
    found, _ = tvmjs.load_ndarray_cache(str(tmp_path), tvm.cpu())
    assert found["x"].dtype == given.dtype
    np.testing.assert_array_equal(found["x"].numpy().view("uint8"), value.view("uint8"))


def test_arrays_are_grouped_up_to_the_size_of_a_shard(tmp_path: Path) -> None:
    half, large = np.zeros(1 << 17, "float32"), np.ones(3 << 18, "float32")
    pairs = [("a", half), ("large", large), ("b", half), ("c", half)]
    tvmjs.dump_ndarray_cache(pairs, str(tmp_path), "raw", shard_cap_mb=1, show_progress=False)
    shards = json.loads((tmp_path / "ndarray-cache.json").read_text())["records"]
    assert [[r["name"] for r in shard["records"]] for shard in shards] == [
        ["large"],
        ["a", "b"],
        ["c"],
    ]
    assert [r["byteOffset"] for r in shards[1]["records"]] == [0, 1 << 19]


def test_other_names_stay_when_a_cache_is_updated(tmp_path: Path) -> None:
    one, two = np.ones(4, "float32"), np.full(4, 2, "float32")
    folder = str(tmp_path)
    tvmjs.dump_ndarray_cache({"a": one, "b": one}, folder, "raw", {"n": 1}, show_progress=False)
    tvmjs.dump_ndarray_cache(
        {"b": two}, folder, "raw", lambda: {"k": 2}, show_progress=False, update_if_exists=True
    )
    found, meta = tvmjs.load_ndarray_cache(folder, tvm.cpu())
    assert (found["a"].numpy() == one).all() and (found["b"].numpy() == two).all()
    assert meta == {"n": 1, "k": 2}


def test_damaged_shards_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(TVMError, match="f32-to-bf16 or raw, got 'f16'"):
        tvmjs.dump_ndarray_cache({}, str(tmp_path), "f16")
    tvmjs.dump_ndarray_cache({"a": np.ones(4)}, str(tmp_path), show_progress=False)
    (tmp_path / "params_shard_0.bin").write_bytes(b"1234")
    with pytest.raises(TVMError, match=r"requires 32 bytes .* got 4"):
        tvmjs.load_ndarray_cache(str(tmp_path), tvm.cpu())


def test_a_damaged_shard_is_rejected(tmp_path: Path) -> None:
    tvmjs.dump_ndarray_cache(arrays(), str(tmp_path), "raw", show_progress=False)
    shard = tmp_path / "params_shard_0.bin"
    content = bytearray(shard.read_bytes())
    content[0] ^= 1
    shard.write_bytes(content)
    with pytest.raises(TVMError, match="params_shard_0.bin damaged"):
        tvmjs.load_ndarray_cache(str(tmp_path), tvm.cpu())
