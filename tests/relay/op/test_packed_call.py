from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm._ffi.registry import remove_global_func
from tvm.relay.op.packed_call import packed_call


@pytest.fixture
def moments() -> Iterator[str]:
    def compute(x, low, total):
        low.copyfrom(x.numpy().min(axis=0))
        total.copyfrom(x.numpy().sum(axis=0))

    tvm.register_func("test.moments", compute)
    yield "test.moments"
    remove_global_func("test.moments")


@pytest.mark.parametrize("kind", ["graph", "debug"])
def test_registered_function_computes_results(moments: str, kind: str) -> None:
    x = relay.var("x", shape=(3, 4))
    low, total = packed_call(moments, [relay.exp(x)], [(4,), (4,)], ["float32", "float32"])
    function = relay.Function([x], total - low)
    data = np.random.default_rng(0).random((3, 4), "float32")
    found = relay.create_executor(kind).evaluate(function)(data).numpy()
    expected = np.exp(data).sum(0) - np.exp(data).min(0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
