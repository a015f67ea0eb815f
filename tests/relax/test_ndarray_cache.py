"""Parameters of a folder, kept by name for programs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm.contrib import tvmjs

call = tvm.get_global_func


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    call("vm.builtin.ndarray_cache.clear")()
    arrays = {"w_0": np.arange(6, dtype="int32").reshape(2, 3), "w_1": np.float32([0.5, -3, 1e9])}
    tvmjs.dump_ndarray_cache(arrays, str(tmp_path), encode_format="f32-to-bf16")
    return tmp_path


def test_parameters_by_number_and_by_name(folder: Path) -> None:
    call("vm.builtin.ndarray_cache.load")(str(folder), 1, 0)
    first, second = call("vm.builtin.param_array_from_cache")("w", -1)
    np.testing.assert_array_equal(first.numpy(), np.arange(6).reshape(2, 3))
    np.testing.assert_allclose(second.numpy(), [0.5, -3, 1e9], rtol=1e-2)
    (again,) = call("vm.builtin.param_array_from_cache_by_name")(["w_1"])
    np.testing.assert_array_equal(again.numpy(), second.numpy())
    both = call("vm.builtin.param_array_from_cache_by_name_unpacked")("w_1", "w_0")
    np.testing.assert_array_equal(both[1].numpy(), first.numpy())
    with pytest.raises(ValueError, match="has no 'w_2'"):
        call("vm.builtin.param_array_from_cache")("w", 3)


def test_arrays_are_set_and_removed() -> None:
    get, update = [call(f"vm.builtin.ndarray_cache.{name}") for name in ("get", "update")]
    call("vm.builtin.ndarray_cache.clear")()
    update("x", tvm.nd.array(np.float32([1])), False)
    with pytest.raises(ValueError, match="has 'x' already"):
        update("x", tvm.nd.array(np.float32([2])), False)
    update("x", tvm.nd.array(np.float32([3])), True)
    assert get("x").numpy() == 3
    call("vm.builtin.ndarray_cache.remove")("x")
    assert get("x") is None


def test_damaged_folders_are_refused(folder: Path) -> None:
    load, path = call("vm.builtin.ndarray_cache.load"), folder / "ndarray-cache.json"
    found = json.loads(path.read_text())
    for field, value in {"byteOffset": 1000, "nbytes": 5, "shape": [2, 4]}.items():
        damaged = json.loads(json.dumps(found))
        damaged["records"][0]["records"][0][field] = value
        path.write_text(json.dumps(damaged))
        with pytest.raises(ValueError, match="array 'w_0' needs"):
            load(str(folder), 1, 0)
    path.unlink()
    with pytest.raises(ValueError, match="there is no file"):
        load(str(folder), 1, 0)
