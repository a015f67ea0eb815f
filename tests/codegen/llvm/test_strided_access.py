"""Strided loads: contiguous vectors are loaded, then shuffled."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te

INDICES: dict[str, Callable[[Any], Any]] = {
    "every second": lambda i: i * 2,
    "every second from one": lambda i: i * 2 + 1,
    "twice": lambda i: i // 2,
    "four times, behind an offset": lambda i: i // 4 + 5,
    "backwards by two": lambda i: 126 - i * 2,
    "pairs apart": lambda i: i // 2 + i,
}


def built(index: Callable[[Any], Any], dtype: str, lanes: int) -> tuple[Any, str]:
    a = te.placeholder((128,), dtype, name="A")
    b = te.compute((64,), lambda i: a[index(i)], name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(b.op.axis[0], factor=lanes)
    s[b].vectorize(inner)
    module = tvm.build(s, [a, b], "llvm")
    return module, module.get_source("ll")


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize(("dtype", "lanes"), [("float32", 16), ("int8", 8), ("float64", 4)])
def test_strided_loads_are_shuffled_vectors(name: str, dtype: str, lanes: int) -> None:
    module, text = built(INDICES[name], dtype, lanes)
    data = np.arange(128).astype(dtype)
    out = tvm.nd.empty((64,), dtype)
    module(tvm.nd.array(data), out)
    places = np.array([INDICES[name](i) for i in range(64)])
    np.testing.assert_array_equal(out.numpy(), data[places])
    assert "shufflevector" in text


def test_lanes_of_large_strides_are_gathered_one_by_one() -> None:
    module, _ = built(lambda i: (i * 37) % 128, "float32", 16)
    data = np.arange(128, dtype="float32")
    out = tvm.nd.empty((64,))
    module(tvm.nd.array(data), out)
    np.testing.assert_array_equal(out.numpy(), data[np.arange(64) * 37 % 128])
