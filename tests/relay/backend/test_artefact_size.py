"""Constants of a library: each stored once, and none larger than it has to be."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule
from tvm.error import TVMError
from tvm.relay.backend import Executor

RNG = np.random.default_rng(0)
SIZE = {"relay.backend.optimize_for": "size"}


def random(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype("float32")


def bytes_of(lib) -> int:
    return sum([value.numpy().nbytes for value in lib.params.values()])


@pytest.mark.parametrize("kind", ["graph", "aot"])
def test_equal_constants_are_stored_once(kind: str) -> None:
    weight, data = random(40, 40), random(3, 40)
    x = body = relay.var("x", shape=(3, 40))
    other = weight.copy()
    other[-1, -1] += 1  # which a sample does not see
    for value in (weight, weight.copy(), other):
        body = relay.nn.relu(relay.nn.dense(body, relay.const(value)))
    executor = Executor(kind, {"link-params": False} if kind == "aot" else {})
    lib = relay.build(relay.Function([x], body), "llvm", executor=executor)
    assert 2 * weight.nbytes <= bytes_of(lib) < 3 * weight.nbytes
    module = GraphModule(relay.build(relay.Function([x], body), "llvm")["default"](tvm.cpu()))
    module.run(x=data)
    for value in (weight, weight, other):
        data = np.maximum(data @ value.T, 0)
    np.testing.assert_allclose(module.get_output(0).numpy(), data, rtol=1e-4, atol=1e-3)


def convolution() -> relay.Function:
    x = relay.var("x", shape=(1, 64, 28, 28))
    made = relay.nn.conv2d(x, relay.const(random(64, 64, 3, 3)), padding=(1, 1))
    return relay.Function([x], relay.nn.relu(made))


def test_weights_do_not_grow_where_size_counts() -> None:
    func, target = convolution(), "llvm -mcpu=skylake-avx512"
    fast = relay.build(func, target)
    with tvm.transform.PassContext(opt_level=3, config=SIZE):
        small = relay.build(func, target)
    assert bytes_of(fast) > 64 * 64 * 9 * 4 * 1.5  # by Winograd's algorithm
    assert bytes_of(small) <= 64 * 64 * 9 * 4


def test_unknown_aims_are_rejected() -> None:
    config = {"relay.backend.optimize_for": "sise"}
    rejected = pytest.raises(TVMError, match=r"speed or size, got 'sise'(.|\n)*'size'")
    with rejected, tvm.transform.PassContext(opt_level=3, config=config):
        relay.build(convolution(), "llvm")
